"""How softmax is called: over which axis, if it must be told."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.patient import Facts, parameters

AXES = ("dim", "axis")


FACTS = {
    "axis": Fact("the name of the argument that says over which axis"),
    "empty_row": Fact(
        "what a row becomes in which all is forbidden",
        {
            "nan": "NaN",
            "zeros": "zeros",
            "average": "all weights alike",
        },
        tried=False,
    ),
}


def read(thing: Any, told: Facts) -> Reading:
    """The name of its axis, if it must be told one."""
    called = thing.forward if isinstance(thing, nn.Module) else thing
    names = [name for name in AXES if name in parameters(called)]
    return Reading({"axis": names[0] if names else None})


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with scores, and with the last axis if it asks for one."""

    def softmax(scores: Tensor) -> object:
        axis = facts.get("axis")
        return thing(scores, **({axis: -1} if axis else {}))

    return softmax
