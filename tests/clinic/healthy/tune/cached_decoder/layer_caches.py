"""Two layers as of today, each with an object of keys and values."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class KVCache:
    keys: Tensor
    values: Tensor

    @property
    def seq_len(self) -> int:
        return self.keys.size(2)

    def append(self, keys: Tensor, values: Tensor) -> "KVCache":
        return KVCache(
            torch.cat([self.keys, keys], dim=2),
            torch.cat([self.values, values], dim=2),
        )


def rope_tables(positions: Tensor, dim: int, base: float = 500.0):
    inv_freq = base ** -(torch.arange(0, dim, 2).float() / dim)
    angles = positions.float()[:, None] * inv_freq.to(positions.device)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


class Attention(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads):
        super().__init__()
        self.head_dim = dim // n_heads
        self.rep = n_heads // n_kv_heads
        self.q_proj = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(n_heads * self.head_dim, dim, bias=False)

    def heads(self, x):
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def forward(self, x, cos, sin, cache):
        q = self.heads(self.q_proj(x))
        k = self.heads(self.k_proj(x))
        v = self.heads(self.v_proj(x))
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        cache = KVCache(k, v) if cache is None else cache.append(k, v)
        k = cache.keys.repeat_interleave(self.rep, dim=1)
        v = cache.values.repeat_interleave(self.rep, dim=1)
        # a lone token may see all there is; more of them need a mask
        mask = None
        if x.size(1) > 1:
            mask = torch.ones(x.size(1), k.size(2), device=x.device).bool()
            mask = mask.tril(k.size(2) - x.size(1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(y.transpose(1, 2).flatten(2)), cache


class DecoderLayer(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads, hidden):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(dim, eps=1e-5)
        self.self_attn = Attention(dim, n_heads, n_kv_heads)
        self.post_attention_layernorm = nn.RMSNorm(dim, eps=1e-5)
        self.gate_up = nn.Linear(dim, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x, cos, sin, cache):
        h, cache = self.self_attn(self.input_layernorm(x), cos, sin, cache)
        x = x + h
        gate, up = self.gate_up(self.post_attention_layernorm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up), cache


class Decoder(nn.Module):
    def __init__(self, dim=12, n_heads=3, n_kv_heads=1, hidden=16, depth=2):
        super().__init__()
        self.head_dim = dim // n_heads
        self.layers = nn.ModuleList(
            DecoderLayer(dim, n_heads, n_kv_heads, hidden)
            for _ in range(depth)
        )
        self.norm = nn.RMSNorm(dim, eps=1e-5)

    def forward(self, x, caches: list[KVCache] | None = None):
        start = caches[0].seq_len if caches else 0
        where = torch.arange(start, start + x.size(1), device=x.device)
        cos, sin = (t.to(x.dtype) for t in rope_tables(where, self.head_dim))
        new_caches = []
        for i, layer in enumerate(self.layers):
            x, c = layer(x, cos, sin, caches[i] if caches else None)
            new_caches.append(c)
        return self.norm(x), new_caches


PATIENT = Decoder()
FACTS = {
    "d_model": 12,
    "call": lambda model, x, cache: model(x, caches=cache),
}
INPUTS = {"x": "b n 12"}
