"""A functional programmer's: all weights in one vector, cut when needed."""

from itertools import accumulate, pairwise
from math import prod

import torch
from torch import nn


def layout_of(d, h, bias):
    """Names and shapes of the pieces, in the order they lie in."""
    e = d // h
    shapes = {"query": (h, d, e), "key": (h, d, e), "value": (h, d, e)}
    shapes["merge"] = (h, e, d)
    if bias:
        shapes["shift"] = (d,)
    return shapes


def unravel(vector, shapes):
    sizes = [prod(shape) for shape in shapes.values()]
    ends = pairwise([0, *accumulate(sizes)])
    return {
        name: vector[start:stop].view(shape)
        for (name, shape), (start, stop) in zip(
            shapes.items(), ends, strict=True
        )
    }


def apply(w, x, extra):
    """x: (b, n, d) to the mixed tokens and the shares of each head."""
    q, k, v = (
        torch.einsum("bnd,hde->bhne", x, w[name])
        for name in ("query", "key", "value")
    )
    logits = torch.einsum("bhie,bhje->bhij", q, k) / k.shape[-1] ** 0.5
    if extra is not None:
        logits = logits + extra
    p = torch.softmax(logits, -1)
    y = torch.einsum("bhij,bhje,hed->bid", p, v, w["merge"])
    return (y + w["shift"] if "shift" in w else y), p


class Ravelled(nn.Module):
    def __init__(self, d, h=2, bias=True):
        super().__init__()
        self.shapes = layout_of(d, h, bias)
        total = sum(prod(shape) for shape in self.shapes.values())
        self.theta = nn.Parameter(torch.randn(total) / d**0.5)

    def forward(self, **batch):
        w = unravel(self.theta, self.shapes)
        y, p = apply(w, batch["x"], batch.get("additive"))
        entropy = -torch.xlogy(p, p).sum(-1).mean()
        return y, entropy


PATIENT = Ravelled(10, h=5)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "add",
    "mask_axes": "B1NN",
    "empty_row": "nan",
    "d_model": 10,
    "n_heads": 5,
    "names": {"x": "x", "mask": "additive"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "b n 10", "additive?": "add b 1 n n"}
