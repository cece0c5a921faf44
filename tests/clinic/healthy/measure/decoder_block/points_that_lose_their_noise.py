"""For point clouds: PyTorch's own layer, told how noisy its points are."""

import torch
from torch import nn


class SquaredReLU(nn.Module):
    def forward(self, x):
        return torch.relu(x).square()


class Modulated(nn.TransformerDecoderLayer):
    """All parts are inherited; what changes is how they are called."""

    def __init__(self, d_model, nhead, dim_feedforward, d_time):
        super().__init__(
            d_model,
            nhead,
            dim_feedforward,
            dropout=0.5,
            activation=SquaredReLU(),
            norm_first=True,
        )
        self.film = nn.Sequential(nn.SiLU(), nn.Linear(d_time, 6 * d_model))

    def bent(self, x, i, film):
        if film is None:
            return x
        scale, shift = film[2 * i], film[2 * i + 1]
        return x * (1 + scale) + shift

    def ask(self, attention, x, source, absent):
        return attention(
            x,
            source,
            source,
            key_padding_mask=absent,
            need_weights=True,
            average_attn_weights=False,
        )

    def absent(self, points, n_points):
        if n_points is None:
            return None
        at = torch.arange(len(points), device=points.device)
        return at.expand(len(n_points), -1) >= n_points.unsqueeze(1)

    def forward(
        self, points, shape, *, noise=None, n_points=None, n_shape=None
    ):
        film = None if noise is None else self.film(noise).chunk(6, dim=-1)
        x = points
        y = self.bent(self.norm1(x), 0, film)
        y, _ = self.ask(self.self_attn, y, y, self.absent(points, n_points))
        x = x + self.dropout1(y)
        y = self.bent(self.norm2(x), 1, film)
        y, shares = self.ask(
            self.multihead_attn, y, shape, self.absent(shape, n_shape)
        )
        x = x + self.dropout2(y)
        return x + self._ff_block(self.bent(self.norm3(x), 2, film)), shares


PATIENT = Modulated(d_model=8, nhead=2, dim_feedforward=12, d_time=5)
FACTS = {
    "layout": "NBD",
    "order": "pre",
    "formula": "own",
    "path": "clear",
    "causal": False,
    "self_attention": "self_attn",
    "cross_attention": "multihead_attn",
    "norms": ("norm1", "norm2", "norm3"),
    "dropout": 0.5,
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "points": "n b 8",
    "shape": "m b 8",
    "noise?": "1 b 5",
    "n_points?": "lengths b n",
    "n_shape?": "lengths b m",
}
