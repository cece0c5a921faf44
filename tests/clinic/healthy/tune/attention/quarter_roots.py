"""Queries and keys both take the fourth root, as in a speech recogniser."""

import torch.nn.functional as F
from torch import Tensor


def qkv_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None):
    *_, n_ctx, width = q.shape
    scale = width**-0.25
    # more stable in half precision than a division afterwards
    qk = (q * scale) @ (k * scale).transpose(-1, -2)
    if mask is not None:
        qk = qk + mask[:n_ctx, : k.shape[2]]
    w = F.softmax(qk, dim=-1).to(q.dtype)
    wv = w @ v
    return wv, qk.detach()


PATIENT = qkv_attention
FACTS = {
    "layout": "BHND",
    "mask": "add",
    "mask_axes": "NN",
    "empty_row": "nan",
}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "mask?": "add n m",
}
