"""Normed queries and keys, capped scores, three tokens in sight. Causal."""

import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return y * (1 + self.weight)


class LocalAttention(nn.Module):
    def __init__(self, hidden, n_heads, n_kv_heads, head_dim, window, cap):
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.head_dim = head_dim
        self.sliding_window = window
        self.logit_cap = cap
        self.q_size = n_heads * head_dim
        self.kv_size = n_kv_heads * head_dim
        self.qkv_proj = nn.Linear(
            hidden, self.q_size + 2 * self.kv_size, bias=False
        )
        self.o_proj = nn.Linear(self.q_size, hidden, bias=False)
        self.query_norm = RMSNorm(head_dim)
        self.key_norm = RMSNorm(head_dim)

    def forward(self, hidden_states):
        b, t, _ = hidden_states.shape
        xq, xk, xv = self.qkv_proj(hidden_states).split(
            [self.q_size, self.kv_size, self.kv_size], dim=-1
        )
        xq = self.query_norm(xq.view(b, t, -1, self.head_dim))
        xk = self.key_norm(xk.view(b, t, -1, self.head_dim))
        xv = xv.view(b, t, -1, self.head_dim)
        if self.n_kv_heads != self.n_heads:
            times = self.n_heads // self.n_kv_heads
            xk = torch.repeat_interleave(xk, times, dim=2)
            xv = torch.repeat_interleave(xv, times, dim=2)
        q, k, v = (s.transpose(1, 2) for s in (xq, xk, xv))
        q = q * self.head_dim**-0.5
        scores = torch.matmul(q, k.transpose(2, 3))
        scores = torch.tanh(scores / self.logit_cap) * self.logit_cap

        everything = torch.ones_like(scores[0, 0], dtype=torch.bool)
        in_sight = everything.tril() & everything.triu(1 - self.sliding_window)
        scores = scores.masked_fill(~in_sight, torch.finfo(scores.dtype).min)
        probs = torch.softmax(scores, dim=-1)
        output = torch.matmul(probs, v)
        return self.o_proj(output.transpose(1, 2).flatten(2))


def in_sight(n_q, n_k):
    back = torch.arange(n_q)[:, None] - torch.arange(n_k)
    return (back >= 0) & (back < 3)


PATIENT = LocalAttention(12, 4, 2, 5, window=3, cap=2.0)
FACTS = {
    "layout": "BND",
    "causal": True,
    "formula": "own",
    "window": 3,
    "table": in_sight,
    "cap": 2.0,
    "packed": "by part",
    "n_heads": 4,
}
INPUTS = {"hidden_states": "b n 12"}
