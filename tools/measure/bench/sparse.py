"""The patterns of the Sparse Transformer."""

import math
from collections.abc import Iterator
from functools import partial

from selfattn import attention, fixed_attention, strided_attention
from selfattn.efficient.sparse import fixed_mask, strided_mask
from tools.measure.bench.race import Race, lean_sizes, sdpa


def races() -> Iterator[Race]:
    """The Sparse Transformer's patterns, strides of √n, against all keys."""
    for n, training in lean_sizes(1024, 4096):
        stride = math.isqrt(n)
        race = {
            "sdpa": partial(sdpa, causal=True),
            "strided_attention": partial(strided_attention, causal=True),
            "fixed_attention": partial(fixed_attention, causal=True),
        }
        fair = {
            "sdpa": partial(attention, causal=True),
            "strided_attention": by_mask(strided_mask, stride),
            "fixed_attention": by_mask(fixed_mask, stride),
        }
        yield Race("causal", n, training, race, fair)


def by_mask(published, *options):
    """Causal attention on the last queries, with a published mask."""

    def expected(q, k, v):
        mask = published(q.shape[-2], k.shape[-2], *options)
        return attention(q, k, v, mask=mask, causal=True)

    return expected
