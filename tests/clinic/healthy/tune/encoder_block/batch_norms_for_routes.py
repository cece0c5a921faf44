"""Finding routes: towns in no order, norms over the batch, heads apart."""

import torch
from torch import nn


class TownAttention(nn.Module):
    """Each head has matrices of its own: parameters of three axes."""

    def __init__(self, n_heads, embed_dim, key_dim):
        super().__init__()
        there, back = (embed_dim, key_dim), (key_dim, embed_dim)
        self.W_query = self.uniform(n_heads, *there)
        self.W_key = self.uniform(n_heads, *there)
        self.W_val = self.uniform(n_heads, *there)
        self.W_out = self.uniform(n_heads, *back)
        self.norm_factor = key_dim**-0.5

    @staticmethod
    def uniform(*shape):
        bound = shape[-1] ** -0.5
        return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

    def forward(self, h, mask=None):
        # heads come first everywhere: (n_heads, batch, towns, ...)
        Q = h @ self.W_query[:, None]
        K = h @ self.W_key[:, None]
        V = h @ self.W_val[:, None]
        fit = self.norm_factor * (Q @ K.transpose(-1, -2))
        if mask is not None:
            fit = fit.masked_fill(mask, -torch.inf)
        share = fit.softmax(-1)
        if mask is not None:
            # a town without neighbours would get nan
            share = share.masked_fill(mask, 0)
        return torch.einsum("hbij,hbjv,hve->bie", share, V, self.W_out)


class Normalization(nn.Module):
    """Over all towns of all maps, feature by feature."""

    def __init__(self, embed_dim):
        super().__init__()
        self.normalizer = nn.BatchNorm1d(embed_dim)

    def forward(self, h):
        # BatchNorm1d wants features in the middle
        return self.normalizer(h.transpose(1, 2)).transpose(1, 2)


class GraphEncoderLayer(nn.Module):
    def __init__(self, n_heads, embed_dim, ff_hidden, key_dim):
        super().__init__()
        self.mha = TownAttention(n_heads, embed_dim, key_dim)
        self.bn1 = Normalization(embed_dim)
        self.ff = nn.Sequential(
            nn.Linear(embed_dim, ff_hidden),
            nn.ReLU(),
            nn.Linear(ff_hidden, embed_dim),
        )
        self.bn2 = Normalization(embed_dim)

    def forward(self, h, mask=None):
        h = h + self.mha(h, mask=mask)
        h = self.bn1(h)
        h = h + self.ff(h)
        h = self.bn2(h)
        return h


PATIENT = GraphEncoderLayer(3, 12, 17, key_dim=5)
FACTS = {
    "order": "post",
    "formula": "own",
    "layout": "BND",
    "mask": "block",
    "mask_axes": "BNN",
    "empty_row": "zeros",
    "norm": "batch",
    "attention": "mha",
    "feed_forward": "ff",
    "norms": ["bn1.normalizer", "bn2.normalizer"],
    "n_heads": 3,
}
INPUTS = {"h": "b n 12", "mask?": "block b n n"}
