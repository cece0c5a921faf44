"""Windows of pictures: cosines times a learnt number, a table of biases."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class WindowAttention(nn.Module):
    def __init__(self, dim, window_size, num_heads, proj_drop=0.0):
        super().__init__()
        self.num_heads = num_heads
        start = math.log(10.0)
        self.logit_scale = nn.Parameter(torch.full((num_heads, 1, 1), start))
        self.max_logit_scale = math.log(100.0)

        # a bias for each distance and head; an index into it for each pair
        self.bias_table = nn.Parameter(
            torch.zeros(2 * window_size - 1, num_heads)
        )
        nn.init.trunc_normal_(self.bias_table, std=0.02)
        coords = torch.arange(window_size)
        index = coords[:, None] - coords[None, :] + window_size - 1
        self.register_buffer("relative_position_index", index)

        # no bias for keys: it would be the same for every one of them
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.q_bias = nn.Parameter(torch.zeros(dim))
        self.v_bias = nn.Parameter(torch.zeros(dim))
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(proj_drop)
        self.softmax = nn.Softmax(dim=-1)

    def position_bias(self, N):
        index = self.relative_position_index[:N, :N]
        bias = self.bias_table[index.reshape(-1)].view(N, N, -1)
        return bias.permute(2, 0, 1).unsqueeze(0)

    def forward(self, x):
        B_, N, C = x.shape
        qkv_bias = torch.cat(
            (self.q_bias, torch.zeros_like(self.q_bias), self.v_bias)
        )
        qkv = F.linear(x, self.qkv.weight, qkv_bias)
        qkv = qkv.reshape(B_, N, 3, self.num_heads, C // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)

        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        logit_scale = self.logit_scale.clamp(max=self.max_logit_scale).exp()
        attn = (q @ k.transpose(-2, -1)) * logit_scale
        attn = self.softmax(attn + self.position_bias(N))

        x = (attn @ v).transpose(1, 2).reshape(B_, N, C)
        return self.proj_drop(self.proj(x))


PATIENT = WindowAttention(12, window_size=8, num_heads=3, proj_drop=0.1)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "scores": "cosine",
    "positions": "relative",
    "packed": "by part",
    "n_heads": 3,
    "longest": 8,
    "dropout": 0.1,
}
INPUTS = {"x": "b n 12"}
SIZES = {"n": (1, 8)}
