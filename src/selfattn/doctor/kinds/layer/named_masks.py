"""Which argument of a layer is its mask, whatever it is called."""

import inspect
from collections.abc import Callable
from typing import Any

from selfattn.doctor.kinds.layer.constructing import is_rest
from selfattn.doctor.patient import Facts

MASKLIKE = ("mask", "hide", "hidden", "ignor", "lengths", "_lens", "allow")
NO_MASK = ("head", "past", "cache", "posit", "state")


def by_what_was_told(
    forward: Callable[..., Any], names: Facts, told: Facts
) -> dict[str, Any]:
    """The name of its mask; what is called padding, if that is the one told.

    Who tells what a mask says has one, whatever he calls it.
    """
    padding = names["padding"]
    if told.get("mask") and padding and not told.get("padding"):
        return {"mask": padding, "padding": None}
    return {"mask": like_a_mask(forward, names, told)}


def like_a_mask(
    forward: Callable[..., Any], names: Facts, told: Facts
) -> str | None:
    """The one argument left, if it is to be a mask.

    So says who tells what a mask means, or padding of which no argument has
    the name; or else its own name.
    """
    padded = told.get("padding") and names["padding"] is None
    meant = bool(told.get("mask") or padded)
    left = [
        name
        for name, one in after_texts(forward, names).items()
        if any(one.default is free for free in (None, one.empty))
        and name not in (told.get("call") or {})
        and not any(word in name for word in NO_MASK)
        and (meant or "pad" not in name)
    ]
    like = [name for name in left if any(word in name for word in MASKLIKE)]
    # What it needs and is called otherwise may be anything.
    if len(like) == 1:
        return like[0]
    return left[0] if len(left) == 1 and meant else None


def after_texts(
    forward: Callable[..., Any], names: Facts
) -> dict[str, inspect.Parameter]:
    """The arguments that are neither x, nor have a name that is known."""
    known = {x for x in names.values() if isinstance(x, str)}
    known |= {*(names["qkv"] or ())}
    listed = inspect.signature(forward).parameters
    if not (names.get("x") or names["qkv"]):
        known |= {*list(listed)[:1]}
    return {
        name: one
        for name, one in listed.items()
        if name not in known and not is_rest(one)
    }
