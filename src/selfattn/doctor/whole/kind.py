"""The kinds of whole models, and what may be said of one."""

from functools import partial
from typing import Any

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Kind
from selfattn.doctor.whole.examining import examine_whole

FACTS = {
    "n_tokens": Fact("how many tokens it knows", saying=sayings.COUNT),
    "longest": Fact(
        "the longest sequence that it takes", saying=sayings.COUNT
    ),
    "tied": Fact("whether table and head are one", saying=sayings.FLAG),
    "left": Fact(
        "whether places count from the first real token", saying=sayings.FLAG
    ),
    "inside": Fact(
        "whether to look at the attention inside: if all else is well",
        saying=sayings.FLAG,
    ),
    "call": Fact(
        "call(model, ids) returns its output", saying=sayings.FUNCTION
    ),
    "step": Fact(
        "step(model, ids, cache) returns output and cache",
        saying=sayings.FUNCTION,
    ),
}
DOES = {
    "language-model": "of token numbers, scores of what follows each",
    "encoder": "of token numbers, a vector each, heard from both sides",
    "encoder-decoder": "of two texts, scores of what follows in the second",
}


def no_exercise(thing: Any, facts: Any) -> Any:
    """Raise: a whole model is asked what it does, beside no reference."""
    raise TypeError("a whole model has no exercise: there is no reference")


KINDS = {
    name: Kind(
        name,
        does=does,
        exercise=no_exercise,
        facts=FACTS,
        whole=partial(examine_whole, kind=name),
    )
    for name, does in DOES.items()
}
