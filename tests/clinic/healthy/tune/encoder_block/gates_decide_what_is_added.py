"""A forecaster's: what is added passes a gated unit, and then a norm."""

import torch
from torch import nn
from torch.nn import functional as F


class Swish:
    """No module: it has nothing to learn."""

    def __init__(self, beta=1.0):
        self.beta = beta

    def __call__(self, x):
        return x * torch.sigmoid(self.beta * x)


class GateAddNorm(nn.Module):
    """A gated linear unit that can shut a sublayer off."""

    def __init__(self, hidden):
        super().__init__()
        self.glu = nn.Linear(hidden, 2 * hidden)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, new, before):
        return self.norm(before + F.glu(self.glu(new), dim=-1))


class InterpretableAttention(nn.Module):
    """All heads share their values, so that their weights may be averaged."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.size = hidden // heads
        self.qs = nn.ModuleList(
            nn.Linear(hidden, self.size) for _ in range(heads)
        )
        self.ks = nn.ModuleList(
            nn.Linear(hidden, self.size) for _ in range(heads)
        )
        self.v = nn.Linear(hidden, self.size)
        self.out = nn.Linear(self.size, hidden, bias=False)

    def forward(self, x, mask=None):
        rows = []
        for to_q, to_k in zip(self.qs, self.ks, strict=True):
            s = torch.bmm(to_q(x), to_k(x).mT) / self.size**0.5
            if mask is not None:
                s = s.masked_fill(mask, -1e9)
            rows.append(s.softmax(dim=-1))
        weights = torch.stack(rows).mean(dim=0)
        return self.out(weights @ self.v(x)), weights


class FusionLayer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.attention = InterpretableAttention(hidden, heads)
        self.attention_gate = GateAddNorm(hidden)
        self.up, self.down = (
            nn.Linear(hidden, hidden),
            nn.Linear(hidden, hidden),
        )
        self.act = Swish()
        self.network_gate = GateAddNorm(hidden)

    def forward(self, steps, mask=None):
        heard, weights = self.attention(steps, mask)
        steps = self.attention_gate(heard, steps)
        worked = self.down(self.act(self.up(steps)))
        return self.network_gate(worked, steps), weights


PATIENT = FusionLayer(hidden=8, heads=2)
FACTS = {
    "layout": "BND",
    "order": "post",
    "formula": "own",
    "path": "free",
    "causal": False,
    "attention": "attention",
    "norms": ["attention_gate.norm", "network_gate.norm"],
    "flat_feed_forward": ["up", "act", "down"],
    "mask": "block",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"steps": "b n 8", "mask?": "block b n n"}
