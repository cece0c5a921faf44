"""Text to text: a list of sublayers, each with its norm, and scores as are."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Scores are not scaled: the first weights are drawn the smaller."""

    def __init__(self, d_model, n_heads, d_kv, is_causal):
        super().__init__()
        self.n_heads, self.is_causal = n_heads, is_causal
        inner = n_heads * d_kv
        self.q = nn.Linear(d_model, inner, bias=False)
        self.k = nn.Linear(d_model, inner, bias=False)
        self.v = nn.Linear(d_model, inner, bias=False)
        self.o = nn.Linear(inner, d_model, bias=False)

    def forward(self, x, states=None, mask=None):
        states = x if states is None else states
        q, k, v = (
            lin(t).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for lin, t in ((self.q, x), (self.k, states), (self.v, states))
        )
        scores = torch.matmul(q, k.mT)
        if self.is_causal:
            later = torch.ones_like(scores, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
        out = torch.matmul(F.softmax(scores, dim=-1), v)
        return self.o(out.transpose(1, 2).flatten(2))


class GatedDense(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.wi_0 = nn.Linear(d_model, d_ff, bias=False)
        self.wi_1 = nn.Linear(d_model, d_ff, bias=False)
        self.wo = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.wo(F.gelu(self.wi_0(x)) * self.wi_1(x))


class Sublayer(nn.Module):
    def __init__(self, d_model, inner):
        super().__init__()
        self.inner = inner
        self.layer_norm = nn.RMSNorm(d_model, eps=1e-6)

    def forward(self, x, *told):
        return x + self.inner(self.layer_norm(x), *told)


class Block(nn.Module):
    def __init__(self, d_model=12, n_heads=3, d_kv=5, d_ff=20):
        super().__init__()
        inners = (
            Attention(d_model, n_heads, d_kv, is_causal=True),
            Attention(d_model, n_heads, d_kv, is_causal=False),
            GatedDense(d_model, d_ff),
        )
        self.layer = nn.ModuleList(Sublayer(d_model, it) for it in inners)

    def forward(self, hidden, encoder_hidden, encoder_mask=None):
        hidden = self.layer[0](hidden)
        hidden = self.layer[1](hidden, encoder_hidden, encoder_mask)
        return self.layer[-1](hidden)


PATIENT = Block()
FACTS = {
    "layout": "BND",
    "order": "pre",
    "self_attention": "layer.0.inner",
    "cross_attention": "layer.1.inner",
    "norms": tuple(f"layer.{i}.layer_norm" for i in range(3)),
    "feed_forward": "layer.2.inner",
    "padding": "keep",
    "names": {
        "x": "hidden",
        "context": "encoder_hidden",
        "padding": "encoder_mask",
    },
    "scale": 1.0,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "hidden": "b n 12",
    "encoder_hidden": "b m 12",
    "encoder_mask?": "real b m",
}
