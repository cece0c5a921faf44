"""Decoding over a split cache: parts with their log-sums, then merged."""

import functools

import torch


def part(q, k, v, seen, scale):
    """Attention to some of the keys, and the log of what it was divided by."""
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * scale
    if seen is not None:
        scores = scores.masked_fill(seen.logical_not(), -torch.inf)
    top = (
        scores.detach()
        .amax(dim=-1, keepdim=True)
        .clamp_min(
            torch.finfo(scores.dtype).min  # if nothing is seen here
        )
    )
    p = torch.exp(scores - top)
    mass = p.sum(dim=-1, keepdim=True)
    return torch.einsum("bhqk,bkhe->bqhe", p, v), mass, top


def merge(one, other):
    """What attention to the keys of both would have given."""
    out_a, mass_a, top_a = one
    out_b, mass_b, top_b = other
    top = torch.maximum(top_a, top_b)
    grow_a, grow_b = torch.exp(top_a - top), torch.exp(top_b - top)
    # masses are (b, h, q, 1), outputs (b, q, h, e)
    out = out_a * grow_a.transpose(1, 2) + out_b * grow_b.transpose(1, 2)
    return out, mass_a * grow_a + mass_b * grow_b, top


def add_to(pending, new):
    """Parts merge as digits carry in binary: few are ever kept at a time."""
    size = 1
    while pending and pending[-1][0] == size:
        new = merge(pending.pop()[1], new)
        size *= 2
    pending.append((size, new))


def split_kv_attention(
    q, k, v, causal=False, softmax_scale=None, split_size=3
):
    """q: (batch, seqlen_q, nheads, headdim), and k and v alike.

    If causal, the last query is aligned with the last key; queries before
    all keys get zeros.
    """
    n_q, n_k = q.shape[1], k.shape[1]
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    at = torch.arange(n_k - n_q, n_k, device=q.device)
    pending = []
    for start in range(0, n_k, split_size):
        stop = min(start + split_size, n_k)
        keys = torch.arange(start, stop, device=q.device)
        seen = keys <= at[:, None] if causal else None
        piece = slice(start, stop)
        add_to(pending, part(q, k[:, piece], v[:, piece], seen, scale))
    out, mass, _ = functools.reduce(merge, (one for _, one in pending))
    mass = mass.transpose(1, 2)
    return out / torch.where(mass == 0, torch.ones_like(mass), mass)


PATIENT = split_kv_attention
FACTS = {
    "layout": "BNHD",
    "formula": "claimed",
    "alignment": "last",
    "empty_row": "zeros",
    "names": {"causal": "causal"},
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "q": "b n h d",
    "k": "b m h d",
    "v": "b m h e",
    "causal?": "true",
}
