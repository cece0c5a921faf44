"""Parts a, c and f, norms in a list; everything in three lines."""

import torch
from torch import nn


class Look(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)

    def forward(self, x, y, allowed=None):
        k, v = self.kv(y).chunk(2, dim=-1)
        scores = self.q(x) @ k.mT / x.shape[-1] ** 0.5
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -torch.inf)
        return scores.softmax(dim=-1) @ v


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = Look(width)
        self.c = Look(width)
        self.f = nn.Sequential(
            nn.Linear(width, 20), nn.SiLU(), nn.Linear(20, width)
        )
        self.n = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

    def forward(self, x, y):
        n = x.shape[1]
        past = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
        x = self.n[0](x + self.a(x, x, past))
        x = self.n[1](x + self.c(x, y))
        return self.n[2](x + self.f(x))


PATIENT = Block(8)
FACTS = {
    "order": "post",
    "layout": "BND",
    "self_attention": "a",
    "cross_attention": "c",
    "feed_forward": "f",
    "norms": ["n.0", "n.1", "n.2"],
}
INPUTS = {"x": "b n 8", "y": "b m 8"}
