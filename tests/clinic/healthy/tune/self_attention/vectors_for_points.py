"""Clouds of points: differences, and a weight for each feature."""

import itertools

import torch
from torch import nn


def mlp(*widths):
    layers = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class PointAttention(nn.Module):
    def __init__(self, dim, hidden_mult=2):
        super().__init__()
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.attn_mlp = mlp(dim, dim * hidden_mult, dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        relation = q[:, :, None, :] - k[:, None, :, :]  # b i j d
        sim = self.attn_mlp(relation)
        if mask is not None:
            sim = sim.masked_fill(~mask[:, None, :, None], -torch.inf)
        attn = sim.softmax(dim=-2)  # over j, for each feature
        return self.out(torch.einsum("bijd,bjd->bid", attn, v))


PATIENT = PointAttention(6)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "padding": "keep",
    "n_heads": 6,
}
INPUTS = {"x": "b n 6", "mask?": "real b n"}
