"""Flash attention against the fused kernel and the whole table."""

import math
from collections.abc import Iterator
from functools import partial

from selfattn import attention, flash_attention
from tools.measure.bench.race import Race, sdpa


def naive(q, k, v):
    """What everybody writes first: the whole table of scores."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.softmax(dim=-1) @ v


def races() -> Iterator[Race]:
    """Tiles against the fused kernel and against the whole table."""
    ours = {"naive": naive, "flash_attention": flash_attention}
    for n in (1024, 4096):
        for training in (False, True):
            fair = dict.fromkeys(["sdpa", *ours], attention)
            yield Race("full", n, training, {"sdpa": sdpa, **ours}, fair)
            past = partial(attention, causal=True)
            both = {
                "sdpa": partial(sdpa, causal=True),
                "flash_attention": partial(flash_attention, causal=True),
            }
            fair = dict.fromkeys(both, past)
            yield Race("causal", n, training, both, fair)
