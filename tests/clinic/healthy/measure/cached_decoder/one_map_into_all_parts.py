"""Attention beside a gated network, one map into both; one head of keys."""

import torch
import torch.nn.functional as F
from torch import einsum, nn


def exists(val):
    return val is not None


def rotate_every_half(t, pos):
    """Each token by its angles, (n, d / 2); keys are kept as they were."""
    a, b = t.chunk(2, dim=-1)
    cos, sin = pos.cos(), pos.sin()
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class ParallelTransformerBlock(nn.Module):
    def __init__(self, dim, dim_head=4, heads=3, ff_mult=2):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.heads = heads
        self.scale = dim_head**-0.5
        attn_inner, ff_inner = heads * dim_head, dim * ff_mult
        self.fused_dims = (attn_inner, dim_head, dim_head, 2 * ff_inner)
        self.fused_attn_ff_proj = nn.Linear(
            dim, sum(self.fused_dims), bias=False
        )
        self.attn_out = nn.Linear(attn_inner, dim, bias=False)
        self.ff_out = nn.Linear(ff_inner, dim, bias=False)
        inv_freq = 1.0 / (100.0 ** (torch.arange(0, dim_head, 2) / dim_head))
        self.register_buffer("inv_freq", inv_freq)

    def forward(self, x, past_kv=None):
        n, device = x.shape[1], x.device
        x = self.norm(x)
        q, k, v, ff = self.fused_attn_ff_proj(x).split(self.fused_dims, dim=-1)
        q = q.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        if exists(past_kv):
            past_k, past_v = past_kv
            k = torch.cat((past_k, k), dim=-2)
            v = torch.cat((past_v, v), dim=-2)
        kv = (k, v)

        # the past is turned anew with each call
        j = k.shape[-2]
        pos = torch.arange(j, device=device).to(x.dtype)[:, None]
        pos = pos * self.inv_freq.to(x.dtype)
        q = rotate_every_half(q * self.scale, pos[-n:])
        k = rotate_every_half(k, pos)

        sim = einsum("b h i d, b j d -> b h i j", q, k)
        causal_mask = torch.ones((n, j), device=device, dtype=torch.bool)
        causal_mask = causal_mask.triu(j - n + 1)
        sim = sim.masked_fill(causal_mask, -torch.finfo(sim.dtype).max)
        attn = sim.softmax(dim=-1)
        out = einsum("b h i j, b j d -> b h i d", attn, v)
        out = out.transpose(1, 2).flatten(2)

        ff, gate = ff.chunk(2, dim=-1)
        return self.attn_out(out) + self.ff_out(F.silu(gate) * ff), kv


class ParallelDecoder(nn.Module):
    def __init__(self, dim, depth, **kwargs):
        super().__init__()
        self.layers = nn.ModuleList(
            [ParallelTransformerBlock(dim, **kwargs) for _ in range(depth)]
        )

    def forward(self, x, past_kvs=None):
        past_kvs = iter(past_kvs or ())
        new_kvs = []
        for layer in self.layers:
            out, kv = layer(x, next(past_kvs, None))
            new_kvs.append(kv)
            x = x + out
        return x, tuple(new_kvs)


PATIENT = ParallelDecoder(10, depth=2)
FACTS = {
    "d_model": 10,
    "call": lambda model, x, cache: model(x, past_kvs=cache),
    "dtypes": ("float64", "float32"),
}
INPUTS = {"x": "b n 10"}
