"""Piece by piece: what mechanisms share that never hold the whole table.

They take the axes before the tokens as one, cut the tokens into blocks or
chunks, and add what each piece brings to what the others brought.
"""

import math
from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from selfattn.checks import batch_shape
from selfattn.spoilt import is_spoilt
from selfattn.wrapped import P, R, stands_for

# exp(x) = 2^(x log₂e). How long `exp` takes depends on the processor: against
# `exp2`, two thirds on an Intel one, four times on an AMD one, and on both ten
# times and more where the result is nearly 0.
LOG2_E = 1 / math.log(2)
# A sum of weights that is smaller is none: it would have no digits, and what
# is divided by it overflows.
LEAST = {
    dtype: torch.finfo(dtype).tiny / torch.finfo(dtype).eps
    for dtype in (torch.float32, torch.float64)
}


def without_autocast(function: Callable[P, R]) -> Callable[P, R]:
    """The function, in which products have the type of what is multiplied.

    Autocast would round what many pieces add up to. It is switched off by a
    context of each call's own: PyTorch's decorator keeps in one object what
    was before, for all threads, and left one with the autocast of another.
    """

    @stands_for(function)
    def exact(*args: P.args, **kwargs: P.kwargs) -> R:
        if not any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
            return function(*args, **kwargs)
        with (
            torch.autocast("cpu", enabled=False),
            torch.autocast("cuda", enabled=False),
        ):
            return function(*args, **kwargs)

    return exact


def one_batch_axis(*tensors: Tensor) -> Iterator[Float[Tensor, "batch n d"]]:
    """Each of these, (..., n, d), with the axes before the tokens as one.

    They are broadcast together first, so that every batch has its own part of
    each. A view where there can be one, and a copy where there cannot.

    >>> q, k = torch.zeros(2, 3, 7, 5), torch.zeros(3, 11, 5)
    >>> [tuple(x.shape) for x in one_batch_axis(q, k)]
    [(6, 7, 5), (6, 11, 5)]
    """
    batch = batch_shape(*tensors)
    size = math.prod(batch)
    for x in tensors:
        yield x.expand(*batch, -1, -1).reshape(size, *x.shape[-2:])


