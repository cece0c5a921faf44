"""What a block hands on to its attention besides tokens.

Of an attention in a block only that is asked which the block needs of it: who
is handed no mask, or one for padding alone, need not know any other.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import calling
from selfattn.doctor.kinds.blocks.recording import (
    BATCH,
    MASKS,
    N_K,
    N,
    handed,
    is_text,
    recorded,
)
from selfattn.doctor.kinds.blocks.told_names import needs
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

AXES = {(BATCH,): "BN", (BATCH, 1, 1): "B11N"}  # before those of the keys
LARGE = -1000.0  # what is added is below, where a key is hidden


def of_part(
    part: nn.Module,
    call: Callable[..., Any],
    wide: tuple[int, int | None],
    facts: Facts,
) -> Facts:
    """What is known of an attention by what was told, and how it is handed.

    Its axes need not be the block's, which may turn them going in.
    """
    told, padding = calling.of_attention(facts), bool(facts.get("padding"))
    seen = recorded(part, call, wide[0], wide[1] is not None, wide[1])
    if seen.widths:
        told = {**told, "layout": "NBD" if seen.turned else "BND"}
    return {**told, **of_masks(part, call, wide, padding)}


def of_masks(
    part: nn.Module,
    call: Callable[..., Any],
    wide: tuple[int, int | None],
    padding: bool,
) -> Facts:
    """What is known of a part's mask by how its block calls it.

    Args:
        part: an attention of the block's.
        call: calls the block with x, perhaps a context, and masks of ours.
        wide: how wide they are; None: it takes no context.
        padding: whether a mask of ours is for padding.
    """
    if isinstance(part, nn.MultiheadAttention):
        return {}  # everybody knows how it is called
    usual, masked, hidden = both_ways(part, call, wide, padding)
    if not usual:
        return {}  # it is not called, or cannot be
    if not has_mask(usual, masked):
        return without(part)
    names = [n for n, given in masked.items() if is_mask(n, given)]
    if not padding or len(names) != 1:
        return {}
    called = {"mask": names[0], "padding": None}
    return {"names": called, **meant(masked[names[0]], hidden)}


def both_ways(
    part: nn.Module,
    call: Callable[..., Any],
    wide: tuple[int, int | None],
    padding: bool,
) -> tuple[Facts, Facts, Tensor]:
    """What a part is handed, without a mask of ours and with one; and that."""
    texts = [
        numbers(BATCH, n, d)
        for n, d in zip((N, N_K), wide, strict=True)
        if d is not None
    ]
    hidden = torch.ones(BATCH, texts[-1].shape[1], dtype=torch.bool)
    hidden[:, -1] = False
    of_ours = (
        {"padding": hidden} if padding else {"mask": hidden[:1].expand(N, -1)}
    )
    return (
        handed(part, call, *texts),
        handed(part, call, *texts, **of_ours),
        hidden,
    )


def has_mask(*given: Facts) -> bool:
    """Whether there is a mask in what a part is handed, in any call."""
    return any(is_mask(*one) for each in given for one in each.items())


def is_never_masked(
    part: nn.Module,
    call: Callable[..., Any],
    wide: tuple[int, int | None],
    padding: bool,
) -> bool:
    """Whether a part is called, and handed no mask, as in `of_masks`."""
    if isinstance(part, nn.MultiheadAttention):
        return False  # everybody knows how it is called
    usual, masked, _ = both_ways(part, call, wide, padding)
    return bool(usual) and not has_mask(usual, masked)


def is_mask(name: str, given: Any) -> bool:
    """Whether a part is handed a mask, by its name or by its axes."""
    if not isinstance(given, Tensor):
        return False
    called = any(word in name.lower() for word in MASKS)
    return called or not is_text(given)


def without(part: nn.Module) -> Facts:
    """That a part takes no mask, as it is given none; None if it must be."""
    must = [
        one.name
        for one in trial_calls.listed(part)[1:]
        if needs(part, one.name) and any(word in one.name for word in MASKS)
    ]
    none: Facts = {"names": {"mask": None, "padding": None}}
    return {**none, "call": dict.fromkeys(must)} if must else none


def meant(given: Tensor, hidden: Tensor) -> Facts:
    """What a mask says that stands for ours, by its axes and its numbers."""
    axes = AXES.get(tuple(given.shape[:-1]))
    if axes is None:
        return {}
    said = given.reshape(hidden.shape)
    if said.dtype != torch.bool and bool((said[~hidden] < LARGE).all()):
        return {"mask_axes": axes, "mask": "add"}
    for meaning, table in (("keep", hidden), ("block", ~hidden)):
        if said.to(torch.bool).equal(table):
            return {"mask_axes": axes, "mask": meaning}
    return {"mask_axes": axes}
