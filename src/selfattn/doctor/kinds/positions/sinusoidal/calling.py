"""How makers of such tables are called, and how their features lie."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds.trial_calls import outcome
from selfattn.doctor.patient import Facts, parameters

WIDTHS = ("d_model", "dim", "d", "embed_dim", "n_embd", "hidden", "channels")


FACTS = {
    "layout": Fact(
        "how the features are ordered",
        {
            "pairs": "each sine beside its cosine",
            "halves": "all sines, then all cosines",
        },
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
    seen = {"width_first": told.get("width_first", first)}
    odd = outcome(rows, thing, {**told, **seen}, 3, 7)
    even = isinstance(odd, Tensor) and odd.shape != (3, 7)
    why = "of an odd number of features it makes another number"
    return Reading(seen, lacks={"odd": why, "single": why} if even else {})


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with its two numbers; give its table our axes and order."""

    def sinusoidal(n: int, d_model: int) -> object:
        made = rows(thing, facts, n, d_model)
        if not isinstance(made, Tensor) or made.ndim != 2:
            return made
        if "float64" in (facts.get("dtypes") or ()):
            made = made.float() if made.dtype == torch.float64 else made
        return in_pairs(made) if facts["layout"] == "halves" else made

    return sinusoidal


def rows(thing: Any, facts: Facts, n: int, d_model: int) -> object:
    """Its table, without the axis for texts in front."""
    if facts.get("call"):
        made = facts["call"](thing, n, d_model)
    elif facts["width_first"]:
        made = thing(d_model, n)
    else:
        made = thing(n, d_model)
    while isinstance(made, Tensor) and made.ndim > 2 and len(made) == 1:
        made = made[0]
    return made


def in_pairs(made: Tensor) -> Tensor:
    """A table of all sines, then all cosines, with the two side by side."""
    d = made.shape[-1]
    order = torch.empty(d, dtype=torch.long)
    order[0::2] = torch.arange((d + 1) // 2)
    order[1::2] = torch.arange((d + 1) // 2, d)
    return made[:, order]
