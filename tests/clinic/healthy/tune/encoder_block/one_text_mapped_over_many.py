"""A Julia user's: attention for one text, mapped over the batch."""

import torch
from torch import nn


class Apply(nn.Module):
    """A function as a layer."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Standardise(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.a, self.b = (
            nn.Parameter(torch.ones(d)),
            nn.Parameter(torch.zeros(d)),
        )
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return self.a * centred / torch.sqrt(variance + self.eps) + self.b


class Mix(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.Wq, self.Wk, self.Wv, self.Wo = (nn.Linear(d, d) for _ in "qkvo")

    def single(self, x, weight):
        """x: (n, d); weight: (n,) of ones for tokens and zeros for none."""
        n, d = x.shape
        cut = (n, self.h, d // self.h)
        q, k, v = (W(x).reshape(cut) for W in (self.Wq, self.Wk, self.Wv))
        s = torch.einsum("ihc,jhc->hij", q, k) / (d // self.h) ** 0.5
        s = torch.where(weight > 0, s, -torch.inf)
        return self.Wo(
            torch.einsum("hij,jhc->ihc", s.softmax(-1), v).flatten(1)
        )

    def forward(self, x, weight):
        return torch.vmap(self.single)(x, weight)


class Layer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.mix = Mix(d, h)
        self.work = nn.Sequential(
            Apply(lambda x: x.mT),
            nn.Conv1d(d, 3 * d, 1),
            Apply(torch.relu),
            nn.Conv1d(3 * d, d, 1),
            Apply(lambda x: x.mT),
        )
        self.before_mix, self.after_mix = Standardise(d), Standardise(d)
        self.before_work, self.after_work = Standardise(d), Standardise(d)

    def forward(self, **given):
        x = given["x"]
        there = given.get("there")
        ones = x.new_ones(x.shape[:2])
        weight = ones if there is None else ones * there
        x = x + self.after_mix(self.mix(self.before_mix(x), weight))
        return x + self.after_work(self.work(self.before_work(x)))


PATIENT = Layer(d=8, h=2)
FACTS = {
    "layout": "BND",
    "order": "sandwich",
    "attention": "mix",
    "norms": ["before_mix", "after_mix", "before_work", "after_work"],
    "feed_forward": "work",
    "padding": "keep",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "b n 8", "there?": "real b n"}
