"""Query heads are folded into the groups that share their keys."""

import math

import torch


def gqa(q, k, v, mask=None):
    b, n, h, d = q.shape
    g = k.shape[2]
    q = q.reshape(b, n, g, h // g, d)
    scores = torch.einsum("bngrd,bmgd->bgrnm", q, k) / math.sqrt(d)
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None], -math.inf)
    weights = scores.softmax(dim=-1)
    out = torch.einsum("bgrnm,bmge->bngre", weights, v)
    return out.reshape(b, n, h, -1)


PATIENT = gqa
FACTS = {
    "layout": "BNHD",
    "grouped": True,
    "mask": "keep",
    "mask_axes": "BNN",
    "empty_row": "nan",
}
INPUTS = {
    "q": "b n 3*g d",
    "k": "b m g d",
    "v": "b m g e",
    "mask?": "keep b n m",
}
