"""Room for all tokens, written where `input_pos` says, to be compiled."""

import torch
import torch.nn.functional as F
from torch import nn


class StaticCache:
    """Keys and values (b, h, longest, d), and how many of them count."""

    def __init__(self, k, v, filled=0):
        self.k, self.v, self.filled = k, v, filled

    @classmethod
    def empty(cls, b, h, longest, d, like):
        return cls(*(like.new_zeros(b, h, longest, d) for _ in "kv"))

    def written(self, input_pos, k, v):
        return StaticCache(
            self.k.index_copy(2, input_pos, k),
            self.v.index_copy(2, input_pos, v),
            self.filled + input_pos.numel(),
        )


class Attention(nn.Module):
    def __init__(self, dim, n_head, block_size):
        super().__init__()
        self.n_head, self.block_size = n_head, block_size
        self.wqkv = nn.Linear(dim, 3 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        tril = torch.tril(torch.ones(block_size, block_size)).bool()
        self.register_buffer("causal_mask", tril, persistent=False)

    def forward(self, x, cache):
        b, n, d = x.shape
        q, k, v = (
            t.view(b, n, self.n_head, -1).transpose(1, 2)
            for t in self.wqkv(x).split(d, dim=-1)
        )
        if cache is None:
            shape = (b, self.n_head, self.block_size, d // self.n_head)
            cache = StaticCache.empty(*shape, like=x)
        input_pos = torch.arange(cache.filled, cache.filled + n)
        input_pos = input_pos.to(x.device)
        cache = cache.written(input_pos, k, v)
        seen = self.causal_mask[input_pos]  # zeros behind are never seen
        y = F.scaled_dot_product_attention(q, cache.k, cache.v, seen)
        return self.wo(y.transpose(1, 2).reshape(b, n, d)), cache


class Model(nn.Module):
    def __init__(self, dim, n_head, n_layer, block_size):
        super().__init__()
        self.wpe = nn.Embedding(block_size, dim)
        self.layers = nn.ModuleList(
            Attention(dim, n_head, block_size) for _ in range(n_layer)
        )
        self.norms = nn.ModuleList(nn.RMSNorm(dim) for _ in range(n_layer))

    def forward(self, x, caches=None):
        caches = caches or [None] * len(self.layers)
        start = caches[0].filled if caches[0] else 0
        places = torch.arange(start, start + x.shape[1], device=x.device)
        x = x + self.wpe(places)
        updated = []
        for layer, norm, old in zip(
            self.layers, self.norms, caches, strict=True
        ):
            y, new = layer(norm(x), old)
            x = x + y
            updated.append(new)
        return x, updated


PATIENT = Model(8, 2, n_layer=2, block_size=32)
FACTS = {
    "d_model": 8,
    "longest": 32,
    "call": lambda model, x, cache: model(x, cache),
}
INPUTS = {"x": "b n 8"}
