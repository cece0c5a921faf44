"""No positions but slopes: the farther back a key, the lower its score."""

import math

import torch
from torch import nn


def get_slopes(n_heads, max_bias=8):
    """A geometric row for a power of two; for others, two such are mixed."""
    whole = 2 ** math.ceil(math.log2(n_heads))
    steps = torch.arange(1, whole + 1) * (max_bias / whole)
    slopes = torch.pow(2.0, -steps)
    if whole != n_heads:
        slopes = torch.cat((slopes[1::2], slopes[::2]))[:n_heads]
    return slopes


def multihead_attention(
    query, key, value, n_heads, *, softmax_scale, attn_bias, pad_mask=None
):
    b, s, d = query.shape
    query = query.view(b, s, n_heads, d // n_heads).permute(0, 2, 1, 3)
    key = key.view(b, s, n_heads, d // n_heads).permute(0, 2, 3, 1)
    value = value.view(b, s, n_heads, d // n_heads).permute(0, 2, 1, 3)

    attn_weight = torch.matmul(query, key) * softmax_scale + attn_bias
    lowest = torch.finfo(attn_weight.dtype).min
    if pad_mask is not None:
        attn_weight = attn_weight.masked_fill(
            ~pad_mask.view(b, 1, 1, s), lowest
        )
    past = attn_weight.new_ones(s, s, dtype=torch.bool).tril()
    attn_weight = attn_weight.masked_fill(~past, lowest)
    attn_weight = torch.softmax(attn_weight, dim=-1)
    out = torch.matmul(attn_weight, value)
    return out.permute(0, 2, 1, 3).reshape(b, s, d)


class AlibiAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int, softmax_scale=None):
        super().__init__()
        self.n_heads = n_heads
        self.softmax_scale = softmax_scale or 1 / math.sqrt(d_model / n_heads)
        self.Wqkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)
        slopes = get_slopes(n_heads).view(1, n_heads, 1, 1)
        self.register_buffer("slopes", slopes, persistent=False)

    def build_bias(self, seq_len, like):
        back = torch.arange(1 - seq_len, 1, device=like.device)
        # one row for all queries: only differences matter within a row
        return back.to(like.dtype) * self.slopes.to(like.dtype)

    def forward(self, x, key_padding_mask=None):
        query, key, value = self.Wqkv(x).chunk(3, dim=2)
        context = multihead_attention(
            query,
            key,
            value,
            self.n_heads,
            softmax_scale=self.softmax_scale,
            attn_bias=self.build_bias(x.size(1), x),
            pad_mask=key_padding_mask,
        )
        return self.out_proj(context)


PATIENT = AlibiAttention(12, 3)
FACTS = {
    "layout": "BND",
    "causal": True,
    "formula": "own",
    "positions": "relative",
    "padding": "keep",
    "packed": "by part",
    "n_heads": 3,
}
INPUTS = {"x": "b n 12", "key_padding_mask?": "real b n"}
