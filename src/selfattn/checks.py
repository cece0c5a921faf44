"""Checks: errors that say the rule first, and then the shapes that break it.

Every mechanism of this book begins with `check_shapes`. It asks nothing of
the numbers, so it takes microseconds and never waits for a GPU.
"""

import sys
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from selfattn.signatures import REAL, is_count, is_number, is_whole, shown
from selfattn.transforms import (
    TABLES,
    check_transforms,
    is_fake,
    is_transformed,
)

LARGEST = sys.float_info.max


def check_shapes(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
) -> None:
    """Say in words what does not fit, before a product says it in numbers.

    Raises:
        ValueError: with the rule first, then the shapes that break it.
    """
    check_types(q, k, v, mask, bias)
    if q.shape[-1] != k.shape[-1] or q.shape[-1] == 0:
        raise ValueError(
            "queries and keys must have the same number of features, at "
            f"least 1, but q is {tuple(q.shape)} and k is {tuple(k.shape)}"
        )
    check_one_value(k, v)
    check_batches(q, k, v)
    check_fits("mask", mask, q, k)
    check_fits("bias", bias, q, k)


def check_batches(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise unless the axes of the batch fit each other."""
    try:
        batch_shape(q, k, v)
    except ValueError:
        raise ValueError(
            "the axes before the last two must broadcast together, but q is "
            f"{tuple(q.shape)}, k is {tuple(k.shape)} and v is "
            f"{tuple(v.shape)}"
        ) from None


def check_types(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
) -> None:
    """Raise unless these are numbers where numbers belong, and yes or no."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        check_tensor(name, x)
        if x.ndim < 2 or not x.is_floating_point() or x.itemsize < 2:
            raise ValueError(
                f"{name} must be floating-point with at least two axes, "
                "(..., tokens, features), "
                f"but it is {tuple(x.shape)} of {x.dtype}"
            )
    if not q.dtype == k.dtype == v.dtype:
        raise ValueError(
            "queries, keys and values must have one type, but they are "
            f"{q.dtype}, {k.dtype} and {v.dtype}"
        )
    check_tables(mask, bias)
    check_places(q=q, k=k, v=v, mask=mask, bias=bias)


def check_places(**tensors: Tensor | None) -> None:
    """Raise unless all of these are on one device.

    A single number may be elsewhere, as in PyTorch, if it is one at all: of
    the meta device, it has no value.
    """
    first = None
    for name, x in tensors.items():
        if x is None:
            continue
        if first is None:
            first, place = name, x.device
        elif x.device != place and (x.ndim or x.is_meta):
            raise ValueError(
                f"{name} must be where {first} is, on {place}, but it is on "
                f"{x.device}"
            )


def check_tables(mask: Tensor | None, bias: Tensor | None) -> None:
    """Raise unless a mask says yes or no, and a bias is numbers to add."""
    for name, table in (("mask", mask), ("bias", bias)):
        if table is not None:
            check_tensor(name, table)
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(
            "mask must be boolean (True = may attend), but its dtype is "
            f"{mask.dtype}; pass numbers to add to the scores as `bias`"
        )
    # Of numbers of one byte, PyTorch has no sums.
    if bias is None or (bias.is_floating_point() and bias.itemsize >= 2):
        return
    raise ValueError(
        "bias must be floating-point (it is added to the scores), of two "
        f"bytes at least, but its dtype is {bias.dtype}; pass who may "
        "attend as `mask`"
    )


def check_one_value(k: Tensor, v: Tensor) -> None:
    """Raise unless there is one value per key."""
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            "there must be one value per key, "
            f"but k is {tuple(k.shape)} and v is {tuple(v.shape)}"
        )


def check_tensor(name: str, x: object) -> None:
    """Raise unless x is a tensor with all its numbers side by side."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a tensor, but it is {shown(x)}")
    if x.layout != torch.strided or x.is_nested:
        raise ValueError(
            f"{name} must be a dense tensor, but it is {shown(x)}"
        )


def check_fits(name: str, extra: Tensor | None, q: Tensor, k: Tensor) -> None:
    """Raise unless a mask or a bias broadcasts to the scores, not past them.

    A mask with more rows than there are queries would make a larger result
    instead of an error, which is how such mistakes stay hidden.
    """
    if extra is not None:
        scores = (*batch_shape(q, k), q.shape[-2], k.shape[-2])
        check_broadcasts(name, extra, scores)


def check_scores(scores: Tensor, mask: Tensor | None) -> None:
    """Raise unless these are scores, and a mask that broadcasts to them."""
    check_floats("scores", scores)
    check_tables(mask, None)
    if mask is not None:
        check_broadcasts("mask", mask, tuple(scores.shape))
        check_places(scores=scores, mask=mask)


def check_broadcasts(
    name: str, extra: Tensor, target: tuple[int, ...]
) -> None:
    """Raise unless a table broadcasts to (..., n_q, n_k), and not past it."""
    from_the_right = zip(reversed(extra.shape), reversed(target), strict=False)
    # No `in`: to `torch.compile` a length that it knows is in no pair of such
    # that vary, though they be equal.
    fits = all(n == 1 or n == wanted for n, wanted in from_the_right)
    if extra.ndim > len(target) or not fits:
        raise ValueError(
            f"{name} must broadcast to (..., n_q, n_k) = {target}, "
            f"but it is {tuple(extra.shape)}"
        )


def check_dropout(dropout_p: float, name: str = "dropout_p") -> None:
    """Raise unless this is a probability."""
    check_number(name, dropout_p, finite=False)
    if not 0 <= dropout_p <= 1:
        raise ValueError(
            f"{name}, the share of weights to drop, must lie between 0 and "
            f"1, but it is {dropout_p}"
        )


def batch_shape(*tensors: Tensor) -> tuple[int, ...]:
    """The axes before the last two, broadcast together.

    Raises:
        ValueError: if two sizes of an axis differ, and neither is one.

    >>> batch_shape(torch.zeros(2, 3, 7, 5), torch.zeros(3, 11, 5))
    (2, 3)
    """
    shapes = [tuple(x.shape[:-2]) for x in tensors]
    # Nearly always they are one and the same. No set of them: while PyTorch
    # exports a model, sizes are symbols, which cannot be hashed. And not
    # `torch.broadcast_shapes`, whose first call takes a second: it imports
    # an algebra system, for symbols.
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    from_the_last = zip_longest(*map(reversed, shapes), fillvalue=1)
    return tuple(map(one_size, from_the_last))[::-1]


def one_size(sizes: tuple[int, ...]) -> int:
    """The size that all of these are broadcast to."""
    size = next((n for n in sizes if n != 1), 1)
    if any(n not in (1, size) for n in sizes):
        raise ValueError(f"sizes {sizes} cannot be broadcast together")
    return size


def check_divides(a: str, n_a: int, b: str, n_b: int) -> None:
    """Raise unless ``a`` divides ``b``."""
    if n_a < 1 or n_b % n_a:
        raise ValueError(f"{a} must divide {b}, but {a}={n_a} and {b}={n_b}")


def check_window(window: int) -> None:
    """Raise unless a window holds the query's own position at least."""
    check_whole(window=window)
    if window < 1:
        raise ValueError(
            "a window counts the query's own position, so it must be at "
            f"least 1, but window={window}"
        )


