"""A sliding window."""

from collections.abc import Callable, Iterator
from functools import partial

from torch import Tensor

from selfattn import attention, sliding_window_attention
from selfattn.masks import window_mask
from tools.measure.bench.race import WINDOW, Race, sdpa, sizes


def windowed(q, k, v, window=WINDOW, causal=True):
    """Attention within a window, by its mask."""
    mask = window_mask(q.shape[-2], k.shape[-2], window)
    return attention(q, k, v, mask=mask, causal=causal)


def races() -> Iterator[Race]:
    """A causal window of 256 against causal attention to everything."""
    past = partial(attention, causal=True)
    ours = partial(sliding_window_attention, window=WINDOW, causal=True)
    sides = partial(sliding_window_attention, window=WINDOW)
    for n, training in sizes(256, 512, 1024, 4096, 16384):
        race = {"sdpa": partial(sdpa, causal=True)}
        fair = {"sdpa": past, "sliding_window_attention": windowed}
        race["sliding_window_attention"] = ours
        race |= others(causal=True)
        fair["local-attention"] = partial(windowed, window=WINDOW + 1)
        yield Race("causal", n, training, race, fair)
        if n == 16384:
            both = {"sdpa": sdpa, "sliding_window_attention": sides}
            both |= others(causal=False)
            form = partial(windowed, causal=False)
            fair = {
                "sdpa": attention,
                "sliding_window_attention": form,
                "local-attention": partial(form, window=WINDOW + 1),
            }
            yield Race("both sides", n, training, both, fair)


def others(causal: bool) -> dict[str, Callable[..., Tensor]]:
    """The library's window, which when exact has a key more to each side."""
    try:
        from local_attention import LocalAttention
    except ImportError:
        return {}
    options = {"autopad": True, "exact_windowsize": True}
    peer = LocalAttention(WINDOW, causal=causal, **options)
    return {"local-attention": lambda q, k, v: peer(q, k, v)}
