"""`hidden_weight(q, k, mask)`: what a pattern would not see."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe


def text(
    n: int, seen: Callable[[Tensor, Tensor], Tensor]
) -> tuple[dict[str, Any], dict[str, int]]:
    """A text of n tokens, and who may look at whom."""

    def mask(sizes):
        places = torch.arange(sizes["n"])
        return seen(places[:, None], places)

    inputs: dict[str, Any] = {"q": "n d", "k": "n d", "mask": mask}
    return inputs, {"n": n, "d": 4}


def weights(q, k, scale=None):
    """Softmax over the keys, of the scaled scores."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return (q @ k.mT * scale).softmax(dim=-1)


def solution(q, k, mask):
    """The weights, where the mask hides."""
    return (weights(q, k) * ~mask).sum(dim=-1)


@mistake
def seen_instead(q, k, mask):
    """Your number is the weight that is seen.

    Cause: The mask is True where a query may look.
    Cure: ~mask is what is hidden.
    """
    return (weights(q, k) * mask).sum(dim=-1)


@mistake
def no_scale(q, k, mask):
    """Your weights are too sharp.

    Cause: The scores are not divided by the root of d.
    Cure: q @ k.mT / d ** 0.5.
    """
    return (weights(q, k, 1.0) * ~mask).sum(dim=-1)


@mistake
def share_of_pairs(q, k, mask):
    """It does not depend on queries and keys.

    Cause: Hidden pairs are counted, whatever they weigh.
    Cure: Sum up their weights.
    """
    return (~mask).to(q.dtype).mean(dim=-1)


@mistake
def masked_first(q, k, mask):
    """Nothing is ever hidden.

    Cause: The weights are those of the masked softmax, which has shared the
        hidden weight out already.
    Cure: Ask for the weights without a mask: what would have been there?
    """
    scores = q @ k.mT * q.shape[-1] ** -0.5
    kept = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return (kept.nan_to_num() * ~mask).sum(dim=-1)


@mistake
def over_the_queries(q, k, mask):
    """Your weights do not sum to one over the keys.

    Cause: The softmax runs over the queries.
    Cure: softmax(dim=-1).
    """
    scores = q @ k.mT * q.shape[-1] ** -0.5
    return (scores.softmax(dim=-2) * ~mask).sum(dim=-1)


@mistake
def of_each_key(q, k, mask):
    """There is a number for each key.

    Cause: The sum runs over the queries.
    Cure: Over the keys: sum(dim=-1).
    """
    return (weights(q, k) * ~mask).sum(dim=-2)


@mistake
def the_largest(q, k, mask):
    """It is the largest hidden weight, not all of it.

    Cause: max instead of sum.
    Cure: sum(dim=-1).
    """
    return (weights(q, k) * ~mask).amax(dim=-1)


@mistake
def not_normalised(q, k, mask):
    """Your numbers are no shares.

    Cause: The exponentials of what is hidden are summed up, and not divided
        by those of all keys.
    Cure: softmax first, or divide by the sum of the row.
    """
    terms = (q @ k.mT * q.shape[-1] ** -0.5).exp()
    return (terms * ~mask).sum(dim=-1)


WEIGHT = Exercise(
    "overview/weight",
    asks="the weight that each query gives to keys that the mask hides",
    solution=solution,
    probes=(
        Probe(
            "what a window hides",
            *text(7, lambda i, j: (i - j).abs() < 2),
            gradient=True,
        ),
        Probe(
            "what a causal order hides",
            *text(6, lambda i, j: j <= i),
        ),
        Probe("nothing is hidden", *text(5, lambda i, j: j == j + 0 * i)),
        Probe("everything is hidden", *text(5, lambda i, j: j + i < 0)),
        Probe(
            "float64 stays float64",
            *text(7, lambda i, j: (i + j) % 3 > 0),
            dtype=torch.float64,
        ),
    ),
    mistakes=(
        seen_instead,
        no_scale,
        share_of_pairs,
        masked_first,
        over_the_queries,
        of_each_key,
        the_largest,
        not_normalised,
    ),
)
