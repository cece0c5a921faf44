"""For one text: a query at a time, and a sum over the keys."""

import torch


def attend(q, k, v, causal=False):
    rows = []
    n_q, n_k = len(q), len(k)
    for i in range(n_q):
        seen = n_k - n_q + i + 1 if causal else n_k
        scores = (k[:seen] * q[i]).sum(dim=1) / q.shape[1] ** 0.5
        weights = torch.exp(scores - scores.max())
        weights = weights / weights.sum()
        rows.append((weights[:, None] * v[:seen]).sum(dim=0))
    return torch.stack(rows)


PATIENT = attend
FACTS = {"layout": "N D", "alignment": "last"}
INPUTS = {"q": "n d", "k": "n d", "v": "n e", "causal?": "true"}
OTHER_INPUTS = [{"q": "n d", "k": "m d", "v": "m e"}]
