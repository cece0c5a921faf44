"""What blocks are held to: their own parts, joined as they should be.

A block is known by how it joins its parts. So its reference is made of the
patient's own attention, feed-forward network and norms, and it does not
matter what these compute; each mistake joins the same parts wrongly. What the
attention computes is looked at when all that is well (`engine.within`).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from torch import Tensor

from selfattn.doctor.deviations.design import pairs, singles
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.kinds.blocks import joining
from selfattn.doctor.kinds.blocks.joining import Plan
from selfattn.doctor.kinds.blocks.parallel import SIDE_BY_SIDE
from selfattn.doctor.kinds.blocks.probes import OPTIONAL
from selfattn.doctor.probes import Probe


class Ordered(Protocol):
    """Parts of a block, of which is known where the norms stand."""

    @property
    def norms(self) -> tuple[Callable[[Tensor], Tensor], ...]:
        """One for each sublayer."""

    @property
    def layers(self) -> Callable[..., tuple[Any, ...]]:
        """Of x, perhaps a context, and a mask: the sublayers, each of x."""

    @property
    def pre(self) -> bool:
        """Whether they stand before the sublayers."""

    @property
    def apart(self) -> bool:
        """Whether the sublayers stand side by side."""


def by_plan(
    parts: Ordered,
    plan: Plan,
    *texts: Tensor,
    mask: Tensor | None = None,
) -> Tensor:
    """A block joined by a plan: of x, perhaps a context, and a mask."""
    parts = plan.parts(parts)
    layers = parts.layers(*texts, mask=plan.mask(mask))
    return joining.joined(plan, texts[0], layers, parts)


def of_parts(
    kind: str,
    block: Callable[..., Tensor],
    parts: Ordered,
    probes: tuple[Probe, ...],
    mistakes: tuple[Mistake, ...],
    words: tuple[str, str],
) -> Exercise:
    """The exercise of joining these parts.

    Args:
        kind: the name of the kind.
        block: of the parts and inputs, the right output.
        parts: those of the patient.
        probes: inputs as wide as the parts.
        mistakes: wrong answers of the same arguments as ``block``.
        words: for "both" or "all three" sublayers, and for what a mask is.
    """
    sublayers, mask = words
    usual = replace(joining.plan(len(parts.norms)), apart=parts.apart)
    known = joining.ENCODER if len(parts.norms) == 2 else joining.DECODER
    if parts.apart:
        # Those who know a block's mistakes join one sublayer after the other.
        known, mistakes = SIDE_BY_SIDE, ()

    def answer(change: Callable[[Plan], Plan]) -> Callable[..., Tensor]:
        return partial(by_plan, parts, change(usual))

    return Exercise(
        kind,
        asks=f"{formula(parts)}, for {sublayers} sublayers",
        solution=partial(block, parts),
        probes=probes,
        by_name=("mask",),
        mistakes=tuple(
            replace(known, answer=partial(known.answer, parts))
            for known in mistakes
        ),
        optional={"mask": mask, **OPTIONAL},
        deviations=singles(known, answer),
        second=lambda: pairs(known, answer),
    )


def formula(parts: Ordered) -> str:
    """How its sublayers are joined, in a line."""
    if parts.apart:
        return "x + attention(norm(x)) + network(norm(x))"
    return "x + sublayer(norm(x))" if parts.pre else "norm(x + sublayer(x))"
