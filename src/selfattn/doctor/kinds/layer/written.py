"""A layer held to a formula that was written out, as a function."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor

from selfattn.doctor.exercise import Exercise, UnusableError, describe
from selfattn.doctor.kinds.layer import probes, written_mistakes
from selfattn.doctor.kinds.layer.calling import adapt
from selfattn.doctor.kinds.layer.sighted import ASKS, BY_NAME
from selfattn.doctor.kinds.layer.width import widths
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import Probe

Call = Callable[..., Any]
CLAIMS = {
    "it is what its projections make it": "it is what your formula makes it",
    "a single token gets its own value": "so is a single token",
}


def of(thing: Any, facts: Facts, cross: bool = False) -> Exercise:
    """What the formula makes of the same weights and the same call."""
    formula = formula_of(thing, facts)
    d_model, d_context = widths(thing, facts, cross)
    asked = probes.of_widths(d_model, d_context, cross)
    asked = tuple(
        replace(p, claim=CLAIMS.get(p.claim, p.claim), convention="")
        for p in asked
        if may_be_asked(p, facts)
    )
    weights = written_mistakes.of_weights(
        thing, facts, lambda other: formula_of(other, facts)
    )
    name = "cross-attention" if cross else "self-attention"
    return Exercise(
        name,
        asks=ASKS,
        solution=formula,
        probes=asked,
        by_name=BY_NAME,
        mistakes=tuple(written_mistakes.of_calls(formula)),
        deviations=weights,
        optional=probes.OPTIONAL,
    )


def formula_of(thing: Any, facts: Facts) -> Call:
    """The formula of a layer with its weights, called as all layers are."""
    return in_float64(adapt(thing, facts, facts["formula"]))


def may_be_asked(probe: Probe, facts: Facts) -> bool:
    """Whether a probe asks for numbers, of a length and rows that were told.

    What becomes of a query that may see nothing is promised by that fact.
    """
    length = max(probe.sizes.get(n, 0) for n in ("n", "n_q", "n_k"))
    told = facts.get("empty_row") is not None or not probe.convention
    long = length > (facts.get("longest") or length)
    return probe.experiment is None and told and not long


def in_float64(formula: Call) -> Call:
    """A formula computed in float64, unless it can be in its type alone."""

    def wide(x: Tensor, context: Any = None, **more: Any) -> Any:
        others = None if context is None else context.double()
        try:
            value = formula(x.double(), others, **more)
        except UnusableError:
            raise
        except Exception:
            value = formula(x, context, **more)
        return checked(value, x).to(x.dtype)

    return wide


def checked(value: Any, x: Tensor) -> Tensor:
    """What a formula gives, if that has a vector for each token of x.

    A mask of other axes than it is for may make something else of it.
    """
    if not isinstance(value, Tensor) or value.shape[:-1] != x.shape[:-1]:
        raise UnusableError(
            f"your formula gives {describe(value)} for x of shape "
            f"{tuple(x.shape)}"
        )
    return value
