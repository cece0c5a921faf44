"""A cache per layer that makes room step by step and knows its offset."""

import torch
import torch.nn.functional as F
from torch import nn


class KVCache:
    step = 8

    def __init__(self):
        self.keys = None
        self.values = None
        self.offset = 0

    def update_and_fetch(self, keys, values):
        prev = self.offset
        self.offset += keys.shape[2]
        if self.keys is None or self.offset > self.keys.shape[2]:
            B, n_kv_heads, new, head_dim = keys.shape
            room = (new + self.step - 1) // self.step * self.step
            empty = keys.new_zeros(B, n_kv_heads, room, head_dim)
            if self.keys is None:
                self.keys, self.values = empty, empty.clone()
            else:
                self.keys = torch.cat([self.keys, empty], dim=2)
                self.values = torch.cat([self.values, empty], dim=2)
        self.keys[..., prev : self.offset, :] = keys
        self.values[..., prev : self.offset, :] = values
        return (
            self.keys[..., : self.offset, :],
            self.values[..., : self.offset, :],
        )


def make_prompt_cache(model):
    return [KVCache() for _ in model.layers]


def create_causal_mask(N, offset, device):
    rinds = torch.arange(offset + N, device=device)
    linds = torch.arange(offset, offset + N, device=device)
    return linds[:, None] >= rinds[None]


def rope(x, offset, base=10_000.0):
    half = x.shape[-1] // 2
    positions = torch.arange(offset, offset + x.shape[-2], device=x.device)
    freqs = base ** (-torch.arange(half, device=x.device).to(x.dtype) / half)
    theta = positions.to(x.dtype)[:, None] * freqs
    costheta, sintheta = torch.cos(theta), torch.sin(theta)
    x1, x2 = x[..., :half], x[..., half:]
    rx1 = x1 * costheta - x2 * sintheta
    rx2 = x1 * sintheta + x2 * costheta
    return torch.cat([rx1, rx2], dim=-1)


class Attention(nn.Module):
    def __init__(self, dims, n_heads, n_kv_heads):
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        head_dim = dims // n_heads
        self.scale = head_dim**-0.5
        self.q_proj = nn.Linear(dims, n_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(dims, n_kv_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(dims, n_kv_heads * head_dim, bias=False)
        self.o_proj = nn.Linear(n_heads * head_dim, dims, bias=False)

    def forward(self, x, mask, cache):
        B, L, _ = x.shape
        queries, keys, values = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        queries = queries.reshape(B, L, self.n_heads, -1).transpose(1, 2)
        keys = keys.reshape(B, L, self.n_kv_heads, -1).transpose(1, 2)
        values = values.reshape(B, L, self.n_kv_heads, -1).transpose(1, 2)

        queries = rope(queries, offset=cache.offset)
        keys = rope(keys, offset=cache.offset)
        keys, values = cache.update_and_fetch(keys, values)

        # groups of queries share a key: no copies of keys are made
        queries = queries.unflatten(1, (self.n_kv_heads, -1)) * self.scale
        scores = queries @ keys[:, :, None].transpose(-1, -2)
        if mask is not None:
            scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
        scores = torch.softmax(scores, dim=-1)
        output = (scores @ values[:, :, None]).flatten(1, 2)
        return self.o_proj(output.transpose(1, 2).reshape(B, L, -1))


class TransformerBlock(nn.Module):
    def __init__(self, dims, n_heads, n_kv_heads, hidden):
        super().__init__()
        self.self_attn = Attention(dims, n_heads, n_kv_heads)
        self.gate_proj = nn.Linear(dims, hidden, bias=False)
        self.up_proj = nn.Linear(dims, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dims, bias=False)
        self.input_layernorm = nn.RMSNorm(dims, eps=1e-5)
        self.post_attention_layernorm = nn.RMSNorm(dims, eps=1e-5)

    def forward(self, x, mask, cache):
        h = x + self.self_attn(self.input_layernorm(x), mask, cache)
        r = self.post_attention_layernorm(h)
        r = self.down_proj(F.silu(self.gate_proj(r)) * self.up_proj(r))
        return h + r


class Model(nn.Module):
    def __init__(self, dims=16, n_heads=4, n_kv_heads=2, n_layers=2):
        super().__init__()
        self.layers = nn.ModuleList(
            TransformerBlock(dims, n_heads, n_kv_heads, 2 * dims)
            for _ in range(n_layers)
        )
        self.norm = nn.RMSNorm(dims, eps=1e-5)

    def forward(self, h, cache=None):
        cache = cache or make_prompt_cache(self)
        mask = None
        if h.shape[1] > 1:
            mask = create_causal_mask(h.shape[1], cache[0].offset, h.device)
        for layer, c in zip(self.layers, cache, strict=True):
            h = layer(h, mask, c)
        return self.norm(h), cache


PATIENT = Model()
FACTS = {
    "d_model": 16,
    "call": lambda model, x, cache: model(x, cache=cache),
    "dtypes": ("float64", "float32"),
}
INPUTS = {"h": "b n 16"}
