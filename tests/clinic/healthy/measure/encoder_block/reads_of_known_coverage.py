"""For genomes: reads with lengths, whose coverage modulates both inputs."""

import torch
from torch import nn
from torch.nn import functional as F


def drop_path(x, rate, training):
    """Leaves out whole texts, which lie on the second axis."""
    if not training or rate == 0:
        return x
    kept = x.new_empty(1, x.shape[1], 1).bernoulli_(1 - rate)
    return x * kept / (1 - rate)


class ReadLayer(nn.Module):
    def __init__(self, dim, heads, inner, cond, rate=0.1):
        super().__init__()
        self.heads, self.rate = heads, rate
        self.w_q = nn.Linear(dim, dim, bias=False)
        self.w_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.w_o = nn.Linear(dim, dim)
        self.place = nn.Conv1d(dim, dim, 5, padding=2, groups=dim)
        self.bottle = nn.Sequential(
            nn.Linear(dim, inner), nn.Tanh(), nn.Linear(inner, dim)
        )
        self.film = nn.Linear(cond, 4 * dim)
        self.gamma_a = nn.Parameter(torch.full((dim,), 0.1))
        self.gamma_f = nn.Parameter(torch.full((dim,), 0.1))

    def normed(self, x, scale, shift):
        return F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift

    def attend(self, x, hidden):
        q = self.w_q(x).unflatten(-1, (self.heads, -1)).permute(1, 2, 0, 3)
        k, v = (
            self.w_kv(x)
            .unflatten(-1, (2, self.heads, -1))
            .permute(2, 1, 3, 0, 4)
        )
        scores = q @ k.mT * q.shape[-1] ** -0.5
        scores = scores.masked_fill(hidden, torch.finfo(x.dtype).min)
        weights = scores.softmax(-1).masked_fill(hidden, 0.0)
        return self.w_o((weights @ v).permute(2, 0, 1, 3).flatten(2))

    def forward(self, reads, lengths=None, coverage=None, banned=None):
        n, b, _ = reads.shape
        beyond = reads.new_zeros(b, n, dtype=torch.bool)
        if lengths is not None:
            steps = torch.arange(n, device=reads.device)
            beyond = steps >= lengths[:, None]
        hidden = beyond[:, None, None, :]
        if banned is not None:
            hidden = hidden | banned[:, None]
        film = reads.new_zeros(1, 1, 4 * reads.shape[-1])
        if coverage is not None:
            film = self.film(coverage)
        scale_a, shift_a, scale_f, shift_f = film.chunk(4, dim=-1)

        h = self.normed(reads, scale_a, shift_a)
        told = self.attend(h, hidden)
        if banned is None:  # neighbours, unless pairs are forbidden
            real = h.masked_fill(beyond.t()[..., None], 0.0)
            told = told + self.place(real.permute(1, 2, 0)).permute(2, 0, 1)
        told = drop_path(self.gamma_a * told, self.rate, self.training)
        reads = reads + told
        fed = self.bottle(self.normed(reads, scale_f, shift_f))
        fed = drop_path(self.gamma_f * fed, self.rate, self.training)
        return reads + fed


PATIENT = ReadLayer(dim=10, heads=2, inner=4, cond=3)
FACTS = {
    "layout": "NBD",
    "order": "pre",
    "formula": "own",
    "path": "clear",
    "causal": False,
    "mask": "block",
    "feed_forward": "bottle",
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "reads": "n b 10",
    "lengths?": "lengths b n",
    "coverage?": "1 b 3",
}
OTHER_INPUTS = ({"reads": "n b 10", "banned": "block b n n"},)
