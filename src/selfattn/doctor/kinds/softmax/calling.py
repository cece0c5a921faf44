"""How softmax is called: over which axis, if it must be told."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds.mask_meanings import MEANINGS, as_meant
from selfattn.doctor.kinds.softmax.masked import as_lengths
from selfattn.doctor.patient import Facts, handed, parameters

AXES = ("dim", "axis")


MASKS = ("mask", "attn_mask", "lengths", "length", "seq_len", "lens")
FACTS = {
    "mask": Fact(
        "what its mask says, if it takes one",
        {**MEANINGS, "lengths": "how many keys each text has"},
        need="mask",
    ),
    "names": Fact(
        "its name for a mask, as a dict", saying=sayings.names_for("mask")
    ),
    "axis": Fact(
        "the name of the argument that says over which axis",
        saying=sayings.NAME,
    ),
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
    listed = parameters(called)
    masks = [name for name in MASKS if name in listed]
    masks += [name for name in listed[1:] if "mask" in name]
    of_mask = dict(told.get("names") or {}).get("mask")
    masked = of_mask or (masks[0] if masks else None)
    seen: dict[str, Any] = {"axis": names[0] if names else None}
    if masked is None:
        why = "it has no argument for it"
        return Reading({**seen, "mask": "keep"}, lacks={"mask": why})
    if "len" in masked and "mask" not in told:
        seen["mask"] = "lengths"
    return Reading({**seen, "masked": masked}, has=("mask",))


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with scores, and with the last axis if it asks for one."""

    def softmax(scores: Tensor, mask: Tensor | None = None) -> object:
        axis = facts.get("axis")
        given: dict[str, Any] = {axis: -1} if axis else {}
        if mask is not None:
            meaning = facts["mask"]
            given[facts["masked"]] = (
                as_lengths(mask)
                if meaning == "lengths"
                else as_meant(mask, meaning, scores.dtype)
            )
        return handed(thing, scores, **given)

    return softmax
