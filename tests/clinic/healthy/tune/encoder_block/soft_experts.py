"""Every token blends three networks; a router says in which shares."""

import torch
import torch.nn.functional as F
from torch import nn


class Experts(nn.Module):
    def __init__(self, dim, hidden, num_experts):
        super().__init__()
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.w_in = nn.Parameter(torch.randn(num_experts, hidden, dim) * 0.1)
        self.w_out = nn.Parameter(torch.randn(num_experts, dim, hidden) * 0.1)

    def forward(self, x):
        shares = self.gate(x).softmax(dim=-1)
        hidden = torch.einsum("btd,ehd->bteh", x, self.w_in)
        hidden = F.relu(hidden).square()
        return torch.einsum("bteh,edh,bte->btd", hidden, self.w_out, shares)


class Attn(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv_w = nn.Parameter(torch.randn(3, dim, dim) / dim**0.5)
        self.c_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        B, T, D = x.shape
        qkv = torch.einsum("btd,sed->sbte", x, self.qkv_w)
        q, k, v = qkv.view(3, B, T, self.num_heads, -1).transpose(2, 3)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, D))


class Block(nn.Module):
    def __init__(self, dim, num_heads, hidden, num_experts=3):
        super().__init__()
        self.norms = nn.ModuleDict(
            {"attn": nn.RMSNorm(dim, eps=1e-6), "moe": nn.RMSNorm(dim, 1e-6)}
        )
        self.attn = Attn(dim, num_heads)
        self.moe = Experts(dim, hidden, num_experts)

    def forward(self, x):
        x = x + self.attn(self.norms["attn"](x))
        return x + self.moe(self.norms["moe"](x))


PATIENT = Block(12, 4, 10)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "causal": True,
    "attention": "attn",
    "feed_forward": "moe",
    "norms": ["norms.attn", "norms.moe"],
    "n_heads": 4,
}
INPUTS = {"x": "b n 12"}
