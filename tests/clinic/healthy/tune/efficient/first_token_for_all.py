"""The first token sees and is seen by all; the others see neighbours."""

import torch

ONE_SIDED = 2


def pattern(n_q, n_k):
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)[None, :]
    return ((i - j).abs() <= ONE_SIDED) | (i == 0) | (j == 0)


def long_attention(queries, keys, values):
    """(batch, length, heads, width), as are all three."""
    n, d = queries.shape[1], queries.shape[3]
    device = queries.device
    reach = torch.arange(-ONE_SIDED, ONE_SIDED + 1, device=device)
    places = torch.arange(n, device=device)[:, None] + reach
    # the first token has a column of its own, and none among the neighbours
    there = (places > 0) & (places < n)
    places = places.clamp(0, n - 1)
    near_k, near_v = keys[:, places], values[:, places]  # b n w h d

    scale = d**-0.5
    local = torch.einsum("bnhd,bnwhd->bhnw", queries, near_k) * scale
    local = local.masked_fill(~there, float("-inf"))
    first = torch.einsum("bnhd,bhd->bhn", queries, keys[:, 0]) * scale
    w = torch.cat((first.unsqueeze(-1), local), dim=-1).softmax(dim=-1)
    out = torch.einsum("bhn,bhe->bnhe", w[..., 0], values[:, 0])
    out = out + torch.einsum("bhnw,bnwhe->bnhe", w[..., 1:], near_v)

    look = torch.einsum("bhd,bmhd->bhm", queries[:, 0], keys) * scale
    whole = torch.einsum("bhm,bmhe->bhe", look.softmax(dim=-1), values)
    return torch.cat((whole[:, None], out[:, 1:]), dim=1)


PATIENT = long_attention
FACTS = {"layout": "BNHD", "table": pattern, "square": True}
INPUTS = {"queries": "b n h d", "keys": "b n h d", "values": "b n h e"}
SIZES = {"n": (1, 14)}
