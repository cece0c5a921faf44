"""Of medical imaging: a plain object that holds a dictionary of layers."""

import math

import torch
from torch import nn


class SliceContext:
    """Slices of a volume look at each other. Call it like a function."""

    def __init__(
        self, dim, heads=1, bias=True, dtype=torch.float64, seed=None
    ):
        if seed is not None:
            torch.manual_seed(seed)
        self.heads = heads
        self.nets = nn.ModuleDict(
            {
                name: nn.Linear(dim, dim, bias=bias, dtype=dtype)
                for name in ("q", "k", "v", "out")
            }
        )

    def parameters(self):
        return self.nets.parameters()

    def _cut(self, name, x):
        y = self.nets[name](x)
        b, n, d = y.shape
        y = y.reshape(b, n, self.heads, d // self.heads)
        return y.permute(0, 2, 1, 3).reshape(b * self.heads, n, -1)

    def __call__(self, slices, valid=None):
        b, n, d = slices.shape
        q, k, v = (self._cut(name, slices) for name in ("q", "k", "v"))
        sim = torch.bmm(q, k.transpose(1, 2)).div(math.sqrt(q.shape[2]))
        if valid is not None:
            empty = valid.logical_not().repeat_interleave(self.heads, dim=0)
            sim = sim.masked_fill(empty.unsqueeze(1), -math.inf)
        top = sim.logsumexp(dim=2, keepdim=True)
        mixed = torch.bmm((sim - top).exp(), v)
        mixed = mixed.reshape(b, self.heads, n, -1).permute(0, 2, 1, 3)
        energy = top.mean()  # a scalar, watched during training
        return self.nets["out"](mixed.reshape(b, n, d)), energy


PATIENT = SliceContext(12, heads=4)
FACTS = {
    "layout": "BND",
    "causal": False,
    "padding": "keep",
    "empty_row": "nan",
    "d_model": 12,
    "n_heads": 4,
    "names": {"x": "slices", "padding": "valid"},
    "dtypes": ("float64",),
}
INPUTS = {"slices": "b n 12", "valid?": "real b n"}
