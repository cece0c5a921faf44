"""Speech by memory: a filter over values is added to what attention says."""

import torch
import torch.nn.functional as F
from torch import nn


class FilteredAttention(nn.Module):
    def __init__(self, n_feat, n_head, kernel_size):
        super().__init__()
        self.h = n_head
        self.linear_q_k_v = nn.Linear(n_feat, n_feat * 3)
        self.linear_out = nn.Linear(n_feat, n_feat)
        self.fsmn_block = nn.Conv1d(
            n_feat, n_feat, kernel_size, groups=n_feat, bias=False
        )
        left = (kernel_size - 1) // 2
        self.pad = (left, kernel_size - 1 - left)

    def memory(self, v, mask):
        v = v * mask
        taps = self.fsmn_block(F.pad(v.transpose(1, 2), self.pad))
        return (taps.transpose(1, 2) + v) * mask

    def forward(self, x, mask):
        b, n, d = x.shape
        q, k, v = self.linear_q_k_v(x).split(d, dim=-1)
        memory = self.memory(v, mask.unsqueeze(-1).to(x.dtype))
        q, k, v = (t.view(b, n, self.h, -1).transpose(1, 2) for t in (q, k, v))
        q = q * (d // self.h) ** -0.5
        scores = torch.matmul(q, k.transpose(-2, -1))
        hidden = mask.eq(0).view(b, 1, 1, n)
        scores = scores.masked_fill(hidden, -float("inf"))
        context = torch.matmul(scores.softmax(dim=-1), v)
        context = context.transpose(1, 2).reshape(b, n, d)
        return self.linear_out(context) + memory


class MemoryBlock(nn.Module):
    def __init__(self, size, heads, units, kernel_size=3, rate=0.1):
        super().__init__()
        self.self_attn = FilteredAttention(size, heads, kernel_size)
        self.feed_forward = nn.Sequential(
            nn.Linear(size, units),
            nn.ReLU(),
            nn.Dropout(rate),
            nn.Linear(units, size),
        )
        self.norm1 = nn.LayerNorm(size, eps=1e-12)
        self.norm2 = nn.LayerNorm(size, eps=1e-12)
        self.dropout = nn.Dropout(rate)

    def forward(self, x, mask=None):
        if mask is None:
            mask = x.new_ones(x.shape[:2])
        residual = x
        x = self.self_attn(self.norm1(x), mask)
        x = residual + self.dropout(x)
        residual = x
        return residual + self.dropout(self.feed_forward(self.norm2(x)))


PATIENT = MemoryBlock(12, 2, 17)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "padding": "keep",
    "attention": "self_attn",
    "feed_forward": "feed_forward",
    "norms": ["norm1", "norm2"],
    "dropout": 0.1,
}
INPUTS = {"x": "b n 12", "mask?": "real b n"}
