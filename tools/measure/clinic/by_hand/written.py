"""Formulas of layers and blocks as functions, as their makers would tell."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from tools.measure.clinic.by_hand import (
    decoder_blocks,
    encoder_blocks,
    measured_decoder_blocks,
    measured_encoder_blocks,
)
from tools.measure.clinic.by_hand.calls import what_comes_in, what_is_seen
from tools.measure.clinic.by_hand.queries import OWN, by_query
from tools.measure.clinic.patients import Patient, Style

BLOCKS = (
    decoder_blocks.BLOCKS
    | encoder_blocks.BLOCKS
    | measured_decoder_blocks.BLOCKS
    | measured_encoder_blocks.BLOCKS
)


def formula_of(style: Style, made: Patient) -> Callable[..., Tensor] | None:
    """What a layer or block computes, in loops; None if no such is written.

    Args:
        style: of which the formula is wanted.
        made: one of that style, for what is told of it.
    """
    name = f"{style.kind}/{style.name}"
    if name in BLOCKS:
        return of_block(BLOCKS[name], made)
    return of_layer(name, style.kind, made) if name in OWN else None


def of_block(
    written: Callable[..., Tensor], made: Patient
) -> Callable[..., Tensor]:
    """What a block computes, token by token."""

    def formula(block: nn.Module, *arguments: Any, **named: Any) -> Tensor:
        """Its output, of the block's weights and of what it is given."""
        called = inspect.signature(made.thing.forward)
        return written(block, **called.bind(*arguments, **named).arguments)

    return formula


def of_layer(name: str, kind: str, made: Patient) -> Callable[..., Tensor]:
    """What a layer computes, query by query."""
    facts = made.facts
    described = {n: w for way in made.inputs for n, w in way.items()}

    def formula(layer: nn.Module, *arguments: Any, **named: Any) -> Tensor:
        """Its output, of the layer's weights and of what it is given."""
        called = inspect.signature(made.thing.forward)
        given = called.bind(*arguments, **named).arguments
        x, context = what_comes_in(facts, kind, given)
        turned = facts["layout"] == "NBD"
        n_q, n_k = (t.shape[0 if turned else 1] for t in (x, context))
        seen = what_is_seen(facts, described, given, n_q, n_k)
        seen = seen.expand(x.shape[1 if turned else 0], -1, -1)
        heads = facts["n_heads"]
        output = by_query(name, layer, heads, described, given, seen)
        return output.transpose(0, 1) if turned else output

    return formula
