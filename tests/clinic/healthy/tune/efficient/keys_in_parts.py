"""Parts of the keys give outputs and logarithms of sums, which are merged."""

import itertools

import torch


def part(q, k, v):
    s = torch.einsum("bhid,bhjd->bhij", q, k) / q.size(-1) ** 0.5
    lse = torch.logsumexp(s, dim=-1)
    return torch.exp(s - lse[..., None]) @ v, lse


def decode(q, k, v, parts=3):
    n = k.size(2)
    cuts = [n * i // parts for i in range(parts + 1)]
    outs, sums = [], []
    for a, b in itertools.pairwise(cuts):
        if a < b:
            o, s = part(q, k[:, :, a:b], v[:, :, a:b])
            outs.append(o)
            sums.append(s)
    share = torch.stack(sums).softmax(dim=0)
    return (torch.stack(outs) * share[..., None]).sum(dim=0)


PATIENT = decode
FACTS = {"layout": "BHND"}
INPUTS = {"q": "b h n d", "k": "b h m d", "v": "b h m e"}
SIZES = {"m": (1, 17)}
