"""Taken over from TensorFlow: ones are padding, each a billion less."""

import torch

MINUS_INF = -1e9


def dot_product_attention(q, k, v, mask=None):
    """One or many heads, whatever stands in front.

    Args:
      q: (..., len_q, depth)
      k: (..., len_k, depth)
      v: (..., len_k, depth_v)
      mask: zeros, and ones at padding; broadcasts to (..., len_q, len_k)

    Returns:
      what is said to each query, and the weights for a picture of them
    """
    product = torch.matmul(q, k.transpose(-1, -2))
    depth = torch.tensor(k.shape[-1], dtype=q.dtype)
    logits = product / torch.sqrt(depth)

    if mask is not None:
        logits += mask.to(q.dtype) * MINUS_INF

    attention_weights = torch.softmax(logits, dim=-1)
    output = torch.matmul(attention_weights, v)
    return output, attention_weights


PATIENT = dot_product_attention
FACTS = {
    "layout": "BHND",
    "mask": "block",
    "mask_axes": "B11N",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "mask?": "block b 1 1 m",
}
