"""Retention: no keys are kept, only a sum of them which fades."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class State(NamedTuple):
    """What each layer remembers: (batch, heads, keys, values)."""

    sums: tuple[Tensor, ...]

    @property
    def depth(self) -> int:
        return len(self.sums)


class Retention(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkvg = nn.Linear(dim, 4 * dim, bias=False)
        self.norm = nn.LayerNorm(dim // heads)
        self.out = nn.Linear(dim, dim, bias=False)
        gamma = 1 - 2.0 ** (-1 - torch.arange(heads, dtype=torch.float64))
        self.register_buffer("gamma", gamma)

    def forward(self, x: Tensor, old: Tensor | None):
        q, k, v, gate = (
            t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for t in self.qkvg(x).chunk(4, dim=-1)
        )
        k = k * k.shape[-1] ** -0.5
        n = x.shape[1]
        at = torch.arange(n, device=x.device)
        gamma = self.gamma.to(x)[:, None, None]
        age = at[:, None] - at
        fade = (gamma ** age.clamp(min=0)).tril()
        y = (q @ k.mT * fade) @ v
        new = (k * gamma ** (n - 1 - at)[:, None]).mT @ v
        if old is not None:
            y = y + (q * gamma ** (at + 1)[:, None]) @ old
            new = new + gamma**n * old
        y = self.norm(y) * nn.functional.silu(gate)
        return self.out(y.transpose(1, 2).flatten(2)), new


class RetentiveDecoder(nn.Module):
    def __init__(self, dim: int = 12, heads: int = 3, depth: int = 2):
        super().__init__()
        self.mix = nn.ModuleList(Retention(dim, heads) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))

    def forward(self, chunk: Tensor, state: State | None = None):
        sums = [None] * len(self.mix) if state is None else state.sums
        now = []
        for mix, norm, old in zip(self.mix, self.norms, sums, strict=True):
            told, new = mix(norm(chunk), old)
            chunk = chunk + told
            now.append(new)
        return chunk, State(tuple(now))


PATIENT = RetentiveDecoder()
FACTS = {"d_model": 12, "dtypes": ("float64", "float32")}
INPUTS = {"chunk": "b n 12"}
