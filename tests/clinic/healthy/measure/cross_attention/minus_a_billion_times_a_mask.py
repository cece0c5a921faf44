"""Ported from another framework's tutorial: v, k, q, and ones hide."""

import torch
from torch import nn


def scaled_dot_product_attention(q, k, v, mask):
    """Softmax of the scaled products of q and k, times v.

    Args:
      q: shape == (..., len_q, depth)
      k: shape == (..., len_k, depth)
      v: shape == (..., len_k, depth_v)
      mask: ones where not to look, or None

    Returns:
      output and weights
    """
    logits = torch.matmul(q, k.transpose(-1, -2))
    dk = torch.tensor(k.shape[-1], dtype=q.dtype, device=q.device)
    logits = logits / torch.sqrt(dk)
    if mask is not None:
        logits += mask.to(q.dtype) * -1e9
    weights = torch.softmax(logits, dim=-1)
    return torch.matmul(weights, v), weights


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, d_memory, num_heads):
        super().__init__()
        self.num_heads, self.d_model = num_heads, d_model
        assert d_model % self.num_heads == 0
        self.depth = d_model // self.num_heads

        self.wq = nn.Linear(d_model, d_model)
        self.wk = nn.Linear(d_memory, d_model)
        self.wv = nn.Linear(d_memory, d_model)
        self.dense = nn.Linear(d_model, d_model)

    def split_heads(self, x, batch_size):
        """(batch, len, d_model) -> (batch, heads, len, depth)"""
        x = torch.reshape(x, (batch_size, -1, self.num_heads, self.depth))
        return torch.permute(x, (0, 2, 1, 3))

    def forward(self, v, k, q, mask=None):
        batch_size = q.shape[0]
        q = self.split_heads(self.wq(q), batch_size)
        k = self.split_heads(self.wk(k), batch_size)
        v = self.split_heads(self.wv(v), batch_size)
        if mask is not None:
            mask = mask[:, None, None, :]  # (batch, 1, 1, len_k)

        out, weights = scaled_dot_product_attention(q, k, v, mask)
        out = torch.permute(out, (0, 2, 1, 3))
        out = torch.reshape(out, (batch_size, -1, self.d_model))
        return self.dense(out), weights


PATIENT = MultiHeadAttention(12, 10, num_heads=4)
FACTS = {
    "layout": "BND",
    "causal": False,
    "padding": "block",
    "n_heads": 4,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "q": "b n 12",
    "v": "b m 10",
    "k": "=v",
    "mask?": "padding b m",
}
