"""Homework: the flag comes before the tokens, and heads are looped over."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    d: int
    n_heads: int
    use_bias: bool = True
    p: float = 0.2


class OneHead(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.size = s.d // s.n_heads
        self.Q = nn.Linear(s.d, self.size, bias=s.use_bias)
        self.K = nn.Linear(s.d, self.size, bias=s.use_bias)
        self.V = nn.Linear(s.d, self.size, bias=s.use_bias)

    def forward(self, x, hidden):
        # x is (B, T, d) and everything below has T rows for each text
        scores = torch.matmul(self.Q(x), self.K(x).transpose(1, 2))
        scores = scores / (self.size**0.5)
        scores[hidden.expand_as(scores)] = float("-inf")
        return torch.softmax(scores, dim=2).matmul(self.V(x))


class Problem3(nn.Module):
    """Part (c): several heads, side by side, and a last matrix."""

    def __init__(self, settings):
        super().__init__()
        heads = [OneHead(settings) for _ in range(settings.n_heads)]
        self.heads = nn.ModuleList(heads)
        self.O = nn.Linear(settings.d, settings.d, bias=settings.use_bias)
        self.dropout = nn.Dropout(settings.p)

    def forward(self, hide_future, x):
        T = x.shape[1]
        hidden = torch.zeros(T, T, dtype=torch.bool, device=x.device)
        if hide_future:
            hidden = torch.ones_like(hidden).triu(diagonal=1)
        results = []
        for head in self.heads:
            results.append(head(x, hidden))
        return self.dropout(self.O(torch.cat(results, dim=-1)))


PATIENT = Problem3(Settings(d=9, n_heads=3)).eval()
FACTS = {
    "layout": "BND",
    "causal": False,
    "d_model": 9,
    "n_heads": 3,
    "dropout": 0.2,
    "names": {"x": "x", "causal": "hide_future"},
    "projections": {"out": "O"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"hide_future": "true", "x": "b n 9"}
OTHER_INPUTS = [{"hide_future": "int 0", "x": "b n 9"}]
