"""Wrapped: functions that stand in the place of others, under their names."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def stands_for(
    function: Callable[P, R],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """What `functools.wraps` does, and code of its own for what wraps.

    `torch.compile` counts by code how often it has compiled anew, and gives
    up the ninth time. What wraps all methods has one code for all of them.

    >>> def twice(function):
    ...     @stands_for(function)
    ...     def doubled(x):
    ...         return 2 * function(x)
    ...
    ...     return doubled
    >>> one, other = twice(abs), twice(round)
    >>> one(-3), one.__name__, one.__code__ is other.__code__
    (6, 'abs', False)
    """
    names: Any = functools.wraps(function)

    def named(wrapper: Callable[P, R]) -> Callable[P, R]:
        made = names(wrapper)
        code = made.__code__
        made.__code__ = code.replace(co_name=made.__name__)
        return made

    return named
