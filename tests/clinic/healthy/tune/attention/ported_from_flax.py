"""A JAX person's port: tokens before heads, keyword-only bias and mask."""

import functools

import torch


def promote_dtype(*arrays):
    """All arrays in the widest number type among them."""
    widest = functools.reduce(
        torch.promote_types, (a.dtype for a in arrays if a is not None)
    )
    return tuple(None if a is None else a.to(widest) for a in arrays)


def dot_product_attention_weights(query, key, bias=None, mask=None):
    query, key = promote_dtype(query, key)
    dtype = query.dtype

    assert query.ndim == key.ndim, "q, k must have same rank."
    assert query.shape[:-3] == key.shape[:-3], "batch dims must match."
    assert query.shape[-2] == key.shape[-2], "num_heads must match."
    assert query.shape[-1] == key.shape[-1], "depths must match."

    depth = query.shape[-1]
    query = query / depth**0.5
    logits = torch.einsum("...qhd,...khd->...hqk", query, key)
    if bias is not None:
        logits = logits + bias.to(dtype)
    if mask is not None:
        big_neg = torch.finfo(dtype).min
        logits = torch.where(mask, logits, big_neg)
    return torch.softmax(logits, dim=-1)


def dot_product_attention(query, key, value, *, bias=None, mask=None):
    """[..., q, heads, depth], [..., kv, heads, depth] give the like of q."""
    query, key, value = promote_dtype(query, key, value)
    assert key.shape[-3] == value.shape[-3], "k, v lengths must match."
    weights = dot_product_attention_weights(query, key, bias, mask)
    return torch.einsum("...hqk,...khd->...qhd", weights, value)


PATIENT = dot_product_attention
FACTS = {
    "layout": "BNHD",
    "mask": "keep",
    "mask_axes": "any",
    "empty_row": "average",
    "names": {"q": "query", "k": "key", "v": "value", "mask": "mask"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "query": "b n h d",
    "key": "b m h d",
    "value": "b m h e",
    "mask?": "keep b h n m",
}
OTHER_INPUTS = [
    {
        "query": "b n h d",
        "key": "b m h d",
        "value": "b m h e",
        "bias?": "bias h n m",
        "mask?": "keep b 1 n m",
    },
]
