"""What each mechanism must equal: `attention`, with the mask it publishes.

Everything else is held to itself: to what it gives for the same numbers in
float64, plainly laid out, alone in its batch. That these plain results are
right is for the other tests to say.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.dot_product import attention, attention_steps, attention_weights
from selfattn.efficient.linear import elu_plus_one
from selfattn.efficient.linformer import MeanPooling
from selfattn.efficient.longformer import longformer_mask
from selfattn.efficient.performer import random_directions
from selfattn.efficient.reformer import lsh_mask
from selfattn.efficient.sparse import fixed_mask, strided_mask
from selfattn.efficient.swin import swin_bias, swin_mask
from selfattn.masks import window_mask


def exact(q, k, v, *, mask=None, bias=None, causal=False, **options) -> Tensor:
    """`attention` itself; how it is cut into tiles makes no difference."""
    own = {n: options[n] for n in ("scale", "dropout_p") if n in options}
    return attention(q, k, v, mask=mask, bias=bias, causal=causal, **own)


def steps(q, k, v, **options) -> tuple[Tensor, ...]:
    """Every step of it."""
    return attention_steps(q, k, v, **options)


def with_sums(q, k, v, **options) -> tuple[Tensor, Tensor]:
    """The output, and the logarithm of what each softmax divides by."""
    biased = attention_steps(q, k, v, **options).biased
    seen = torch.ones_like(biased, dtype=torch.bool)
    if options.get("mask") is not None:
        seen = seen & options["mask"]
    if options.get("causal"):
        seen = seen.tril(k.shape[-2] - q.shape[-2])
    log_sum = biased.masked_fill(~seen, -math.inf).logsumexp(-1)
    return exact(q, k, v, **options), log_sum


def near(mask: Callable[..., Tensor], *needs: str) -> Callable[..., Tensor]:
    """`attention` with a mask of n_q, n_k and the mechanism's options."""

    def definition(q, k, v, *, causal=False, **options):
        refuse_tables(options)
        own = {n: options[n] for n in needs if options.get(n) is not None}
        if "stride" in needs and "stride" not in own:
            own["stride"] = max(1, math.isqrt(k.shape[-2]))
        seen = mask(q.shape[-2], k.shape[-2], **own)
        return attention(q, k, v, mask=seen.to(q.device), causal=causal)

    return definition


def refuse_tables(options: dict[str, Any]) -> None:
    """Of these nothing is told but that they refuse a mask and a bias."""
    if options.get("mask") is not None or options.get("bias") is not None:
        raise ValueError("a table of all pairs is to be refused")


def swin(
    q, k, v, *, grid, window, shift=(0, 0), relative_bias=None, **options
):
    """`attention` with Swin's mask and bias."""
    refuse_tables(options)
    bias = None if relative_bias is None else swin_bias(relative_bias, grid)
    mask = swin_mask(grid, window, shift)
    causal = options.get("causal", False)
    return attention(q, k, v, mask=mask, bias=bias, causal=causal)


def lsh(q, k, v, *, causal=False, **options):
    """`attention` with the mask that its own queries and keys make."""
    refuse_tables(options)
    mask = lsh_mask(q, k, causal=causal, **options)
    return attention(q, k, v, mask=mask)


def linear(q, k, v, *, causal=False, feature_map=elu_plus_one, **options):
    """φ(q)φ(k)ᵀ with rows that sum to one, n × n."""
    refuse_tables(options)
    weights = feature_map(q) @ feature_map(k).mT
    if causal:
        weights = weights.tril(k.shape[-2] - q.shape[-2])
    total = weights.sum(dim=-1, keepdim=True)
    return weights / total.masked_fill(total == 0, 1.0) @ v


def performer(q, k, v, *, causal=False, **options):
    """Its features, with their table of weights, by logarithms."""
    refuse_tables(options)
    own = {n: options[n] for n in ("seed", "orthogonal") if n in options}
    n_features = options.get("n_features", 256)
    omega = random_directions(n_features, q.shape[-1], **own).to(q)
    q, k = (x / x.shape[-1] ** 0.25 for x in (q, k))
    of_k = k @ omega.mT - k.square().sum(dim=-1, keepdim=True) / 2
    table = (q @ omega.mT)[..., :, None, :] + of_k[..., None, :, :]
    nothing = q[..., :1] * 0, k[..., :1] * 0
    return attention(*nothing, v, bias=table.logsumexp(-1), causal=causal)


def linformer(module, q, k, v, **options):
    """`attention` to three means of neighbours."""
    refuse_tables(options)
    if options.get("causal"):
        raise ValueError("a mixture of all times is to be refused")
    if k.shape[-2] == 0:
        return attention(q, k, v)
    mix = MeanPooling(3)
    return attention(q, mix(k), mix(v))


# By the name of the callable. A mechanism that is not here is an error.
DEFINITIONS: dict[str, Callable[..., Any]] = {
    "attention": exact,
    "attention_steps": steps,
    "attention_weights": attention_weights,
    "fused_attention": exact,
    "flash_attention": exact,
    "flash_attention_with_logsumexp": with_sums,
    "ring_attention": exact,
    "ulysses_attention": exact,
    "sliding_window_attention": near(window_mask, "window"),
    "longformer_attention": near(longformer_mask, "window", "global_at"),
    "strided_attention": near(strided_mask, "stride"),
    "fixed_attention": near(fixed_mask, "stride", "n_summaries"),
    "swin_attention": swin,
    "lsh_attention": lsh,
    "linear_attention": linear,
    "performer_attention": performer,
    "LinformerAttention.forward": linformer,
}


def definition_of(name: str) -> Callable[..., Any] | None:
    """What a callable must equal, if that is not itself."""
    return next(
        (d for n, d in DEFINITIONS.items() if f".{name}".endswith(f".{n}")),
        None,
    )
