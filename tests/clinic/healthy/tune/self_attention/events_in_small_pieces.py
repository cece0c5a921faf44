"""Of temporal graphs: three equal inputs, a config, queries by pieces."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class EventConfig:
    node_dim: int = 8
    heads: int = 2
    piece: int = 3
    bias: bool = False

    @property
    def per_head(self):
        return self.node_dim // self.heads


class EventAttention(nn.Module):
    """Each event reads the events up to itself, a few at a time."""

    def __init__(self, cfg: EventConfig):
        super().__init__()
        self.cfg = cfg
        dim = cfg.node_dim
        self.w_query = nn.Linear(dim, dim, bias=cfg.bias)
        self.w_key = nn.Linear(dim, dim, bias=cfg.bias)
        self.w_value = nn.Linear(dim, dim, bias=cfg.bias)
        self.w_final = nn.Linear(dim, dim)

    def split(self, z):
        b, n, _ = z.size()
        return z.view(b, n, self.cfg.heads, self.cfg.per_head).transpose(1, 2)

    def forward(self, query, key, value, observed=None):
        q = self.split(self.w_query(query))
        k = self.split(self.w_key(key))
        v = self.split(self.w_value(value))
        b, _, n, _ = k.size()
        when = torch.arange(n, device=query.device)
        real = query.new_ones(b, n, dtype=torch.bool)
        if observed is not None:
            real = observed
        pieces, edges = [], 0
        for start in range(0, n, self.cfg.piece):
            now = when[start : start + self.cfg.piece]
            edge = (when <= now[:, None]) & real[:, None, None, :]
            edges = edges + edge.sum()
            score = q[:, :, now] @ k.mT / self.cfg.per_head**0.5
            score = score.masked_fill(~edge, -torch.inf)
            pieces.append(score.softmax(-1) @ v)
        out = torch.cat(pieces, 2).transpose(1, 2).reshape(b, n, -1)
        return self.w_final(out), edges


PATIENT = EventAttention(EventConfig())
FACTS = {
    "layout": "BND",
    "causal": True,
    "padding": "keep",
    "empty_row": "nan",
    "d_model": 8,
    "n_heads": 2,
    "names": {"padding": "observed"},
    "projections": {
        "q": "w_query",
        "k": "w_key",
        "v": "w_value",
        "out": "w_final",
    },
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "query": "b n 8",
    "key": "=query",
    "value": "=query",
    "observed?": "real b n",
}