def is_autocast(x: Tensor) -> bool:
    """Whether PyTorch chooses the types of products with x by itself."""
    where = x.device.type
    able = torch.amp.is_autocast_available(where)
    return able and torch.is_autocast_enabled(where)


def check_floats(name: str, x: Tensor) -> None:
    """Raise unless x holds numbers that can be scaled and turned."""
    check_tensor(name, x)
    if not x.is_floating_point() or x.itemsize < 2 or not x.ndim:
        raise ValueError(
            f"{name} must be floating-point with at least one axis, "
            f"but it is {tuple(x.shape)} of {x.dtype}"
        )


def check_flag(name: str, flag: object) -> None:
    """Raise unless this is True or False, not something that counts as one."""
    if flag is not True and flag is not False:
        raise TypeError(
            f"{name} must be True or False, but it is {shown(flag)}"
        )


def check_whole(**numbers: object) -> None:
    """Raise unless these are whole numbers."""
    for name, n in numbers.items():
        if not is_whole(n):
            raise TypeError(
                f"{name} must be a whole number, but it is {shown(n)}"
            )
        if not is_count(n):
            raise ValueError(
                f"{name} must be a whole number of 64 bits at most, but it is "
                f"{shown(n)}"
            )


def check_number(name: str, x: object, *, finite: bool = True) -> None:
    """Raise unless this is a number."""
    if not isinstance(x, REAL) or isinstance(x, bool):
        raise TypeError(f"{name} must be a number, but it is {shown(x)}")
    if finite and not (is_number(x) and -LARGEST <= x <= LARGEST):
        raise ValueError(
            f"{name} must be a finite number, but it is {shown(x)}"
        )


def check_eps(eps: float) -> None:
    """Raise unless this can be added to a variance."""
    check_number("eps", eps)
    if eps < 0:
        raise ValueError(f"eps must be at least 0, but it is {eps}")


def are_at_hand(x: Tensor) -> bool:
    """Whether one may decide by the numbers of x: not on meta nor while a
    model is exported, where there are none, nor within `torch.func`, where
    there are several in one.
    """
    fake = hasattr(x, "fake_mode") or torch.compiler.is_exporting()
    return not (fake or is_fake() or x.is_meta or is_transformed())


def check_call(
    name: str, q: Tensor, k: Tensor, v: Tensor, causal: bool, **others: Any
) -> None:
    """Raise unless a mechanism whose way back is by hand can be called so."""
    check_shapes(q, k, v)
    given = {n: x for n, x in others.items() if isinstance(x, Tensor)}
    check_places(q=q, **given)
    check_transforms(name, q, k, v, *given.values())
    check_flag("causal", causal)


def check_one_at_a_time(name: str, why: str, *grads: Tensor) -> None:
    """Raise if several gradients are passed back at once."""
    if any(map(torch._C._functorch.is_legacy_batchedtensor, grads)):
        raise ValueError(
            f"{name} takes back one gradient at a time, for {why}, but "
            "several were passed at once, as is_grads_batched or vectorize "
            "does"
        )


def check_once(name: str, *grads: Tensor) -> None:
    """Raise if a backward pass written by hand is to be differentiated, or to
    be taken with several gradients at once.

    For its first line. PyTorch's own `once_differentiable` lets one case
    pass: a second derivative with respect to q, k or v alone, which then
    comes out as zero.

    Raises:
        RuntimeError: within ``create_graph=True``.
        ValueError: within ``is_grads_batched=True``, or
            ``torch.autograd.functional`` with ``vectorize=True``.
    """
    check_one_at_a_time(name, "its way back is written by hand", *grads)
    if torch.is_grad_enabled():
        instead = TABLES.get(name, "`attention`")
        raise RuntimeError(
            f"{name} can be differentiated once, not twice; {instead} can "
            "be, as often as you like"
        )
