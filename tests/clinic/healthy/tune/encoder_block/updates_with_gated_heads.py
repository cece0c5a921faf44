"""Proteins: each part norms for itself and gives an update to be added."""

from functools import partialmethod

import torch
from torch import nn


class Linear(nn.Linear):
    """A map that knows how it is to start."""

    def __init__(self, c_in, c_out, bias=True, init="default"):
        super().__init__(c_in, c_out, bias=bias)
        with torch.no_grad():
            if init == "gating":
                self.weight.fill_(0.0)
                self.bias.fill_(1.0)
            elif init == "final":
                self.weight.fill_(0.0)


class GatedSelfAttention(nn.Module):
    def __init__(self, c_m: int, c_hidden: int, no_heads: int):
        super().__init__()
        self.c_hidden, self.no_heads = c_hidden, no_heads
        wide = c_hidden * no_heads
        self.layer_norm_m = nn.LayerNorm(c_m)
        self.linear_q = Linear(c_m, wide, bias=False)
        self.linear_k = Linear(c_m, wide, bias=False)
        self.linear_v = Linear(c_m, wide, bias=False)
        self.linear_g = Linear(c_m, wide, init="gating")
        self.linear_o = Linear(wide, c_m, init="final")

    def forward(
        self, m: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        m = self.layer_norm_m(m)
        split = (self.no_heads, self.c_hidden)
        # [*, L, H, C]
        q = self.linear_q(m).unflatten(-1, split) * self.c_hidden**-0.5
        k = self.linear_k(m).unflatten(-1, split)
        v = self.linear_v(m).unflatten(-1, split)
        a = torch.einsum("...qhc,...khc->...hqk", q, k)
        if mask is not None:
            # [*, 1, 1, L]
            a = a + (1e9 * (mask.to(a.dtype) - 1))[..., None, None, :]
        o = torch.einsum("...hqk,...khc->...qhc", a.softmax(dim=-1), v)
        g = self.linear_g(m).sigmoid().unflatten(-1, split)
        return self.linear_o((o * g).flatten(-2))


class Transition(nn.Module):
    def __init__(self, c_m: int, n: int):
        super().__init__()
        self.layer_norm = nn.LayerNorm(c_m)
        self.linear_1 = Linear(c_m, n * c_m)
        self.linear_2 = Linear(n * c_m, c_m, init="final")

    def forward(self, m: torch.Tensor) -> torch.Tensor:
        return self.linear_2(self.linear_1(self.layer_norm(m)).relu())


class TrunkBlock(nn.Module):
    def __init__(self, c_m, c_hidden, no_heads, n=2, dropout=0.15):
        super().__init__()
        self.msa_att = GatedSelfAttention(c_m, c_hidden, no_heads)
        self.msa_transition = Transition(c_m, n)
        self.rate = dropout

    def _dropped(self, x, shared_axis):
        if not self.training:
            return x
        shape = list(x.shape)
        shape[shared_axis] = 1
        kept = torch.full(shape, 1 - self.rate, device=x.device)
        return x * torch.bernoulli(kept).to(x.dtype) / (1 - self.rate)

    dropout_row = partialmethod(_dropped, shared_axis=-2)

    def forward(self, m, mask=None):
        m = m + self.dropout_row(self.msa_att(m, mask))
        return m + self.msa_transition(m)


PATIENT = TrunkBlock(10, 4, 3)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "padding": "keep",
    "attention": "msa_att",
    "feed_forward": "msa_transition",
    "norms": ["msa_att.layer_norm_m", "msa_transition.layer_norm"],
    "dropout": 0.15,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"m": "b n 10", "mask?": "real b n"}
