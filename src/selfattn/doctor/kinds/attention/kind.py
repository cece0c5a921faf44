"""Functions `attend(q, k, v, …)`, under whatever names and in any layout."""

from typing import Any

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Fact, Kind, UnclearError
from selfattn.doctor.kinds.attention.calling import adapt, argument_names
from selfattn.doctor.kinds.attention.mistakes import CONVENTIONS, MISTAKES
from selfattn.doctor.kinds.attention.probes import OPTIONAL, PROBES
from selfattn.doctor.kinds.mask_meanings import MEANINGS
from selfattn.doctor.patient import Facts
from selfattn.dot_product import attention

FACTS = {
    "layout": Fact(
        "the axes of q, k and v",
        {
            "any": "any axes, tokens, features",
            "BHND": "batch, heads, tokens, features",
            "BNHD": "batch, tokens, heads, features",
            "BND": "batch, tokens, features",
        },
    ),
    "mask": Fact(
        "what a mask says",
        MEANINGS,
        of="mask",
    ),
    "mask_axes": Fact(
        "which axes a mask has",
        {
            "any": "any that broadcast to the scores",
            "all": "all those of the scores",
        },
        of="mask",
    ),
    "names": Fact("its names for q, k, v, mask and causal, as a dict"),
    "empty_row": Fact(
        "what a query gets that may see nothing",
        {
            "zeros": "zeros",
            "nan": "NaN",
            "average": "the average of all values",
            "everything": "what it would get without a mask",
        },
        tried=False,
    ),
    "alignment": Fact(
        "the key on which, if causal, the last or first query sits",
        {"last": "the last on the last", "first": "the first on the first"},
        tried=False,
    ),
}


def look(thing: Any, said: Facts) -> dict[str, Any]:
    """The names of its arguments, and what it has none for."""
    if not callable(thing):
        raise UnclearError("A function is asked for: hand over itself.")
    names = argument_names(thing) | dict(said.get("names") or {})
    flags = {"mask", "causal"} & names.keys()
    wanted = {"mask": {"mask"}, "causal": {"causal"}}
    wanted["both"] = {"mask", "causal"}
    lacks = {
        need: "it has no argument for it"
        for need, flags_of_it in wanted.items()
        if not flags_of_it <= flags
    }
    has = [need for need in ("mask", "causal") if need in names]
    seen: dict[str, Any] = {"names": names, "lacks": lacks, "has": has}
    if "mask" in lacks:
        seen |= {"mask": "keep", "mask_axes": "any"}
    return seen


REFERENCE = Exercise(
    "attention",
    asks="softmax(q kᵀ / √d) v, under a mask or a causal flag",
    solution=attention,
    probes=PROBES,
    by_name=("mask", "causal"),
    mistakes=list(MISTAKES),
    optional=OPTIONAL,
    conventions=CONVENTIONS,
)

KIND = Kind(
    "attention",
    asks=REFERENCE.asks,
    exercise=lambda thing, facts: REFERENCE,
    facts=FACTS,
    look=look,
    adapt=adapt,
)
