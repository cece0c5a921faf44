"""Weights as exponentials of log-weights; both masks are one tensor."""

import torch


def attend(q, k, v, allowed=None, causal=False):
    scores = torch.einsum("...qd,...kd->...qk", q, k)
    scores = scores / q.shape[-1] ** 0.5
    if causal:
        n_q, n_k = scores.shape[-2:]
        past = torch.arange(n_k) <= torch.arange(n_k - n_q, n_k)[:, None]
        allowed = past if allowed is None else allowed & past
    if allowed is not None:
        scores = scores.where(allowed, scores.new_tensor(-torch.inf))
    log_weights = scores - scores.logsumexp(dim=-1, keepdim=True)
    return torch.einsum("...qk,...kd->...qd", log_weights.exp(), v)


PATIENT = attend
FACTS = {
    "layout": "any",
    "mask": "keep",
    "names": {"mask": "allowed"},
    "alignment": "last",
    "empty_row": "nan",
}
INPUTS = {
    "q": "b h n d",
    "k": "b h n d",
    "v": "b h n e",
    "allowed?": "keep b 1 n n",
}
OTHER_INPUTS = [
    {"q": "b h n d", "k": "b h n+3 d", "v": "b h n+3 e", "causal?": "true"}
]
