"""Each token asks the two experts that suit it best; groups share keys."""

import torch
import torch.nn.functional as F
from torch import nn


class Expert(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.w1 = nn.Linear(dim, inner, bias=False)
        self.w2 = nn.Linear(inner, dim, bias=False)
        self.w3 = nn.Linear(dim, inner, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseMixture(nn.Module):
    def __init__(self, dim, inner, n_experts, top_k):
        super().__init__()
        self.gate = nn.Linear(dim, n_experts, bias=False)
        self.experts = nn.ModuleList(
            Expert(dim, inner) for _ in range(n_experts)
        )
        self.top_k = top_k

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        best, chosen = self.gate(tokens).topk(self.top_k, dim=-1)
        shares = best.softmax(dim=-1)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            row, rank = torch.where(chosen == number)
            if row.numel():
                said = shares[row, rank, None] * expert(tokens[row])
                out = out.index_add(0, row, said)
        return out.view_as(x)


class SharedKeys(nn.Module):
    def __init__(self, dim, heads, groups):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, dim // heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, groups * self.size, bias=False)
        self.v_proj = nn.Linear(dim, groups * self.size, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q = self.q_proj(x).unflatten(-1, (self.heads, self.size))
        k = self.k_proj(x).unflatten(-1, (self.groups, self.size))
        v = self.v_proj(x).unflatten(-1, (self.groups, self.size))
        y = F.scaled_dot_product_attention(
            q.transpose(1, 2),
            k.transpose(1, 2),
            v.transpose(1, 2),
            is_causal=True,
            enable_gqa=True,
        )
        return self.o_proj(y.transpose(1, 2).flatten(2))


class MixtureLayer(nn.Module):
    def __init__(self, dim, heads, groups, inner, n_experts=4, top_k=2):
        super().__init__()
        self.self_attn = SharedKeys(dim, heads, groups)
        self.block_sparse_moe = SparseMixture(dim, inner, n_experts, top_k)
        self.input_layernorm = nn.RMSNorm(dim, eps=1e-5)
        self.post_attention_layernorm = nn.RMSNorm(dim, eps=1e-5)

    def forward(self, hidden):
        hidden = hidden + self.self_attn(self.input_layernorm(hidden))
        normed = self.post_attention_layernorm(hidden)
        return hidden + self.block_sparse_moe(normed)


PATIENT = MixtureLayer(12, 6, 2, 8)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "causal": True,
    "attention": "self_attn",
    "feed_forward": "block_sparse_moe",
    "norms": ["input_layernorm", "post_attention_layernorm"],
    "dtypes": ("float64", "float32"),
}
INPUTS = {"hidden": "b n 12"}
