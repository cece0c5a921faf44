"""What both kinds of blocks are: their own parts, found, joined and called.

An encoder block and a decoder block have other parts, and other words for
them; what is asked of these, and of the dropout between them, is one.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from torch import Tensor, nn

from selfattn.doctor.deviations.training import with_dropout
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.kind import Examples, Fact, Kind, Reading
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
    does: str,
    words: tuple[str, str],
    parts_of: Callable[[nn.Module, Facts], Wide],
    of_width: Callable[[int], tuple[Probe, ...]],
    mistakes: tuple[Mistake, ...],
    facts: Mapping[str, Fact],
    read: Callable[[Any, Facts], Reading],
    adapt: Callable[[Any, Facts], Callable[..., object]],
    healthy: Callable[[], nn.Module],
) -> Kind:
    """The kind of blocks with these parts.

    Args:
        name: see `Kind`.
        block: of the parts and inputs, the right output.
        does: see `Kind`.
        words: see `of_parts`.
        parts_of: finds the parts of a block.
        of_width: makes inputs as wide as the parts.
        mistakes: wrong answers of the same arguments as ``block``.
        facts: see `Kind`.
        read: see `Kind`.
        adapt: see `Kind`.
        healthy: makes a healthy block, of which nothing need be said.
    """

    def exercise(thing: Any, facts: Facts) -> Exercise:
        parts = parts_of(thing, facts)
        probes = of_width(parts.d_model)
        made = of_parts(name, block, parts, probes, mistakes, words)
        return with_dropout(made, facts.get("dropout"))

    def examples() -> Examples:
        return {"": (healthy(), {})}

    return Kind(
        name,
        does=does,
        exercise=exercise,
        facts=facts,
        read=read,
        prepare=prepare,
        adapt=adapt,
        examples=examples,
    )
