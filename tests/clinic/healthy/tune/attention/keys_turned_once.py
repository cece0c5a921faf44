"""Keys are permuted before, and the additive mask is made here."""

import math

import torch


def attend(q, k, v, key_mask=None):
    k_t = k.permute(0, 1, 3, 2).contiguous()
    scores = torch.matmul(q, k_t)
    scores = scores / math.sqrt(q.size(3))
    if key_mask is not None:
        bias = torch.zeros_like(key_mask, dtype=scores.dtype)
        bias = bias.masked_fill(key_mask == 0, -10000.0)
        scores = scores + bias[:, None, None, :]
    probs = torch.softmax(scores, dim=-1)
    return torch.matmul(probs, v)


PATIENT = attend
FACTS = {
    "layout": "BHND",
    "mask": "keep",
    "mask_axes": "BN",
    "empty_row": "everything",
}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "key_mask?": "keep b m",
}
LOUDEST = 3  # ten thousand hides only what is not too loud
