"""A causal window: overlapping pieces of keys are views, by their strides."""

import torch
import torch.nn.functional as F

BACK = 4


def pieces(t):
    """(b, n, d) -> (b, n, BACK, d): each token and those just before it."""
    t = F.pad(t, (0, 0, BACK - 1, 0)).contiguous()
    b, wide, d = t.shape
    s_b, s_n, s_d = t.stride()
    return t.as_strided((b, wide - BACK + 1, BACK, d), (s_b, s_n, s_n, s_d))


def banded(q, k, v):
    n, d = q.shape[1:]
    scores = torch.matmul(pieces(k), q.unsqueeze(-1)).squeeze(-1) / d**0.5
    ages = torch.arange(BACK - 1, -1, -1, device=q.device)
    before = ages > torch.arange(n, device=q.device)[:, None]
    weights = torch.softmax(scores.masked_fill(before, -torch.inf), dim=-1)
    return torch.matmul(weights.unsqueeze(-2), pieces(v)).squeeze(-2)


PATIENT = banded
FACTS = {"layout": "BND", "causal": True, "window": 4, "square": True}
INPUTS = {"q": "b n d", "k": "b n d", "v": "b n e"}
SIZES = {"n": (1, 12)}
