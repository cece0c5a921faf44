"""Called: whether what is somebody's can be called as it will be.

Else Python would say so, at the first call, of one that nobody wrote; and a
function that lacks an argument looks like any other until then.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from torch import Tensor

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
    check_signature(name, f, *given, named=named)


def check_function(name: str, f: object) -> None:
    """Raise unless this can be called."""
    if not callable(f) or isinstance(f, type):
        raise TypeError(
            f"{name} must be a function or a module, but it is {shown(f)}"
        )


def check_signature(
    name: str, f: Any, *given: str, named: tuple[str, ...] = ()
) -> None:
    """Raise unless a function, a module's ``forward``, or a class is called
    so, as far as one can tell.
    """
    try:
        signature = inspect.signature(called_of(f))
    except (TypeError, ValueError):
        check_bound(name, f)
        return
    try:
        signature.bind(*given, **dict.fromkeys(named))
    except TypeError as error:
        told = ", ".join((*given, *(f"{n}={n}" for n in named)))
        raise TypeError(
            f"{name} must be a function of ({told}), but that cannot be said "
            f"of {shown(f)}: {error}"
        ) from None


def called_of(f: Any) -> Any:
    """What takes what is given: of a module its ``forward``."""
    return f if isinstance(f, type) else getattr(f, "forward", f)


def check_bound(name: str, f: Any) -> None:
    """Raise if a `functools.partial` binds what its function does not take,
    which Python says at the first call.
    """
    try:
        asked = inspect.signature(called_of(f.func))
    except (AttributeError, TypeError, ValueError):
        return
    try:
        asked.bind_partial(*f.args, **f.keywords)
    except TypeError as error:
        raise TypeError(
            f"{name} must take what is bound to it, but that cannot be said "
            f"of {shown(f)}: {error}"
        ) from None


def answered(name: str, f: Callable[..., R], *given: Any, **named: Any) -> R:
    """What a function answers. Whether it can be called so is only asked if
    it raises: that takes longer than most calls.

    >>> import torch
    >>> answered("bend", len, torch.ones(2), 5)
    Traceback (most recent call last):
    TypeError: bend must be a function of (x, 5), but that cannot be said of \
<built-in function len>: too many positional arguments
    """
    try:
        return f(*given, **named)
    except TypeError:
        told = ("x" if isinstance(x, Tensor) else shown(x) for x in given)
        check_signature(name, f, *told, named=(*named,))
        raise


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
