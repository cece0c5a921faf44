"""What types are compared with: beartype, told of each signature once.

jaxtyping has it look at a function within a function anew at every call, to
write the same check again; and attention defines two such at every call. That
took longer than attention. Axes that are computed of others, such as
``d//h``, jaxtyping reads as Python at every call, twice; here, each once.
"""

import inspect
from functools import cache

from beartype import beartype
from jaxtyping import _array_types

KNOWN = {}


@cache
def read(text):
    """An expression, as Python runs it."""
    return compile(text, "<axis>", "eval")


def value(text, names):
    """What `eval` gives: the value of an expression of these names."""
    return eval(read(text), names)


_array_types.eval = value  # found there before Python's own


def once(function):
    """The function under a check of its types: that of its first namesake.

    What jaxtyping hands over holds nothing but a signature, so of two that
    agree in name and signature, one will do for both.
    """
    names = function.__module__, function.__qualname__
    key = (*names, inspect.signature(function))
    try:
        if key not in KNOWN:
            KNOWN[key] = beartype(function)
    except TypeError:  # a default that is no key, such as a list
        return beartype(function)
    return KNOWN[key]
