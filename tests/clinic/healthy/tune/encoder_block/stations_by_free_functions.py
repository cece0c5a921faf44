"""Of a weather model: free functions, and a block that holds their numbers."""

import torch
from torch import nn


def glorot(*shape):
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(*shape)))


def stations_attend(x, wq, wkv, wo, n_valid, past):
    """All maps are tables with an axis for heads."""
    q = torch.einsum("bnd,dhk->bhnk", x, wq)
    k, v = torch.einsum("bnd,sdhk->sbhnk", x, wkv)
    if past is not None:
        k = torch.cat((past[0], k), dim=2)
        v = torch.cat((past[1], v), dim=2)
    scores = torch.einsum("bhik,bhjk->bhij", q, k) / wq.shape[-1] ** 0.5
    if n_valid is not None:
        station = torch.arange(x.shape[1], device=x.device)
        off = station[None] >= n_valid[:, None]
        if past is not None:
            before = off.new_zeros(len(off), past[0].shape[2])
            off = torch.cat((before, off), dim=1)
        scores = scores.masked_fill(off[:, None, None], float("-inf"))
    shares = torch.softmax(scores, dim=-1)
    out = torch.einsum("bhij,bhjk,hkd->bid", shares, v, wo)
    return out, (k, v)


def swiglu(x, w_in, w_gate, w_out):
    return (nn.functional.silu(x @ w_gate) * (x @ w_in)) @ w_out


class StationBlock(nn.Module):
    def __init__(self, dim=12, heads=3, head_dim=5, hidden=16, drop=0.2):
        super().__init__()
        self.wq = glorot(dim, heads, head_dim)
        self.wkv = glorot(2, dim, heads, head_dim)
        self.wo = glorot(heads, head_dim, dim)
        self.w_in, self.w_gate = glorot(dim, hidden), glorot(dim, hidden)
        self.w_out = glorot(hidden, dim)
        self.before_a, self.behind_a = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.before_f, self.behind_f = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.scale_a = nn.Parameter(torch.full((dim,), 0.2))
        self.scale_f = nn.Parameter(torch.full((dim,), 0.2))
        self.drop = nn.Dropout(drop)

    def forward(self, x, n_valid=None, past=None, **unused):
        told, now = stations_attend(
            self.before_a(x), self.wq, self.wkv, self.wo, n_valid, past
        )
        x = x + self.scale_a * self.drop(self.behind_a(told))
        fed = swiglu(self.before_f(x), self.w_in, self.w_gate, self.w_out)
        return x + self.scale_f * self.drop(self.behind_f(fed)), now


PATIENT = StationBlock()
FACTS = {
    "layout": "BND",
    "order": "sandwich",
    "formula": "own",
    "path": "clear",
    "causal": False,
    "norms": ("before_a", "behind_a", "before_f", "behind_f"),
    "dropout": 0.2,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "b n 12", "n_valid?": "lengths b n"}
