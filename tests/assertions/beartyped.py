"""What types are compared with: beartype, told of each signature once.

jaxtyping has it look at a function within a function anew at every call, to
write the same check again; and attention defines two such at every call. That
took longer than attention.
"""

import inspect

from beartype import beartype

KNOWN = {}


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
