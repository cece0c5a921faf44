"""Longformer: a window and a token that sees all."""

import copy
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from selfattn import MultiHeadAttention, attention, longformer_attention
from selfattn.efficient.longformer import longformer_mask
from tools.measure.bench.layers import of_layers
from tools.measure.bench.race import (
    HEADS,
    WINDOW,
    Around,
    D,
    Race,
    lean_sizes,
)


def races() -> Iterator[Race]:
    """A layer with a window of 257 to each side and one global token.

    It is the last one, so that it is among the outputs that are checked.
    """
    for n, training in lean_sizes(1024, 4096):
        options = {"window": WINDOW + 1, "global_at": (n - 1,)}
        ours = partial(longformer_attention, **options)
        form = lambda q, k, v, options=options, **_: attention(  # noqa: E731
            q, k, v, mask=longformer_mask(q.shape[-2], k.shape[-2], **options)
        )
        race, fair = of_layers(ours, "longformer_attention", form, n)
        race |= others(race["longformer_attention"], n)
        if "transformers" in race:  # it has no projection of the output
            bare = copy.deepcopy(fair["longformer_attention"])
            bare.W_o = torch.nn.Identity()
            fair["transformers"] = bare
        yield Race("layer", n, training, race, fair, layer=True)


def others(
    ours: MultiHeadAttention, n: int
) -> dict[str, Callable[..., Tensor]]:
    """The layer of transformers, with our weights where both have them."""
    try:
        from transformers import LongformerConfig
        from transformers.models.longformer.modeling_longformer import (
            LongformerSelfAttention,
        )
    except ImportError:
        return {}
    config = LongformerConfig(
        hidden_size=HEADS * D,
        num_attention_heads=HEADS,
        attention_window=[2 * WINDOW],
        attention_probs_dropout_prob=0.0,
    )
    layer = LongformerSelfAttention(config, 0)
    mask = torch.zeros(1, n)
    mask[:, -1] = 10000.0  # its sign for a global token
    options = {
        "attention_mask": mask,
        "is_index_masked": mask < 0,
        "is_index_global_attn": mask > 0,
        "is_global_attn": True,
    }
    copy_weights(ours, layer)
    return {
        "transformers": Around(layer, lambda f, x: f(x, **options)[0]),
    }


def copy_weights(ours: MultiHeadAttention, theirs: torch.nn.Module) -> None:
    """Give theirs the projections of ours, the global ones the same."""
    for of_global in ("", "_global"):
        for name in ("query", "key", "value"):
            weight = getattr(ours, f"W_{name[0]}").weight
            bias = torch.zeros(HEADS * D)
            getattr(theirs, name + of_global).load_state_dict(
                {"weight": weight, "bias": bias}
            )
