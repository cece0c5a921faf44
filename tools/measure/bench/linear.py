"""Linear attention."""

from collections.abc import Callable, Iterator
from functools import partial

import torch.nn.functional as F
from torch import Tensor

from selfattn import attention, linear_attention
from selfattn.efficient.linear import linear_weights
from tools.measure.bench.fast_transformers import fast_linear
from tools.measure.bench.race import Race, sdpa, sizes


def definition(q, k, v, causal=False):
    """What linear attention stands for, the queries being the last."""
    return linear_weights(q, k, causal=causal) @ v


def three_lines(q, k, v):
    """Linear attention as everybody would write it first."""
    q, k = F.elu(q) + 1, F.elu(k) + 1
    total = q @ k.sum(dim=-2)[..., None]
    return q @ (k.mT @ v) / total


def products(q, k, v):
    """Its two products alone, which nobody can do without; no attention."""
    return q @ (k.mT @ v)


def softmaxes(q, k, v):
    """The other kernel of one library: a softmax on each side.

    Each query's features sum to 1/√d, and those of the keys, over all keys,
    to one.
    """
    return (q.softmax(dim=-1) / q.shape[-1] ** 0.5) @ k.softmax(dim=-2).mT @ v


def races() -> Iterator[Race]:
    """Linear attention, causal and not, against softmax attention."""
    for causal in (True, False):
        for n, training in sizes(256, 512, 1024, 4096, 16384):
            race = {
                "sdpa": partial(sdpa, causal=causal),
                "linear_attention": partial(linear_attention, causal=causal),
            }
            form = partial(definition, causal=causal)
            fair = {
                "sdpa": partial(attention, causal=causal),
                "linear_attention": form,
            }
            if not causal:
                race |= {"three lines": three_lines, "products": products}
                fair["three lines"] = form
            race |= others(causal)
            fair["pytorch-fast-transformers"] = form
            fair["linear-attention-transformer"] = softmaxes
            name = "causal" if causal else "full"
            yield Race(name, n, training, race, fair)


def others(causal: bool) -> dict[str, Callable[..., Tensor]]:
    """The other libraries' linear attention, where they are installed."""
    found = {}
    try:
        from linear_attention_transformer import (
            linear_attention_transformer as lat,
        )

        # Its kernel is another one: softmax on both sides. Causally it is
        # exact only with buckets of one, at 100 times the bytes: left out.
        if not causal:
            found["linear-attention-transformer"] = lat.linear_attn
    except ImportError:
        pass
    return found | fast_linear(causal, "pytorch-fast-transformers")
