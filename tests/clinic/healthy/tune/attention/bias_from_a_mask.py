"""Ported from a functional library: the mask becomes a bias of its own."""

from typing import Any

import torch
from torch import Tensor

Array = Tensor
Dtype = Any


def combine_biases(*biases: Array | None) -> Array | None:
    """The sum of those that are given."""
    given = [b for b in biases if b is not None]
    return sum(given[1:], given[0]) if given else None


def dot_product_attention_weights(
    query: Array, key: Array, bias: Array | None = None
) -> Array:
    depth = query.shape[-1]
    query = query / torch.tensor(depth, dtype=query.dtype).sqrt()
    # attn weight shape is (batch..., num_heads, q_length, kv_length)
    attn_weights = torch.einsum("...qhd,...khd->...hqk", query, key)
    if bias is not None:
        attn_weights = attn_weights + bias
    return torch.softmax(attn_weights, dim=-1)


def dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    *,
    bias: Array | None = None,
    mask: Array | None = None,
) -> Array:
    """Dot-product attention.

    Args:
      query: `[batch..., q_length, num_heads, qk_depth_per_head]`
      key: `[batch..., kv_length, num_heads, qk_depth_per_head]`
      value: `[batch..., kv_length, num_heads, v_depth_per_head]`
      bias: added to the scores, `[batch..., num_heads, q_length, kv_length]`
      mask: True where there is attention, in the shape of `bias`
    """
    assert query.ndim == key.ndim == value.ndim
    assert key.shape[-3] == value.shape[-3], "k, v lengths must match."
    mask_bias = None
    if mask is not None:
        mask_bias = torch.where(mask, 0.0, -torch.inf).to(query.dtype)
    bias = combine_biases(bias, mask_bias)
    attn_weights = dot_product_attention_weights(query, key, bias)
    return torch.einsum("...hqk,...khd->...qhd", attn_weights, value)


PATIENT = dot_product_attention
FACTS = {
    "layout": "BNHD",
    "mask": "keep",
    "mask_axes": "B1NN",
    "empty_row": "nan",
}
INPUTS = {
    "query": "b n h d",
    "key": "b m h d",
    "value": "b m h e",
    "bias?": "bias b h n m",
    "mask?": "keep b 1 n m",
}
