"""A band of keys around each query, cut out by an unfolding."""

import torch
import torch.nn.functional as F

REACH = 2


def band_attention(q, k, v):
    n, d = q.shape[-2:]
    k = F.pad(k, (0, 0, REACH, REACH)).unfold(-2, 2 * REACH + 1, 1)
    v = F.pad(v, (0, 0, REACH, REACH)).unfold(-2, 2 * REACH + 1, 1)
    scores = torch.einsum("...qd,...qdw->...qw", q, k) / d**0.5
    place = torch.arange(n)[:, None] + torch.arange(-REACH, REACH + 1)
    outside = (place < 0) | (place >= n)
    scores = scores.masked_fill(outside, -torch.inf)
    return torch.einsum("...qw,...qdw->...qd", scores.softmax(dim=-1), v)


PATIENT = band_attention
FACTS = {"layout": "any", "window": 3, "square": True}
INPUTS = {"q": "b h n d", "k": "b h n d", "v": "b h n e"}
SIZES = {"n": (1, 12)}
