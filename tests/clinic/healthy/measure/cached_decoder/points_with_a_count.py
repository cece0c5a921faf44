"""Of point clouds: lists in and out, and a count that chooses positions."""

import torch
from torch import nn
from torch.nn import functional as F


def to_heads(x, h):
    """b n (h c) -> (b h) n c"""
    b, n, d = x.shape
    return (
        x.view(b, n, h, d // h).permute(0, 2, 1, 3).reshape(b * h, n, d // h)
    )


def from_heads(x, h):
    """(b h) n c -> b n (h c)"""
    bh, n, c = x.shape
    return (
        x.view(bh // h, h, n, c).permute(0, 2, 1, 3).reshape(bh // h, n, h * c)
    )


class PointNorm(nn.Module):
    """A group norm that takes every point alone."""

    def __init__(self, d):
        super().__init__()
        self.inner = nn.GroupNorm(1, d)

    def forward(self, x):
        b, n, d = x.shape
        return self.inner(x.reshape(b * n, d)).reshape(b, n, d)


class PointDecoder(nn.Module):
    """Likeness of points is symmetric: queries are keys, kept only once."""

    def __init__(self, d, h, most=64):
        super().__init__()
        self.h = h
        self.place = nn.Parameter(0.1 * torch.randn(most, d))
        self.likeness = nn.Linear(d, d)
        self.content = nn.Linear(d, d)
        self.mix = nn.Linear(d, d)
        self.gate_up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(2 * d, d)
        self.norm = PointNorm(d)
        self.strength = nn.Parameter(torch.tensor([0.5, 0.5]))

    def forward(self, points, cache=None):
        new = points.shape[1]
        count = 0 if cache is None else cache[2]
        x = points + self.place[count : count + new]
        z = self.norm(x)
        q = k = to_heads(self.likeness(z), self.h)
        v = to_heads(self.content(z), self.h)
        if cache is not None:
            k = torch.cat([cache[0], k], dim=1)
            v = torch.cat([cache[1], v], dim=1)
        s = torch.bmm(q, k.mT) / q.shape[-1] ** 0.5
        seen = torch.ones_like(s[0], dtype=torch.bool).tril(diagonal=count)
        s = s.masked_fill(~seen, -torch.inf)
        heard = self.mix(from_heads(torch.bmm(s.softmax(-1), v), self.h))
        up, gate = self.gate_up(z).chunk(2, dim=-1)
        worked = self.down(up * F.gelu(gate))
        one, other = self.strength
        return [x + one * heard + other * worked, [k, v, count + new]]


PATIENT = PointDecoder(d=10, h=2)
FACTS = {"d_model": 10, "dtypes": ("float64", "float32", "bfloat16")}
INPUTS = {"points": "b n 10"}
