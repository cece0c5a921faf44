"""Signatures that are kept: an error for whatever does not fit one.

The functions of this book say in their signatures what they take, and in
the tests jaxtyping compares every call with that. `checked` does so for
everybody, in words: a list where a tensor belongs, a text for a number, two
tensors that disagree about an axis.
"""

import inspect
import math
import os
import types
import typing
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor, nn

from selfattn.mismatches import telling
from selfattn.places import DEVICE
from selfattn.transforms import is_traced_size
from selfattn.wrapped import P, R, stands_for

STRIDED = torch.strided
WHOLE = (int, torch.SymInt)
REAL = (*WHOLE, float, torch.SymFloat)
LIMIT = 2**63  # PyTorch's whole numbers have 64 bits
FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
INTEGERS = (*(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),)
KINDS = {"bool": (torch.bool,), "float32": FLOATS, "int64": INTEGERS}
IN_WORDS = {
    torch.bool: "True and False",
    torch.float64: "floating-point numbers",
    torch.int64: "whole numbers",
}


class Axes(NamedTuple):
    """What an annotation says of a tensor."""

    dtypes: tuple[torch.dtype, ...]
    names: tuple[str, ...]  # of the axes, but for those that vary in number
    some: int | None  # where those stand, if there are any

    @property
    def fits(self) -> Callable[[Any], bool]:
        """Whether something is such a tensor."""
        dtypes, least = self.dtypes, len(self.names)
        most = math.inf if self.some is not None else least

        def fits(x: Any) -> bool:
            right = is_plain_tensor(x) and x.dtype in dtypes
            return right and least <= x.ndim <= most

        return fits

    def of_its_type(self, x: Any) -> bool:
        """Whether x is a tensor at all."""
        return is_plain_tensor(x)

    @property
    def words(self) -> str:
        """What such a tensor is."""
        kinds = [IN_WORDS[d] for d in self.dtypes if d in IN_WORDS]
        axes = list(self.names)
        if self.some is not None:
            axes.insert(self.some, "...")
        shape = "" if axes == ["..."] else f" with axes ({', '.join(axes)})"
        return f"a tensor of {' or '.join(kinds)}{shape}"

    @property
    def places(self) -> dict[str, int]:
        """Where each named axis is: counted from the end, behind those that
        vary in number.
        """
        n = len(self.names)
        split = n if self.some is None else self.some
        return {a: i if i < split else i - n for i, a in enumerate(self.names)}


class Plain(NamedTuple):
    """What an annotation says of what is no tensor."""

    fits: Callable[[Any], bool]
    words: str
    bounds: Callable[[Any], bool] | None = None  # within its type

    def of_its_type(self, x: Any) -> bool:
        """Whether x is of the type, though out of its bounds."""
        return self.bounds is not None and self.bounds(x)


class Within(NamedTuple):
    """The least and the most that a number may be, in its annotation."""

    least: float
    most: float = math.inf

    def fits(self, x: Any) -> bool:
        """Whether a number lies between them."""
        return self.least <= x <= self.most

    @property
    def words(self) -> str:
        """What they are."""
        up = "" if self.most == math.inf else f" and at most {self.most}"
        return f"at least {self.least}{up}"


Count = Annotated[int, Within(0)]
Positive = Annotated[int, Within(1)]
Share = Annotated[float, Within(0, 1)]
SEEDS = Within(-(2**63), 2**64 - 1)  # what a generator takes
Seed = Annotated[int, SEEDS]
Offset = Annotated[int, Within(-(2**53), 2**53)]  # as float64 counts
Rule = Axes | Plain
Shared = list[tuple[str, list[tuple[str, int]]]]


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which compares what it is given with its signature.

    Args:
        function: with annotations, of tensors by jaxtyping. What is not
            annotated, or annotated as anything, may be anything.

    Returns:
        The same function. It raises a TypeError for what is of another type
        altogether, and a ValueError for a tensor of other numbers, of more
        or fewer axes, or of an axis that is longer or shorter in another
        argument.

    >>> from jaxtyping import Float
    >>> @checked
    ... def halved(x: Float[Tensor, "n d"]) -> Tensor:
    ...     return x / 2
    >>> halved([1.0])
    Traceback (most recent call last):
    TypeError: x must be a tensor of floating-point numbers with axes (n, d), \
