"""Features drawn once, all of them positive, in the place of a softmax."""

import torch

N_FEATURES = 16


def directions(d):
    """Orthogonal by blocks, the same for each width."""
    draw = torch.Generator().manual_seed(d)
    blocks = []
    for _ in range(-(-N_FEATURES // d)):
        square = torch.randn(d, d, generator=draw, dtype=torch.float64)
        blocks.append(torch.linalg.qr(square).Q * d**0.5)
    return torch.cat(blocks)[:N_FEATURES]


def feature_map(x):
    x = x * x.shape[-1] ** -0.25
    along = x @ directions(x.shape[-1]).to(x).mT
    return torch.exp(along - x.square().sum(-1, keepdim=True) / 2)


def favor(query, key, value):
    """(batch, heads, tokens, width), in time that grows with tokens only."""
    q, k = feature_map(query), feature_map(key)
    summary = torch.einsum("bhmr,bhme->bhre", k, value)
    total = torch.einsum("bhnr,bhr->bhn", q, k.sum(dim=-2))
    return torch.einsum("bhnr,bhre->bhne", q, summary) / total[..., None]


PATIENT = favor
FACTS = {
    "layout": "BHND",
    "kernel": feature_map,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"query": "b h n d", "key": "b h m d", "value": "b h m e"}
LOUDEST = 2
