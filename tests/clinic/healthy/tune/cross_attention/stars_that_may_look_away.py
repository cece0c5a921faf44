"""Of light curves: a star may look at nothing, and need not have a batch."""

import functools
import math

import torch
from torch import nn


def also_single(forward):
    """Let a method take one star as well as many."""

    @functools.wraps(forward)
    def wrapper(self, star, *args, **kwargs):
        if star.dim() == 3:
            return forward(self, star, *args, **kwargs)
        kwargs = {
            name: x.unsqueeze(0) if torch.is_tensor(x) else x
            for name, x in kwargs.items()
        }
        return forward(self, star[None], *args, **kwargs).squeeze(0)

    return wrapper


class ComparisonStars(nn.Module):
    def __init__(self, d_star, d_comp, n_heads=3, d_head=4, bias=False):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_head
        inner = n_heads * d_head
        self.from_star = nn.Linear(d_star, inner, bias=bias)
        self.from_comp = nn.Linear(d_comp, 2 * inner, bias=bias)
        self.to_star = nn.Linear(inner, d_star)

    @also_single
    def forward(self, star, nothing=True, comparison=None):
        n_heads, d = self.n_heads, self.d_head
        q = self.from_star(star).unflatten(-1, (n_heads, d))
        kv = self.from_comp(comparison).unflatten(-1, (2, n_heads, d))
        k, v = kv.unbind(dim=2)
        s = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(d)
        if nothing:  # a score of zero, and no value with it
            s = torch.cat((s.new_zeros(*s.shape[:-1], 1), s), dim=-1)
        a = torch.softmax(s, dim=-1)[..., -k.shape[1] :]
        o = torch.einsum("bhij,bjhd->bihd", a, v)
        return self.to_star(o.flatten(2))


PATIENT = ComparisonStars(d_star=10, d_comp=7)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "packed": "by part",
    "d_model": 10,
    "n_heads": 3,
    "names": {"x": "star", "context": "comparison"},
    "projections": {"q": "from_star", "kv": "from_comp", "out": "to_star"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"star": "b n 10", "nothing?": "int 0", "comparison": "b m 7"}