but it is [1.0]
    """
    code: Any = inspect.unwrap(function)
    order = code.__code__.co_varnames[: code.__code__.co_argcount]
    hints = {n: h for n, h in code.__annotations__.items() if n != "return"}
    rules = {n: r for n, h in hints.items() if (r := rules_of(h))}
    tests = {name: one_test(rule) for name, rule in rules.items()}
    shared = shared_axes(rules)

    @stands_for(function)
    def kept(*args: P.args, **kwargs: P.kwargs) -> R:
        given = dict(zip(order, args, strict=False), **kwargs)
        for name, x in given.items():
            if name in tests and not tests[name](x):
                refuse(name, x, rules[name])
        check_axes_agree(given, shared)
        return function(*args, **kwargs)

    return telling(kept) if order[:1] == ("self",) else kept


def one_test(rules: tuple[Rule, ...]) -> Callable[[Any], bool]:
    """Whether x fits one of these rules, asked as fast as can be.

    It is asked at every call, which may take no longer than microseconds.
    """
    first, *others = (rule.fits for rule in rules)
    if not others:
        return first
    if len(others) == 1 and rules[1] is SIMPLE[type(None)]:
        return lambda x: x is None or first(x)
    return lambda x: first(x) or any(fits(x) for fits in others)


def refuse(name: str, x: Any, rules: tuple[Rule, ...]) -> None:
    """Raise, as x fits none of these."""
    wanted = " or ".join(rule.words for rule in rules)
    right_type = any(rule.of_its_type(x) for rule in rules)
    numbers = x if right_type and isinstance(x, tuple | list) else [x]
    if any(type(n) is int and not -LIMIT <= n < LIMIT for n in numbers):
        wanted += ", of 64 bits at most"
    words = f"{name} must be {wanted}, but it is {shown(x)}"
    raise ValueError(words) if right_type else TypeError(words)


def is_plain_tensor(x: Any) -> bool:
    """Whether all of its numbers are there, one beside the other."""
    return isinstance(x, Tensor) and x.layout is STRIDED and not x.is_nested


def check_axes_agree(given: dict[str, Any], shared: Shared) -> None:
    """Raise unless an axis of one name has one length."""
    for axis, places in shared:
        first, size = "", None
        for name, at in places:
            x = given.get(name)
            if not isinstance(x, Tensor):
                continue
            if size is None:
                first, size = name, x.shape[at]
            elif x.shape[at] != size:
                raise ValueError(
                    f"{first} and {name} must agree in the axis {axis}, but "
                    f"{first} is {tuple(given[first].shape)} and {name} is "
                    f"{tuple(x.shape)}"
                )
            elif x.device != given[first].device:
                raise ValueError(
                    f"{first} and {name} must be on one device, but {first} "
                    f"is on {given[first].device} and {name} on {x.device}"
                )


def axes_of(rules: tuple[Rule, ...]) -> Axes:
    """The rule for tensors, of which there is one."""
    return next((r for r in rules if isinstance(r, Axes)), Axes((), (), None))


def shared_axes(rules: dict[str, tuple[Rule, ...]]) -> Shared:
    """The axes that several arguments have, each with where it is in them."""
    places = defaultdict(list)
    for name, rule in rules.items():
        for axis, at in axes_of(rule).places.items():
            places[axis].append((name, at))
    shared = ((axis, at) for axis, at in places.items() if len(at) > 1)
    return [(axis, at) for axis, at in shared if axis.isidentifier()]


def rules_of(hint: Any) -> tuple[Rule, ...]:
    """What an annotation allows; nothing if that is anything."""
    union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    hints = typing.get_args(hint) if union else (hint,)
    # A whole number may stand for another, and a name for a device.
    less = {{float: int, torch.device: str}.get(one) for one in hints}
    hints = tuple(one for one in hints if one not in less)
    rules = [rule_of(one) for one in hints]
    return () if None in rules else tuple(r for r in rules if r is not None)


def rule_of(hint: Any) -> Rule | None:
    """What one type allows; None if that is anything."""
    if hasattr(hint, "dim_str"):
        return axes_in(hint)
    if typing.get_origin(hint) is Annotated:
        return bounded(*typing.get_args(hint))
    if hint in SIMPLE:
        return SIMPLE[hint]
    if typing.get_origin(hint) is typing.Literal:
        return one_of(typing.get_args(hint))
    kind = typing.get_origin(hint) or hint
    if kind is tuple:
        return pair_of(typing.get_args(hint))
    if kind is Callable or getattr(hint, "_is_protocol", False):
        return Plain(callable, "a function or a module")
    if not isinstance(kind, type) or kind is object:
        return None
    return Plain(lambda x: isinstance(x, kind), f"a {kind.__name__}")


def axes_in(hint: Any) -> Axes:
    """What jaxtyping's annotation says."""
    dtypes = [d for n, kind in KINDS.items() if n in hint.dtypes for d in kind]
    dims = hint.dim_str.split()
    vary = [axis.startswith(("*", ".")) for axis in dims]
    fixed = [axis for axis, some in zip(dims, vary, strict=True) if not some]
    some = vary.index(True) if any(vary) else None
    return Axes(tuple(dtypes), tuple(fixed), some)


