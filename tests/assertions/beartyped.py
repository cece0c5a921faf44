"""What types are compared with: beartype, told of each signature once.

jaxtyping has it look at a function within a function anew at every call, to
write the same check again; and attention defines two such at every call. That
took longer than attention. And what a call is held to hangs on its shapes and
types alone, of which a test that calls by the thousand has few.
"""

import functools
import inspect

import torch
from beartype import beartype
from torch import Tensor

KNOWN = {}
TENSORS = Tensor, torch.nn.Parameter
BY_VALUE = int, bool, str, type, type(None)  # an axis may be a number's long


def once(function):
    """The function under a check of its types: that of its first namesake.

    What jaxtyping hands over holds nothing but a signature, so of two that
    agree in name and signature, one will do for both.
    """
    names = function.__module__, function.__qualname__
    key = (*names, inspect.signature(function))
    try:
        if key not in KNOWN:
            KNOWN[key] = remembering(beartype(function))
    except TypeError:  # a default that is no key, such as a list
        return remembering(beartype(function))
    return KNOWN[key]


def remembering(check):
    """The check, which is not made again for what is alike."""
    passed = set()

    @functools.wraps(check)
    def checked(*args, **kwargs):
        try:
            key = likeness((args, kwargs))
        except UnknownError:
            return check(*args, **kwargs)
        if key not in passed:
            check(*args, **kwargs)  # it raises, or all is well
            passed.add(key)

    return checked


class UnknownError(Exception):
    """Of this nobody knows what a check of it may look at."""


def likeness(x):
    """All that an annotation can ask about: of a tensor its type and shape."""
    kind = type(x)
    if kind in TENSORS:
        return kind, x.dtype, x.shape
    if kind in BY_VALUE:
        return kind, x
    if isinstance(x, tuple | list):
        return kind, *map(likeness, x)
    if kind is dict:
        return kind, *((name, likeness(one)) for name, one in x.items())
    if isinstance(x, Tensor):  # of a subclass, traced or distributed
        raise UnknownError
    return kind
