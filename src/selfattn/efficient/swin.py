"""Swin: attention within windows of a picture, shifted in every other layer.

Computes:  exactly `attention` with `swin_mask` (and `swin_bias`)
Time:      O(n w d), w tokens a window     Memory: O(n d), and a row of windows
Supports:  causal
Reference: Liu et al. (2021), section 3.2
"""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from selfattn.checks import batch_shape, check_call, check_once
from selfattn.dot_product import (
    Bias,
    Keys,
    Mask,
    Output,
    Queries,
    Values,
    by_definition,
    refuse,
    widen,
)
from selfattn.hidden import all_seen, unfelt
from selfattn.kernels import keeping_nan
from selfattn.masks import causal_mask
from selfattn.pieces import softmax_again, without_autocast
from selfattn.signatures import checked, is_count
from selfattn.spoilt import can_look
from selfattn.transforms import settled

CACHED = 1 << 16  # numbers of q to copy at a time, unless a line has more

Size = tuple[int, int]  # rows and columns
Offsets = Float[Tensor, "... down right"]  # a number for each offset


def swin_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    grid: Size,
    window: Size,
    shift: Size = (0, 0),
    relative_bias: Bias = None,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
) -> Output:
    """Attend within windows of a grid of tokens, each to its own window.

    Shifted windows are cut off at the edges of the grid. So are windows that
    do not come out even: no token is made up to fill them, and opposite
    edges never meet.

    Args:
        q: queries, (..., n, d), the grid's tokens row by row.
        k: keys, (..., n, d).
        v: values, (..., n, d_v).
        grid: its rows and columns; together n tokens.
        window: rows and columns of a window.
        shift: by how many rows and columns the windows are moved down and to
            the right; less than a window.
        relative_bias: added to the scaled scores by where the query lies
            from the key, for each head: see `swin_bias`. It may be trained.
        mask: refused: use `flash_attention` with ``swin_mask(...) & mask``.
        bias: refused, likewise; see ``relative_bias``.
        causal: hide from each query the keys after it, row by row.

    Returns:
        The output, (..., n, d_v). It can be differentiated once, not twice.

    Raises:
        ValueError: if shapes do not fit together or not to the grid, if the
            shift is no part of a window, or if a mask or bias is given.

    Reference: Liu et al. (2021), section 3.2, equations 3 and 4.

    >>> from selfattn.dot_product import attention
    >>> q, k, v = torch.randn(3, 5 * 9, 8)
    >>> where = {"grid": (5, 9), "window": (2, 4), "shift": (1, 2)}
    >>> near = swin_attention(q, k, v, **where)
    >>> same = attention(q, k, v, mask=swin_mask(**where))
    >>> torch.allclose(near, same, atol=1e-6)
    True
    """
    check_call("swin_attention", q, k, v, causal, relative_bias=relative_bias)
    refuse("swin_attention", "it makes no n x n table", mask, bias)
    check_windows(window, shift)
    check_grid(grid, q, k)
    if relative_bias is not None:
        check_offsets(relative_bias, window, (1, *batch_shape(q, k))[-1])
    grid, window, shift = itertools.starmap(settled, (grid, window, shift))
    batch, windows = batch_shape(q, k, v), cut(grid, window, shift)
    whole = min(window[0], grid[0]), min(window[1], grid[1])

    def made(make: Callable[..., Tensor], *qkv: Tensor) -> Tensor:
        q, k, v = (four_axes(x.expand(*batch, -1, -1)) for x in qkv)
        table = scores_table(relative_bias, whole, causal, q)
        return make(q, k, v, table, windows).view(*batch, *v.shape[-2:])

    if not causal and relative_bias is None:  # in a window all see all
        return all_seen(partial(made, Swin.apply), q, k, v)
    exactly = partial(made, without_autocast(piece_by_piece))
    return unfelt(partial(made, Swin.apply), q, k, v, exactly=exactly)


@checked
def swin_mask(
    grid: Size,
    window: Size,
    shift: Size = (0, 0),
    *,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "n n"]:
    """Who may look at whom: the tokens that lie in one window.

    Args:
        grid: its rows and columns; the tokens are counted row by row.
        window: rows and columns of a window.
        shift: by how many rows and columns the windows are moved down and to
            the right; less than a window.
        device: where to make the mask.

    Returns:
        A mask, (n, n).

    Raises:
        ValueError: if a window is empty, the shift is no part of it, or there
            is no such grid.

    Reference: Liu et al. (2021), section 3.2, figure 4.

    >>> from selfattn.masks import draw
    >>> print(draw(swin_mask((2, 3), (2, 2), (0, 1))))
    ■ · · ■ · ·
    · ■ ■ · ■ ■
    · ■ ■ · ■ ■
    ■ · · ■ · ·
    · ■ ■ · ■ ■
    · ■ ■ · ■ ■
    """
    check_windows(window, shift)
    row, column = positions(grid, device)
    # Before the first whole window lies number -1, the part that is cut off.
    down = (row - shift[0]) // window[0]
    right = (column - shift[1]) // window[1]
    return (down[:, None] == down) & (right[:, None] == right)


