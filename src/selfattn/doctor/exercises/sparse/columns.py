"""`columns(q, k, v, stride)`: attention among tokens whole strides apart."""

from typing import Any

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe


def probe(asks: str, n: int, stride: int, **options: Any) -> Probe:
    """A text of n tokens, and a stride that divides n."""
    return Probe(
        asks,
        {"q": "n d", "k": "n d", "v": "n d_v", "stride": lambda _: stride},
        {"n": n, "d": 3, "d_v": 2},
        fixed=("n",),
        **options,
    )


def within(q, k, v, hidden):
    """Attention in each of many short texts, (texts, n, d)."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    hide = scores.new_ones(scores.shape[-2:]).bool().triu(hidden)
    return scores.masked_fill(hide, -torch.inf).softmax(-1) @ v


def folded(x, stride):
    """Token i stands in row i mod stride, at place i // stride."""
    return x.reshape(-1, stride, x.shape[-1]).transpose(0, 1)


def unfolded(x):
    """The way back."""
    return x.transpose(0, 1).flatten(0, 1)


def solution(q, k, v, stride):
    """Fold, attend in each row, unfold."""
    q, k, v = (folded(x, stride) for x in (q, k, v))
    return unfolded(within(q, k, v, 1))


@mistake
def blocks(q, k, v, stride):
    """Your tokens see their neighbours.

    Cause: The text is cut into blocks of `stride`, and each attends within.
    Cure: Transpose first: the tokens of one column are a stride apart.
    """
    q, k, v = (x.reshape(-1, stride, x.shape[-1]) for x in (q, k, v))
    return within(q, k, v, 1).flatten(0, 1)


@mistake
def folded_the_other_way(q, k, v, stride):
    """Your tokens are n / stride apart.

    Cause: Reshaped to (stride, n / stride) at once: that cuts the text into
        `stride` long pieces.
    Cure: Reshape to (n / stride, stride), then transpose.
    """
    q, k, v = (folded(x, len(x) // stride) for x in (q, k, v))
    return unfolded(within(q, k, v, 1))


@mistake
def not_put_back(q, k, v, stride):
    """Your outputs stand in another order than your queries.

    Cause: The rows are put one behind the other, and not transposed back.
    Cure: Transpose before you flatten.
    """
    q, k, v = (folded(x, stride) for x in (q, k, v))
    return within(q, k, v, 1).flatten(0, 1)


@mistake
def not_causal(q, k, v, stride):
    """Your queries see what comes later.

    Cause: Within a row nothing is hidden.
    Cure: In a row, too, the order is that of the text: hide what is later.
    """
    q, k, v = (folded(x, stride) for x in (q, k, v))
    return within(q, k, v, len(q[0]))


@mistake
def not_scaled(q, k, v, stride):
    """Your scores are not divided.

    Cause: The root of the width of keys is missing.
    Cure: Divide by d ** 0.5.
    """
    q, k, v = (folded(x, stride) for x in (q, k, v))
    return unfolded(within(q * q.shape[-1] ** 0.5, k, v, 1))


@mistake
def divided_by_the_stride(q, k, v, stride):
    """Your scores are divided by another root.

    Cause: After folding, the last axis but one was taken for the width.
    Cure: The width of keys is the last axis: d ** 0.5.
    """
    q, k, v = (folded(x, stride) for x in (q, k, v))
    wrong = (q.shape[-1] / q.shape[-2]) ** 0.5
    return unfolded(within(q * wrong, k, v, 1))


@mistake
def values_left_behind(q, k, v, stride):
    """Your weights belong to other tokens than your values.

    Cause: Queries and keys were folded, values only cut into rows.
    Cure: Fold all three alike.
    """
    q, k = (folded(x, stride) for x in (q, k))
    return unfolded(within(q, k, v.reshape(stride, -1, v.shape[-1]), 1))


@mistake
def everything(q, k, v, stride):
    """Your queries see all of the past.

    Cause: The stride plays no part.
    Cure: Keys whole strides away only.
    """
    return within(q, k, v, 1)


COLUMNS = Exercise(
    "sparse/columns",
    asks="causal attention among the tokens that are whole strides apart",
    solution=solution,
    probes=(
        probe("keys whole strides away", 12, 3, gradient=True),
        probe("more classes than members", 10, 5),
        probe("more members than classes", 14, 2),
        probe("a stride of 1 is causal attention", 7, 1),
        probe("a stride of n returns the values", 5, 5),
        probe("float64 stays float64", 6, 3, dtype=torch.float64),
    ),
    mistakes=(
        blocks,
        folded_the_other_way,
        not_put_back,
        not_causal,
        not_scaled,
        divided_by_the_stride,
        values_left_behind,
        everything,
    ),
)