def bounded(kind: type, within: Within) -> Rule:
    """A number that lies within bounds."""
    simple = SIMPLE[kind]
    right = is_whole if within is SEEDS else simple.fits
    inside = is_whole if kind is int else simple.fits
    words = f"{simple.words}, {within.words}"
    return Plain(lambda x: right(x) and within.fits(x), words, inside)


def one_of(words: tuple[str, ...]) -> Plain:
    """One of these texts."""
    text, listed = SIMPLE[str].fits, ", ".join(map(repr, words))
    return Plain(lambda x: text(x) and x in words, f"one of {listed}", text)


def pair_of(parts: tuple[Any, ...]) -> Rule | None:
    """A tuple of so many whole numbers."""
    if set(parts) != {int}:
        return None

    def pair(right: Callable[[Any], bool], x: Any) -> bool:
        fits = isinstance(x, tuple | list) and len(x) == len(parts)
        return fits and all(map(right, x))

    words = f"a tuple of {len(parts)} whole numbers"
    return Plain(partial(pair, is_count), words, partial(pair, is_whole))


def is_count(x: Any) -> bool:
    """A whole number that PyTorch has, and not True or False."""
    return is_whole(x) and (type(x) is not int or -LIMIT <= x < LIMIT)


def is_whole(x: Any) -> bool:
    """A whole number, however large, and not True or False; while PyTorch
    traces with `torch.jit`, sizes are tensors.
    """
    return (isinstance(x, WHOLE) and type(x) is not bool) or is_traced_size(x)


def is_number(x: Any) -> bool:
    """A number, and not NaN; a whole one as above."""
    other = isinstance(x, REAL) and not isinstance(x, bool) and x == x
    return is_count(x) if is_whole(x) else other


SIMPLE: dict[Any, Plain] = {
    int: Plain(is_count, "a whole number", is_whole),
    float: Plain(
        is_number,
        "a number other than NaN",
        lambda x: isinstance(x, float) or is_whole(x),
    ),
    bool: Plain(lambda x: isinstance(x, bool), "True or False"),
    str: Plain(lambda x: isinstance(x, str), "a text"),
    type(None): Plain(lambda x: x is None, "None"),
    os.PathLike: Plain(lambda x: isinstance(x, os.PathLike), "a path"),
    torch.device: Plain(*DEVICE),
    Tensor: Plain(lambda x: isinstance(x, Tensor), "a tensor"),
    nn.Module: Plain(lambda x: isinstance(x, nn.Module), "a module"),
}


def shown(x: Any) -> str:
    """A thing in few words: of a tensor its shape and type."""
    if isinstance(x, Tensor):
        shape = "a nested tensor" if x.is_nested else tuple(x.shape)
        layout = "" if x.layout == torch.strided else f" and {x.layout}"
        return f"{shape} of {x.dtype}{layout}"
    if isinstance(x, int) and x.bit_length() > 128:
        return f"a whole number of {x.bit_length()} bits"
    try:
        return " ".join(repr(x).split())[:60]
    except Exception:  # it says nothing of itself
        return f"of the type {type(x).__name__}"