def on_any_axes(attend: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What attends on (batch, n, d), for any number of axes before tokens.

    >>> first = on_any_axes(lambda q, k, v: v[:, : q.shape[1]])
    >>> tuple(first(torch.zeros(2, 1, 3, 5), *torch.zeros(2, 4, 7, 5)).shape)
    (2, 4, 3, 5)
    """

    def attend_on_any(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        output = attend(*one_batch_axis(q, k, v))
        return output.reshape(*batch_shape(q, k, v), *output.shape[-2:])

    return attend_on_any


def blocks(start: int, stop: int, size: int, step: int = 1) -> Iterator[slice]:
    """From start to stop, ``size`` at a time; the last may be shorter.

    >>> [*blocks(0, 5, 2)]
    [slice(0, 2, 1), slice(2, 4, 1), slice(4, 5, 1)]
    """
    for begin in range(start, stop, size):
        yield slice(begin, min(begin + size, stop), step)


def chunks(
    n_q: int, n_k: int, size: int, *, causal: bool
) -> Iterator[tuple[slice, slice]]:
    """Which queries and which keys to read at each step, in order.

    Causal, they go side by side, ``size`` at a time, after what one has more
    than the other: the last query sits on the last key. Otherwise all keys
    are read before the first query, and four times as many at a time: there
    is no square of weights within the chunk to make.

    >>> for rows, keys in chunks(2, 3, 2, causal=True):
    ...     print([*range(9)[rows]], [*range(9)[keys]])
    [] [0]
    [0, 1] [1, 2]
    """
    nothing = slice(0, 0)
    extra_q, extra_k = (n_q - n_k, n_k - n_q) if causal else (n_q, n_k)
    size = size if causal else 4 * size
    yield from ((nothing, keys) for keys in blocks(0, extra_k, size))
    yield from ((rows, nothing) for rows in blocks(0, extra_q, size))
    for rows in blocks(max(0, extra_q), n_q, size):  # none if not causal
        yield rows, slice(rows.start + extra_k, rows.stop + extra_k)


def softmax_again(scores: Tensor, added: Tensor | None) -> Tensor:
    """Softmax on the way back, where minus infinity was added to hide.

    To a score of infinity: that is NaN, and so is the whole row, though on
    the way there, multiplied in another order, it may have been a number.
    Here it is hidden all the same. A query that sees one has weights of zero,
    and passes nothing back.

    Args:
        scores: with what was added to them, (..., n_q, n_k).
        added: -inf where a query may not look, else 0, (n_q, n_k); or any
            bias, or none.

    >>> added = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])
    >>> softmax_again(torch.tensor([0.0, torch.inf]) + added, added)
    tensor([[1., 0.],
            [0., 0.]])
    """
    weights = scores.softmax(dim=-1)
    if not is_spoilt(weights[..., :1]):  # NaN is all of its row
        return weights
    if added is not None:
        scores = scores.masked_fill(added == -math.inf, -math.inf)
        weights = scores.softmax(dim=-1)
    return weights.masked_fill_(weights[..., :1].isnan(), 0.0)


def averaged(
    grad_weights: Tensor, weights: Tensor, grad: Tensor, output: Tensor
) -> Tensor:
    """What softmax takes from the gradients of weights: their average.

    It is that of the output times the output, too, which are fewer products.
    Not in half precision, whose outputs are rounded by more than two terms of
    the way back may leave of each other. Of an output that is spoilt nothing
    is passed back, and so nothing taken: 0 · NaN is NaN.

    >>> weights, v = torch.tensor([[0.25, 0.75]]), torch.tensor([[2.0], [6.0]])
    >>> averaged(3 * v.mT, weights, torch.tensor([[3.0]]), weights @ v)
    tensor([[15.]])
    """
    if output.element_size() < grad.element_size():
        return (grad_weights * weights).sum(dim=-1, keepdim=True)
    taken = (grad * output).sum(dim=-1, keepdim=True)
    if not is_spoilt(taken):
        return taken
    return taken.masked_fill(~output.isfinite().all(-1, keepdim=True), 0)


def add_product(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Set x to x + a b, in one operation where PyTorch has one."""
    b = b.to(a.dtype)
    if x.ndim == 3:
        # Not `baddbmm_`, which PyTorch's counter of operations passes over.
        return torch.baddbmm(x, a, b, out=x)
    if x.ndim == 2:
        return torch.addmm(x, a, b, out=x)
    return x.add_(a @ b)


def next_weights(
    scores: Tensor, top: Tensor, total: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The online softmax of some queries, a piece of their keys further on.

    When a piece brings a larger score, what was summed before shrinks
    accordingly. Nothing given is kept: all of it is written over.

    Args:
        scores: the piece's, in powers of two, (..., rows, keys).
        top: the largest score so far, (..., rows, 1): m in the papers.
        total: Σ 2^(score - top) so far, (..., rows, 1): ℓ in the papers.

    Returns:
        The weights, 2^(score - new top), by what to multiply all that was
        summed before, the new top and the new total.

    Reference: Milakov and Gimelshein (2018), algorithm 3.

    >>> top, total = torch.tensor([1.0]), torch.tensor([2.0])
    >>> next_weights(torch.tensor([3.0, 2.0]), top, total)
    (tensor([1.0000, 0.5000]), tensor([0.2500]), tensor([3.]), tensor([2.]))
    """
    # FlashAttention's chapter prints its loop whole: `online_softmax` in
    # `flash` has these lines itself, so that they can be read there.
    new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
    weights = scores.sub_(new_top).exp2_()
    shrink = top.sub_(new_top).exp2_()
    total.mul_(shrink).add_(weights.sum(dim=-1, keepdim=True))
    return weights, shrink, new_top, total


def divisor(total: Tensor) -> Tensor:
    """The sum of weights to divide by: where it is as good as none, infinity,
    which leaves nothing of what is divided.
    """
    return total.masked_fill(total.abs() < LEAST[total.dtype], math.inf)
