"""Called: whether what is somebody's can be called as it will be.

Else Python would say so, at the first call, of one that nobody wrote; and a
function that lacks an argument looks like any other until then.
"""

import inspect
from typing import Any

from selfattn.entering import check_function
from selfattn.signatures import shown


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
