"""What both kinds of blocks are: their own parts, found, joined and called.

An encoder block and a decoder block have other parts, and other words for
them; what is asked of these, and of the dropout between them, is one.
"""

from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor, nn

from selfattn.doctor.deviations.training import with_dropout
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.blocks.calling import prepare
from selfattn.doctor.kinds.blocks.exercise import Ordered, of_parts
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import Probe


class Wide(Ordered, Protocol):
    """Parts of which the width is known, too."""

    @property
    def d_model(self) -> int:
        """The number of features of a token."""


def kind_of_block(
    name: str,
    block: Callable[..., Tensor],
    *,
    words: tuple[str, str],
    parts_of: Callable[[nn.Module, Facts], Wide],
    of_width: Callable[[int], tuple[Probe, ...]],
    mistakes: tuple[Mistake, ...],
    healthy: Callable[[], nn.Module],
    **described: Any,
) -> Kind:
    """The kind of blocks with these parts.

    Args:
        name: what it is called by.
        block: of the parts and inputs, the right output.
        words: as in `of_parts`.
        parts_of: finds the parts of a block.
        of_width: makes inputs as wide as the parts.
        mistakes: wrong answers of the same arguments as ``block``.
        healthy: makes a healthy block, of which nothing need be said.
        described: what else a `Kind` is told: does, facts, read, adapt.
    """

    def exercise(thing: Any, facts: Facts) -> Exercise:
        parts = parts_of(thing, facts)
        probes = of_width(parts.d_model)
        made = of_parts(name, block, parts, probes, mistakes, words)
        return with_dropout(made, facts.get("dropout"))

    return Kind(
        name,
        exercise=exercise,
        prepare=prepare,
        examples=lambda: {"": (healthy(), {})},
        **described,
    )
