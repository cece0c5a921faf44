"""Called: whether what is somebody's can be called as it will be.

Else Python would say so, at the first call, of one that nobody wrote; and a
function that lacks an argument looks like any other until then.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from selfattn.entering import check_function
from selfattn.signatures import shown

R = TypeVar("R")
ASIDE = r"(?: \([^)]*\))?"  # what a name may have behind it


def check_called(
    name: str, f: Any, *given: str, named: tuple[str, ...] = ()
) -> None:
    """Raise unless a function, or a module's ``forward``, can be called so; of
    what is not written in Python nobody can tell.

    It will be given some things by place, and some by name.
    """
    check_function(name, f)
    try:
        signature = inspect.signature(getattr(f, "forward", f))
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*given, **dict.fromkeys(named))
    except TypeError as error:
        told = ", ".join((*given, *(f"{n}={n}" for n in named)))
        raise TypeError(
            f"{name} must be a function of ({told}), but that cannot be said "
            f"of {shown(f)}: {error}"
        ) from None


def known_as(
    names: Mapping[str, str], f: Callable[..., R], *given: Any, **more: Any
) -> R:
    """What a function makes; where it refuses an argument, by the name under
    which that came to whoever calls it.

    >>> def halved(n):
    ...     raise ValueError(f"n must be even, but n={n}")
    >>> known_as({"n": "length"}, halved, 3)
    Traceback (most recent call last):
    ValueError: length must be even, but length=3
    """
    try:
        return f(*given, **more)
    except (ValueError, TypeError) as error:
        told = str(error)
        first = re.match(rf"(\w+)\S*{ASIDE} must ", told)
        if first and first[1] in names:
            word = rf"\b{first[1]}{ASIDE}(?= must |[.=\[])"
            name = names[first[1]]
            error.args = (re.sub(word, lambda _: name, told),)
        raise
