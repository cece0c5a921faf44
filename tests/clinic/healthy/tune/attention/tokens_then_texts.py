"""Tokens, texts, features: the layout of recurrent networks."""

import torch


def attend(q, k, v, mask=None):
    scores = torch.einsum("qbd,kbd->bqk", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask[:, None, :], float("-inf"))
    return torch.einsum("bqk,kbd->qbd", scores.softmax(dim=-1), v)


PATIENT = attend
FACTS = {
    "layout": "NBD",
    "mask": "block",
    "mask_axes": "BN",
    "empty_row": "nan",
}
INPUTS = {"q": "n b d", "k": "m b d", "v": "m b e", "mask?": "block b m"}
