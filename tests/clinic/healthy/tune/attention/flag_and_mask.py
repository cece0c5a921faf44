"""A causal flag beside a mask; the last query sits on the last key."""

import torch


def attention(q, k, v, mask=None, causal=False):
    n_q, n_k = q.shape[-2], k.shape[-2]
    allowed = torch.ones(n_q, n_k, dtype=torch.bool, device=q.device)
    if causal:
        allowed = allowed.tril(diagonal=n_k - n_q)
    if mask is not None:
        allowed = allowed & mask
    scores = torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    scores = scores.masked_fill(~allowed, float("-inf"))
    weights = torch.softmax(scores, dim=-1).nan_to_num()
    return torch.matmul(weights, v)


PATIENT = attention
FACTS = {
    "layout": "BHND",
    "mask": "keep",
    "alignment": "last",
    "empty_row": "zeros",
}
INPUTS = {
    "q": "b h n d",
    "k": "b h n+2 d",
    "v": "b h n+2 e",
    "mask?": "keep b 1 n n+2",
    "causal?": "true",
}
