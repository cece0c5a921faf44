"""How makers of such tables are called, and how their features lie."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds.positions import waves
from selfattn.doctor.kinds.trial_calls import (
    as_tensor,
    listed,
    outcome,
)
from selfattn.doctor.patient import Facts, handed, parameters

BASES = ("base", "theta", "max_period", "max_timescale", "wavelength")
SHORTEST = "min_timescale"  # of which the base is so many
LAYOUTS = ("pairs", "halves")  # that are tried; sines come first, if any do
WIDTHS = ("d_model", "dim", "d", "embed_dim", "n_embd", "hidden", "channels")


FACTS = {
    "layout": Fact(
        "how the features are ordered",
        {
            "pairs": "each sine beside its cosine",
            "halves": "all sines, then all cosines",
            "cosines first": "all cosines, then all sines",
        },
    ),
    "base": Fact(
        "the base of its rates; 10000 when not said",
        saying=sayings.AT_LEAST_ONE,
    ),
    "width_first": Fact(
        "whether it is called with (d_model, n)", saying=sayings.FLAG
    ),
    "ends": Fact(
        "where the exponents end",
        {
            "before 1": "at 1 - 2/d, as in the paper",
            "at 1": "at 1, as in tensor2tensor",
        },
        tried=False,
    ),
    "call": Fact(
        "call(patient, n, d_model) returns the table", saying=sayings.FUNCTION
    ),
}


def read(thing: Any, told: Facts) -> Reading:
    """Whether its width comes first."""
    names = [name.lower() for name in parameters(thing)]
    first = bool(names) and names[0] in WIDTHS
    seen: dict[str, Any] = {"width_first": told.get("width_first", first)}
    if told.get("call") is None:
        seen |= found_out(thing, {**told, **seen})
    wanted = {"layout": LAYOUTS} if "layout" not in told else {}
    if "width" in seen:
        why = "its number of features is fixed"
        return Reading(seen, wanted, dict.fromkeys(("odd", "single"), why))
    return Reading(seen, wanted, of_odd_widths(thing, {**told, **seen}))


def of_odd_widths(thing: Any, facts: Facts) -> dict[str, str]:
    """Why it is asked for no odd number of features, if it makes none.

    A model's width is even, and nearly all count in pairs. A single feature
    is another matter: some make one of what they raise for in others.
    """
    odd, even = (outcome(rows, thing, facts, 3, d) for d in (7, 8))
    if odd is None and isinstance(even, Tensor):
        return {"odd": "it raises for an odd number of features"}
    if isinstance(odd, Tensor) and odd.shape != (3, 7):
        why = "of an odd number of features it makes another number"
        return {"odd": why, "single": why}
    return {}


def found_out(thing: Any, facts: Facts) -> dict[str, Any]:
    """What else it is handed: positions, a base; or no width, but its own."""
    named = [p.name for p in listed(thing) if p.default is p.empty]
    of_base = [n for n in named if n in BASES]
    base: dict[str, Any] = {"by base": of_base[0]} if of_base else {}
    base |= {"shortest": 1.0} if SHORTEST in named else {}
    ways: tuple[dict[str, Any], ...] = ({}, {"of positions": True})
    for more in ways:
        seen = {**base, **more}
        made = outcome(rows, thing, {**facts, **seen}, 3, 8)
        if as_table(made, 3, 8) is not None:
            return seen
    made = as_table(outcome(handed, thing, 3), 3, None)
    if len(named) == 1 and made is not None:
        return {"width": made.shape[-1]}
    return base


def as_table(made: Any, n: int, d: int | None) -> Tensor | None:
    """A table of these sizes; None if it is none."""
    made = without_ones(made)
    fits = isinstance(made, Tensor) and made.ndim == 2 and len(made) == n
    return made if fits and d in (None, made.shape[-1]) else None


def without_ones(made: Any) -> Any:
    """A table without axes of one for texts, wherever these stand."""
    made = as_tensor(made)
    while isinstance(made, Tensor) and made.ndim > 2:
        one = next((i for i in (0, 1) if made.shape[i] == 1), None)
        if one is None:
            break
        made = made.squeeze(one)
    return made


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with its two numbers; give its table our axes and order."""

    def sinusoidal(n: int, d_model: int) -> object:
        made = rows(thing, facts, n, d_model)
        if not isinstance(made, Tensor) or made.ndim != 2:
            return made
        if "float64" in (facts.get("dtypes") or ()):
            made = made.float() if made.dtype == torch.float64 else made
        if facts["layout"] == "cosines first":
            made = made.roll(-(made.shape[-1] // 2), dims=-1)
        return made if facts["layout"] == "pairs" else in_pairs(made)

    return sinusoidal


def rows(thing: Any, facts: Facts, n: int, d_model: int) -> object:
    """Its table, without the axis for texts in front."""
    if facts.get("call") is not None:
        return without_ones(facts["call"](thing, n, d_model))
    of: Any = torch.arange(n) if facts.get("of positions") else n
    given = [d_model, of] if facts["width_first"] else [of, d_model]
    if "width" in facts:
        given = [of]
    name = facts.get("by base")
    base = {name: facts.get("base") or waves.BASE} if name else {}
    base |= {SHORTEST: facts["shortest"]} if "shortest" in facts else {}
    return without_ones(handed(thing, *given, **base))


def in_pairs(made: Tensor) -> Tensor:
    """A table of all sines, then all cosines, with the two side by side."""
    d = made.shape[-1]
    order = torch.empty(d, dtype=torch.long)
    order[0::2] = torch.arange((d + 1) // 2)
    order[1::2] = torch.arange((d + 1) // 2, d)
    return made[:, order]
