"""A pure function of a dictionary of weights, in a module's clothes."""

import torch
import torch.nn.functional as F
from torch import nn


def init(width, heads):
    bound = (6 / (2 * width)) ** 0.5
    params = {}
    for name in ("query", "key", "value", "linear"):
        w = torch.empty(width, width).uniform_(-bound, bound)
        params[name + "_w"] = w
        params[name + "_b"] = torch.zeros(width)
    return params


def apply(params, heads, x, mask):
    """Self-attention for x of shape (time, batch, width)."""
    T, B, C = x.shape

    def project(name):
        y = F.linear(x, params[name + "_w"], params[name + "_b"])
        return y.reshape(T, B, heads, C // heads)

    query, key, value = map(project, ("query", "key", "value"))
    logits = torch.einsum("tbhd,Tbhd->bhtT", query, key)
    logits = logits * (C // heads) ** -0.5
    if mask is not None:
        logits = torch.where(mask, float("-inf"), logits)
    weights = torch.softmax(logits, -1)
    mixed = torch.einsum("bhtT,Tbhd->tbhd", weights, value).reshape(T, B, C)
    out = F.linear(mixed, params["linear_w"], params["linear_b"])
    return out, weights.mean(dim=1)


class Functional(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.params = nn.ParameterDict(init(width, heads))

    def forward(self, x, mask=None):
        return apply(self.params, self.heads, x, mask)


PATIENT = Functional(12, 4)
FACTS = {
    "layout": "NBD",
    "causal": False,
    "mask": "block",
    "mask_axes": "NN",
    "empty_row": "nan",
    "n_heads": 4,
}
INPUTS = {"x": "n b 12", "mask?": "block n n"}
