"""In which order a function takes x, what is learnt, and eps."""

import inspect
from typing import Any

from torch import Tensor

from selfattn.doctor.kinds.norms.epsilon import EPS, SHIFTS

GAINS = ("gain", "weight", "w", "gamma", "g", "scale", "a", "alpha", "a_2")
SHAPES = ("normalized_shape", "shape", "dims")
ROLES = {
    **dict.fromkeys(GAINS, "gain"),
    **dict.fromkeys(SHIFTS, "shift"),
    **dict.fromkeys(EPS, "eps"),
    **dict.fromkeys(SHAPES, "shape"),
}
USUAL = ("x", "gain", "shift", "eps")


def roles_of(function: Any) -> dict[str, str]:
    """The role of each argument, by its name; none if one has none.

    What has no role of these is x, if it is the only one; but what has none
    and may be left out is left out.
    """
    try:
        listed = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return {}
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    roles = {}
    for p in listed:
        role = ROLES.get(p.name.lower(), "x")
        if p.kind in stars or (role == "x" and p.default is not p.empty):
            continue
        roles[p.name] = role
    found = list(roles.values())
    return roles if len({*found}) == len(found) and "x" in found else {}


def in_order(roles: dict[str, str]) -> list[str]:
    """The names of what is handed over, x first, then what is learnt."""
    return [n for role in USUAL for n, is_ in roles.items() if is_ == role]


def in_usual_order(function: Any) -> Any:
    """A function that is called with x first, then gain, shift and eps.

    It is the very one, if that is how it is called, and if it takes nothing
    else: what it need not be handed is not handed over.
    """
    roles = roles_of(function)
    usual = in_order(roles)
    if not roles or ([*roles] == usual and are_all(function, roles)):
        return function
    shape = [n for n, role in roles.items() if role == "shape"]

    def norm(x: Tensor, *others: Any, **named: Any) -> Any:
        given = dict(zip(usual, (x, *others), strict=False)) | named
        return function(**given, **dict.fromkeys(shape, x.shape[-1:]))

    had = inspect.signature(function).parameters
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    norm.__name__ = getattr(function, "__name__", "norm")
    norm.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(n, place, default=had[n].default)
            if roles[n] == "eps"
            else inspect.Parameter(n, place)
            for n in usual
        ]
    )
    return norm


def are_all(function: Any, roles: dict[str, str]) -> bool:
    """Whether a function takes these alone, each by its place."""
    listed = inspect.signature(function).parameters.values()
    return all(
        p.name in roles and p.kind is not p.KEYWORD_ONLY for p in listed
    )


def code(thing: Any, facts: Any) -> tuple[str, ...]:
    """Lines that make what is called, and its name in them."""
    name = getattr(thing, "__name__", "")
    name = name if name.isidentifier() else "answer"
    if isinstance(thing, type) or in_usual_order(thing) is thing:
        return (name,)
    roles = roles_of(thing)
    usual = in_order(roles)
    x = next(n for n, role in roles.items() if role == "x")
    given = [
        f"{n}={x}.shape[-1:]" if role == "shape" else f"{n}={n}"
        for n, role in roles.items()
    ]
    made = f"norm = lambda {', '.join(usual)}: {name}({', '.join(given)})"
    return (made, "norm")
