"""For a recommender: a band, joined of diagonals, and options at the end."""

from functools import reduce
from itertools import chain
from operator import or_
from typing import NamedTuple

import torch


class SessionOptions(NamedTuple):
    """What else there is to choose."""

    return_affinity: bool = False


REACH = 3  # an event and two neighbours to each side


def band(events, like):
    shifts = chain(range(1 - REACH, 0), range(REACH))
    diagonals = (
        torch.diag_embed(
            torch.ones(
                events - abs(shift), dtype=torch.bool, device=like.device
            ),
            offset=shift,
        )
        for shift in shifts
        if abs(shift) < events
    )
    return reduce(or_, diagonals)


def session_attention(targets, history, payload, options=None):
    """(users, heads, events, features), all three."""
    options = options or SessionOptions()
    if targets.shape[-2] != history.shape[-2]:
        raise ValueError("a session has as many targets as events")
    affinity = targets @ history.mT
    affinity = affinity / targets.shape[-1] ** 0.5
    near = band(targets.shape[-2], affinity)
    affinity = affinity.masked_fill(~near, float("-inf")).softmax(dim=-1)
    pooled = affinity @ payload
    return (pooled, affinity) if options.return_affinity else pooled


PATIENT = session_attention
FACTS = {
    "layout": "BHND",
    "causal": False,
    "window": 3,
    "square": True,
    "names": {"q": "targets", "k": "history", "v": "payload"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "targets": "b h n d",
    "history": "b h n d",
    "payload": "b h n e",
}
