"""An astronomer's: light curves, rotated by when they were observed."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class CurveConfig:
    width: int = 12
    heads: int = 3
    narrow: int = 5
    slowest: float = 300.0

    @property
    def of_head(self):
        return self.width // self.heads


class ScaledLength(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.g = nn.Parameter(torch.tensor(cfg.width**0.5))

    def forward(self, flux):
        return self.g * nn.functional.normalize(flux, dim=-1, eps=1e-6)


class CurveLayer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg

        def per_head():
            return nn.ModuleList(
                nn.Linear(cfg.width, cfg.of_head, bias=False)
                for _ in range(cfg.heads)
            )

        self.asks, self.answers = per_head(), per_head()
        self.tells = per_head()
        self.join = nn.Linear(cfg.width, cfg.width)
        self.squeeze = nn.Linear(cfg.width, cfg.narrow)
        self.bend = nn.Tanh()
        self.widen = nn.Linear(cfg.narrow, cfg.width)
        self.length_1, self.length_2 = ScaledLength(cfg), ScaledLength(cfg)

    def turns(self, times):
        """Unit complex numbers: text, time, pair of features."""
        pairs = self.cfg.of_head // 2
        pair = torch.arange(pairs, device=times.device, dtype=torch.float64)
        angle = times.double()[..., None] * self.cfg.slowest ** -(pair / pairs)
        return torch.polar(torch.ones_like(angle), angle)

    def turned(self, t, turns):
        pairs = t.unflatten(-1, (-1, 2)).double()
        pairs = torch.view_as_complex(pairs.contiguous()) * turns
        return torch.view_as_real(pairs).flatten(-2).to(t.dtype)

    def one_head(self, ask, answer, tell, turns, hidden):
        q, k = self.turned(ask, turns), self.turned(answer, turns)
        scores = q @ k.transpose(-2, -1) / self.cfg.of_head**0.5
        if hidden is not None:
            lowest = torch.finfo(scores.dtype).min
            scores = scores.masked_fill(hidden, lowest)
        shares = torch.softmax(scores, dim=-1)
        if hidden is not None:
            shares = shares.masked_fill(hidden, 0.0)
        return shares @ tell

    def forward(self, src, src_mask=None, times=None):
        n, b, _ = src.shape
        if times is None:
            times = torch.arange(n, device=src.device)[:, None].expand(n, b)
        turns, x = self.turns(times.t()), src.transpose(0, 1)
        parts = zip(self.asks, self.answers, self.tells, strict=True)
        told = [
            self.one_head(*(one(x) for one in part), turns, src_mask)
            for part in parts
        ]
        x = self.length_1(x + self.join(torch.cat(told, dim=-1)))
        x = self.length_2(x + self.widen(self.bend(self.squeeze(x))))
        return x.transpose(0, 1)


PATIENT = CurveLayer(CurveConfig())
FACTS = {
    "layout": "NBD",
    "order": "post",
    "norms": ("length_1", "length_2"),
    "flat_feed_forward": ("squeeze", "bend", "widen"),
    "n_heads": 3,
    "mask": "block",
    "extra": "rotary positions, from times that are given",
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "src": "n b 12",
    "src_mask?": "block b n n",
    "times?": "n b",
}
