"""A quant's: prices last; weights are read with an identity as values."""

import torch
from torch import nn
from torch.nn import functional as F


class DayNorm(nn.GroupNorm):
    """One group for each day; days must not be normalised together."""

    def __init__(self, width):
        super().__init__(num_groups=1, num_channels=width)

    def forward(self, x):
        return super().forward(x.flatten(0, 1)).view_as(x)


class FusedAttention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
        self.o = nn.Linear(width, width)

    def forward(self, x, other):
        q = self.q(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
        kv = self.kv(other).unflatten(2, (2, self.heads, -1))
        k, v = kv.permute(2, 0, 3, 1, 4)
        heard = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        out = self.o(heard.transpose(1, 2).flatten(2))
        if self.causal:
            return out
        # the mean of unit vectors is the row of weights
        unit = torch.eye(k.shape[2], dtype=k.dtype, device=k.device)
        unit = unit.expand(*k.shape[:2], -1, -1)
        return out, F.scaled_dot_product_attention(q, k, unit)


class Gate(nn.Module):
    """How much of what is new may enter, decided by what is there."""

    def __init__(self, width):
        super().__init__()
        self.open = nn.Linear(2 * width, width)
        self.norm = DayNorm(width)

    def forward(self, old, new):
        share = torch.sigmoid(self.open(torch.cat((old, new), dim=-1)))
        return self.norm(old + share * new)


class PriceBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.history = FusedAttention(width, heads, causal=True)
        self.exposure = FusedAttention(width, heads, causal=False)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.gates = nn.ModuleList(Gate(width) for _ in range(3))

    def feed_forward(self, x):
        a, b = self.wide(x).tensor_split(2, dim=-1)
        return self.narrow(F.silu(a) * b)

    def forward(self, factors, prices):
        prices = self.gates[0](prices, self.history(prices, prices))
        loaded, loadings = self.exposure(prices, factors)
        prices = self.gates[1](prices, loaded)
        prices = self.gates[2](prices, self.feed_forward(prices))
        return prices, loadings


PATIENT = PriceBlock(width=6, heads=2)
FACTS = {
    "layout": "BND",
    "order": "post",
    "formula": "own",
    "path": "free",
    "causal": True,
    "self_attention": "history",
    "cross_attention": "exposure",
    "norms": ["gates.0.norm", "gates.1.norm", "gates.2.norm"],
    "feed_forward": "feed_forward",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"factors": "b m 6", "prices": "b n 6"}
