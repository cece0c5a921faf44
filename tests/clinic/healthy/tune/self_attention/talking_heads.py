"""Heads talk to each other before the softmax and after it."""

import torch
from torch import nn


class TalkingHeadAttn(nn.Module):
    def __init__(self, dim, num_heads=8, qkv_bias=False, qk_scale=None):
        super().__init__()
        self.num_heads = num_heads
        head_dim = dim // num_heads
        self.scale = qk_scale or head_dim**-0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)
        self.proj_l = nn.Linear(num_heads, num_heads)
        self.proj_w = nn.Linear(num_heads, num_heads)

    def forward(self, x, mask=None):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, -1)
        qkv = qkv.permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0] * self.scale, qkv[1], qkv[2]

        attn = q @ k.transpose(-2, -1)
        attn = self.proj_l(attn.permute(0, 2, 3, 1))
        if mask is not None:
            attn = attn.masked_fill(~mask[:, None, :, None], float("-inf"))
        attn = attn.softmax(dim=-2)
        attn = self.proj_w(attn).permute(0, 3, 1, 2)
        if mask is not None:
            # what was added to all weights is taken off the padding again
            attn = torch.where(mask[:, None, None, :], attn, 0.0)
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)


PATIENT = TalkingHeadAttn(12, num_heads=4, qkv_bias=True)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "padding": "keep",
    "packed": "by part",
    "n_heads": 4,
}
INPUTS = {"x": "b n 12", "mask?": "real b n"}
