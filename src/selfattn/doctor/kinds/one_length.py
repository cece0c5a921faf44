"""That a call takes texts of one length alone, told with the call."""

from collections.abc import Callable
from typing import Any


def told(call: Callable[..., Any], n: int | None) -> Callable[..., Any]:
    """The call, which tells how many tokens it takes; None: any number."""
    call.__dict__["only_length"] = n
    return call


def of(call: Callable[..., object]) -> int | None:
    """How many tokens the texts have that are taken; None: any number."""
    only: int | None = getattr(call, "only_length", None)
    return only
