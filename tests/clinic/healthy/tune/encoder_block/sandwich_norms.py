"""A norm before and another behind each sublayer, a network with a gate."""

import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.g = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        ms = x.square().mean(dim=-1, keepdim=True)
        return self.g * (x / (ms + self.eps).sqrt())


class GroupedAttention(nn.Module):
    def __init__(self, dim, heads, kv_heads, head_dim):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        self.q = nn.Linear(dim, heads * head_dim, bias=False)
        self.kv = nn.Linear(dim, 2 * kv_heads * head_dim, bias=False)
        self.o = nn.Linear(heads * head_dim, dim, bias=False)

    def forward(self, x, allowed=None):
        b, n, _ = x.shape
        q = self.q(x).view(b, n, self.kv_heads, -1, self.head_dim)
        k, v = self.kv(x).view(b, n, 2, self.kv_heads, -1).unbind(2)
        logits = torch.einsum("bigrd,bjgd->bgrij", q, k)
        logits = logits / self.head_dim**0.5
        if allowed is not None:
            logits = logits.masked_fill(~allowed, float("-inf"))
        y = torch.einsum("bgrij,bjgd->bigrd", logits.softmax(-1), v)
        return self.o(y.reshape(b, n, -1))


class GatedMLP(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.gate_proj = nn.Linear(dim, inner, bias=False)
        self.up_proj = nn.Linear(dim, inner, bias=False)
        self.down_proj = nn.Linear(inner, dim, bias=False)

    def forward(self, x):
        gate = F.gelu(self.gate_proj(x), approximate="tanh")
        return self.down_proj(gate * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, dim, heads, kv_heads, head_dim, inner):
        super().__init__()
        self.pre_attn_norm = Norm(dim)
        self.self_attn = GroupedAttention(dim, heads, kv_heads, head_dim)
        self.post_attn_norm = Norm(dim)
        self.pre_ffw_norm = Norm(dim)
        self.mlp = GatedMLP(dim, inner)
        self.post_ffw_norm = Norm(dim)

    def forward(self, x, mask=None):
        r = x
        x = self.pre_attn_norm(x)
        x = self.self_attn(x, mask)
        x = r + self.post_attn_norm(x)
        r = x
        x = self.pre_ffw_norm(x)
        x = self.mlp(x)
        return r + self.post_ffw_norm(x)


PATIENT = Layer(12, heads=4, kv_heads=2, head_dim=5, inner=14)
FACTS = {
    "order": "sandwich",
    "formula": "own",
    "mask": "keep",
    "layout": "BND",
    "attention": "self_attn",
    "feed_forward": "mlp",
    "norms": [
        "pre_attn_norm",
        "post_attn_norm",
        "pre_ffw_norm",
        "post_ffw_norm",
    ],
}
INPUTS = {"x": "b n 12", "mask?": "keep n n"}