@checked
def swin_bias(relative_bias: Offsets, grid: Size) -> Float[Tensor, "... n n"]:
    """The relative position bias as a table of all tokens with all.

    Args:
        relative_bias: what to add where a query lies so many rows below and
            columns to the right of a key, (..., 2 rows - 1, 2 columns - 1)
            of a window; an offset of nothing is in the middle.
        grid: its rows and columns.

    Returns:
        A bias, (..., n, n). Tokens too far from each other to share a window
        get the number of the furthest offset, for the mask to hide.

    Raises:
        ValueError: if there is no offset in the middle, or no such grid.

    Reference: Liu et al. (2021), section 3.2, equation 4.

    >>> across = torch.tensor([[-1.0, 0.0, 1.0]])  # by columns, to the right
    >>> swin_bias(across, (1, 3))
    tensor([[ 0., -1., -1.],
            [ 1.,  0., -1.],
            [ 1.,  1.,  0.]])
    """
    if not all(size % 2 for size in relative_bias.shape[-2:]):
        raise ValueError(
            "relative_bias must have odd numbers of rows and columns, with no "
            f"offset in the middle, but it is {tuple(relative_bias.shape)}"
        )
    row, column = positions(grid, relative_bias.device)
    down, right = (size // 2 for size in relative_bias.shape[-2:])
    i = (row[:, None] - row).clamp(-down, down) + down
    j = (column[:, None] - column).clamp(-right, right) + right
    # Many tokens share an offset, and its gradient is the sum of theirs.
    return widen(relative_bias)[0][..., i, j].to(relative_bias.dtype)


def positions(grid: Size, device: Any) -> tuple[Tensor, Tensor]:
    """The row and the column of each token, (n,)."""
    if min(grid) < 0 or not is_count(math.prod(grid)):
        words = "grid must be at least 0 by 0, and its tokens must be counted "
        raise ValueError(f"{words}in 64 bits, but it is {grid}")
    n = torch.arange(math.prod(grid), device=device)
    return n // grid[1], n % grid[1]


def four_axes(x: Tensor) -> Tensor:
    """The same, (batch, heads, n, features), however many there are."""
    return x.reshape(math.prod(x.shape[:-3]), *(1, *x.shape)[-3:])


@checked
def check_grid(grid: Size, q: Tensor, k: Tensor) -> None:
    """Raise unless queries and keys are the tokens of the grid."""
    if not q.shape[-2] == k.shape[-2] == math.prod(grid) or min(grid) < 0:
        raise ValueError(
            "queries and keys must be the tokens of the grid, but the grid "
            f"is {grid}, q is {tuple(q.shape)} and k is {tuple(k.shape)}"
        )


@checked
def check_windows(window: Size, shift: Size) -> None:
    """Raise unless windows hold a token and are moved by less than one."""
    if not (0 <= shift[0] < window[0] and 0 <= shift[1] < window[1]):
        raise ValueError(
            "a window must hold a token, and be moved by 0 to less than its "
            f"size, but window={window} and shift={shift}"
        )


@checked
def check_offsets(relative_bias: Offsets, window: Size, heads: int) -> None:
    """Raise unless there is a number for each offset within a window."""
    wanted = (heads, 2 * window[0] - 1, 2 * window[1] - 1)
    try:
        relative_bias.expand(wanted)
    except RuntimeError:
        raise ValueError(
            "relative_bias must have a number for each offset within a window "
            f"and fit to {wanted}, but it is {tuple(relative_bias.shape)}"
        ) from None


class Span(NamedTuple):
    """Windows of one size in a line, along the rows or the columns."""

    start: int
    n: int  # of windows
    size: int

    @property
    def all(self) -> slice:
        """Where they lie."""
        return slice(self.start, self.start + self.n * self.size)

    def pieces(self, most: int) -> Iterator["Span"]:
        """The same windows, so many at a time."""
        for i in range(0, self.n, most):
            n = min(most, self.n - i)
            yield Span(self.start + i * self.size, n, self.size)


class Windows(NamedTuple):
    """Windows of one size, side by side and below each other, in a grid."""

    grid: Size
    down: Span
    right: Span

    def pieces(self, q: Tensor) -> Iterator["Windows"]:
        """What to work on at a time: on a CPU as many lines of windows as
        its cache has room for, but no less than one; on a GPU all of them, and
        in a graph that is exported, whose batch may be left open.
        """
        if q.device.type != "cpu" or torch.compiler.is_exporting():
            return iter([self])
        line = max(1, self.right.n * self.right.size * q[..., 0, :].numel())
        most = max(1, CACHED // (self.down.size * line))
        return (self._replace(down=down) for down in self.down.pieces(most))

    def view(self, x: Tensor) -> Tensor:
        """Where they lie in x, (batch, heads, n, features): by windows, then
        (..., rows, columns, heads, features).
        """
        b, h, _, d = x.shape
        x = x.view(b, h, *self.grid, d)[:, :, self.down.all, self.right.all]
        x = x.view(b, h, *self.down[1:], *self.right[1:], d)
        return x.permute(0, 2, 4, 3, 5, 1, 6)

    def take(self, x: Tensor) -> Tensor:
        """A copy of them, (windows, heads, tokens, features): in the order
        in which a layer's heads lie in memory, which is soonest read.
        """
        return self.view(x).flatten(3, 4).flatten(0, 2).transpose(1, 2)

    def put(self, result: Tensor, x: Tensor) -> None:
        """Write a result where they lie in x."""
        (to := self.view(x)).copy_(result.transpose(1, 2).view(to.shape))

    def corner(self, table: Tensor) -> Tensor:
        """Of a whole window's table, (..., rows, columns, rows, columns), the
        part for these: a view. Their offsets are the same.
        """
        h, w = self.down.size, self.right.size
        return table[..., :h, :w, :h, :w]

    def added(self, table: Tensor | None) -> Tensor | None:
        """What to add to the scores of these, if there is anything."""
        if table is None:
            return None
        # PyTorch's fused kernel takes no table that is to be learned.
        return self.corner(table.detach()).flatten(-4, -3).flatten(-2)


def cut(grid: Size, window: Size, shift: Size) -> list[Windows]:
    """The grid cut into windows; those of one size together, nine at most."""

    def spans(n: int, size: int, shift: int) -> list[Span]:
        first = min(n, shift)
        whole, rest = divmod(n - first, size)
        cut = [(0, 1, first), (first, whole, size), (n - rest, 1, rest)]
        return [Span(*span) for span in cut if span[1] and span[2]]

    both = itertools.product(*map(spans, grid, window, shift))
    return [Windows(grid, *spans) for spans in both]


def scores_table(
    relative_bias: Tensor | None, whole: Size, causal: bool, q: Tensor
) -> Tensor | None:
    """What to add to the scores of a whole window, if there is anything:
    (1, heads, rows, columns, rows, columns), or without a bias no heads.
    """
    n, table = math.prod(whole), relative_bias
    if table is not None:
        table = swin_bias(widen(q, table)[1], whole)
        table = table.expand(1, q.shape[1], n, n)
    if causal:
        table = widen(q.new_zeros(n, n))[0] if table is None else table
        past = causal_mask(n, n, device=q.device)
        table = table.masked_fill(~past, -math.inf)
    if table is not None:
        table = table.unflatten(-1, whole).unflatten(-3, whole)
    return table


class Swin(torch.autograd.Function):
    """Both passes by hand: a few windows at a time are copied out.

    Every token lies in one window, so that each result is written once.
    Autocast is off in both, as in the other mechanisms.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, q, k, v, table, groups):
        """Attend piece by piece, writing into one output."""
        ctx.save_for_backward(q, k, v, table)
        ctx.groups = groups
        attend = partial(piece_by_piece, q, k, v, table, groups)
        return keeping_nan(attend, q, k, table)

    @staticmethod
    @without_autocast
    def backward(ctx: Any, grad):
        """Make each window's weights anew, and what they pass back."""
        check_once("swin_attention", grad)
        *qkv, table = ctx.saved_tensors
        grads = [*map(torch.empty_like, qkv)]
        learned = ctx.needs_input_grad[3]
        grad_table = torch.zeros_like(table) if learned else None
        for group in ctx.groups:
            added = group.added(table)
            for piece in group.pieces(grad):
                q, k, v, g = (piece.take(x).contiguous() for x in (*qkv, grad))
                *results, grad_scores = pass_back(q, k, v, g, added)
                for result, into in zip(results, grads, strict=True):
                    piece.put(result, into)
                if grad_table is not None:
                    here = group.corner(grad_table)
                    here += grad_scores.sum(0, True).view(here.shape)
        return *grads, grad_table, None


def piece_by_piece(q, k, v, table, groups, kernel=by_definition) -> Tensor:
    """What the kernel gives, some windows at a time, in one output."""
    output = torch.empty_like(v)  # its heads lie as those of v do
    for group in groups:
        added = group.added(table)
        for piece in group.pieces(q):
            piece.put(kernel(*map(piece.take, (q, k, v)), added), output)
    return output


def pass_back(q, k, v, grad, added: Tensor | None) -> tuple[Tensor, ...]:
    """What windows pass back to q, k and v, and to their scaled scores."""
    dtype, scale = q.dtype, 1 / math.sqrt(q.shape[-1])
    q, k, v, grad = widen(q, k, v, grad)
    scores = (q @ k.mT).mul_(scale)
    scores = scores if added is None else scores.add_(added)
    weights = softmax_again(scores, added)
    if added is not None:  # a row of -inf is NaN to softmax
        unseen = (added == -math.inf).all(dim=-1, keepdim=True)
        if not can_look(unseen) or unseen.any():
            weights.masked_fill_(unseen, 0.0)
    grad_v = weights.mT @ grad
    grad_scores = (grad @ v.mT).mul_(weights)
    grad_scores -= weights.mul_(grad_scores.sum(dim=-1, keepdim=True))
    grads = (grad_scores @ k).mul_(scale), (grad_scores.mT @ q).mul_(scale)
    return *(x.to(dtype) for x in (*grads, grad_v)), grad_scores
