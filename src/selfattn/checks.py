"""Checks: errors that say the rule first, and then the shapes that break it.

Every mechanism of this book begins with `check_shapes`. It asks nothing of
the numbers, so it takes microseconds and never waits for a GPU.
"""

import math
from functools import partial

import torch
from torch import Tensor, nn

from selfattn.signatures import REAL, WHOLE, shown


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
    try:
        batch_shape(q, k, v)
    except RuntimeError:
        raise ValueError(
            "the axes before the last two must broadcast together, but q is "
            f"{tuple(q.shape)}, k is {tuple(k.shape)} and v is "
            f"{tuple(v.shape)}"
        ) from None
    check_fits("mask", mask, q, k)
    check_fits("bias", bias, q, k)


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
    """Raise unless all of these are on one device."""
    first = None
    for name, x in tensors.items():
        if x is None:
            continue
        if first is None:
            first, place = name, x.device
        elif x.device != place and x.ndim:
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
    if bias is not None and not bias.is_floating_point():
        raise ValueError(
            "bias must be floating-point (it is added to the scores), but its "
            f"dtype is {bias.dtype}; pass who may attend as `mask`"
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
    if x.layout != torch.strided:
        raise ValueError(
            f"{name} must be a dense tensor, but its layout is {x.layout}"
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


def check_broadcasts(
    name: str, extra: Tensor, target: tuple[int, ...]
) -> None:
    """Raise unless a table broadcasts to (..., n_q, n_k), and not past it."""
    from_the_right = zip(reversed(extra.shape), reversed(target), strict=False)
    fits = all(size in (1, wanted) for size, wanted in from_the_right)
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
    """The axes before the last two, broadcast together."""
    shapes = {x.shape[:-2] for x in tensors}
    # Nearly always they are one and the same; broadcast_shapes takes longer
    # to say so than a small attention takes.
    return (
        shapes.pop() if len(shapes) == 1 else torch.broadcast_shapes(*shapes)
    )


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


def check_width(name: str, x: Tensor, width: int) -> None:
    """Raise unless x has as many features as what it enters takes."""
    check_floats(name, x)
    if x.shape[-1:] != (width,):
        raise ValueError(
            f"{name} must have {width} features, (..., {width}), but it is "
            f"{tuple(x.shape)}"
        )


def check_enters(name: str, x: Tensor, weight: Tensor) -> None:
    """Raise unless x has the features and the type that a matrix takes, and
    is where the matrix is.
    """
    check_width(name, x, weight.shape[-1])
    check_at_layer(name, x, weight)
    if x.dtype != weight.dtype and not is_autocast(x):
        raise ValueError(
            f"{name} must have the type of the layer, {weight.dtype}, but it "
            f"is {tuple(x.shape)} of {x.dtype}"
        )


def check_at_layer(name: str, x: Tensor, weight: Tensor) -> None:
    """Raise unless x is where the layer's weights are."""
    check_places(**{"the layer": weight, name: x})


def is_autocast(x: Tensor) -> bool:
    """Whether PyTorch chooses the types of products with x by itself."""
    where = x.device.type
    able = torch.amp.is_autocast_available(where)
    return able and torch.is_autocast_enabled(where)


def look_up(name: str, tokens: Tensor, table: nn.Embedding) -> Tensor:
    """The rows of a table, one a token; a token without one is named."""
    check_at_layer(name, tokens, table.weight)
    try:
        return table(tokens.long())
    except IndexError:
        raise ValueError(
            f"{name} must be numbers from 0 to {table.num_embeddings - 1}, "
            f"but they go from {int(tokens.min())} to {int(tokens.max())}"
        ) from None


def check_floats(name: str, x: Tensor) -> None:
    """Raise unless x holds numbers that can be scaled and turned."""
    check_tensor(name, x)
    if not x.is_floating_point() or x.itemsize < 2 or not x.ndim:
        raise ValueError(
            f"{name} must be floating-point with at least one axis, "
            f"but it is {tuple(x.shape)} of {x.dtype}"
        )


def check_unbound(attend: object, *names: str) -> None:
    """Raise if a mechanism binds what its caller hands over at each call.

    What the caller hands over would override what `functools.partial` bound,
    without a word; a mechanism meant to be causal would see the future.
    """
    while isinstance(attend, partial):
        for name in names:
            if name in attend.keywords:
                raise ValueError(
                    f"{', '.join(names)} are handed over at each call and "
                    f"cannot be bound beforehand, but attend binds {name}"
                )
        attend = attend.func
    check_function("attend", attend)


def check_function(name: str, f: object) -> None:
    """Raise unless this can be called."""
    if not callable(f):
        raise TypeError(
            f"{name} must be a function or a module, but it is {shown(f)}"
        )


def check_flag(name: str, flag: object) -> None:
    """Raise unless this is True or False, not something that counts as one."""
    if flag is not True and flag is not False:
        raise TypeError(
            f"{name} must be True or False, but it is {flag!r:.60}"
        )


def check_whole(**numbers: object) -> None:
    """Raise unless these are whole numbers."""
    for name, n in numbers.items():
        if not isinstance(n, WHOLE) or isinstance(n, bool):
            raise TypeError(
                f"{name} must be a whole number, but it is {shown(n)}"
            )


def check_number(name: str, x: object, *, finite: bool = True) -> None:
    """Raise unless this is a number."""
    if not isinstance(x, REAL) or isinstance(x, bool):
        raise TypeError(f"{name} must be a number, but it is {shown(x)}")
    if finite and not math.isfinite(x):
        raise ValueError(f"{name} must be a finite number, but it is {x}")


def is_transformed() -> bool:
    """Whether `torch.func` is at work: vmap, grad, jvp and the like."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def check_transforms(name: str) -> None:
    """Raise where a backward pass written by hand is to be transformed.

    Raises:
        ValueError: within `torch.func`.
    """
    if is_transformed():
        raise ValueError(
            f"torch.func cannot transform {name} of q, k and v: its way back "
            "is written by hand; `attention`, with the same mask, it can"
        )


def check_call(
    name: str, q: Tensor, k: Tensor, v: Tensor, causal: bool
) -> None:
    """Raise unless a mechanism whose way back is by hand can be called so."""
    check_transforms(name)
    check_shapes(q, k, v)
    check_flag("causal", causal)


def check_once(name: str) -> None:
    """Raise if a backward pass written by hand is to be differentiated.

    For its first line. PyTorch's own `once_differentiable` lets one case
    pass: a second derivative with respect to q, k or v alone, which then
    comes out as zero.

    Raises:
        RuntimeError: within ``create_graph=True``.
    """
    if torch.is_grad_enabled():
        raise RuntimeError(
            f"{name} can be differentiated once, not twice; `attention` can "
            "be, as often as you like"
        )
