"""`by_sorting(q, k, v, buckets)`: attention within buckets, by sorting."""

from functools import partial
from typing import Any

import torch

from selfattn.doctor.exercise import Exercise, mistake, mistake_as
from selfattn.doctor.exercises.linformer import mixing
from selfattn.doctor.probes import Probe


def tokens(buckets: list[int]) -> tuple[dict[str, Any], dict[str, int]]:
    """Queries, keys and values, and these buckets."""
    given = partial(torch.tensor, buckets)
    shapes = {"q": "n d", "k": "n d", "v": "n d_v"}
    return (
        {**shapes, "buckets": lambda _: given()},
        {"n": len(buckets), "d": 3, "d_v": 2},
    )


def parts(sizes, q, k, v, scale=True):
    """Attention within each run of so many sorted tokens."""
    outputs = []
    pieces = (x.split(sizes) for x in (q, k, v))
    for rows, keys, values in zip(*pieces, strict=True):
        scores = rows @ keys.mT
        scores = scores / q.shape[-1] ** 0.5 if scale else scores
        outputs.append(scores.softmax(dim=-1) @ values)
    return torch.cat(outputs)


def in_order(buckets):
    """The sorted order, and how many tokens are in each bucket."""
    order = buckets.argsort(stable=True)
    return order, buckets.bincount().tolist()


def solution(q, k, v, buckets):
    """Sort, attend, and put each output back where its query stood."""
    order, sizes = in_order(buckets)
    found = parts(sizes, q[order], k[order], v[order])
    return found[order.argsort()]


@mistake
def sorted_twice(q, k, v, buckets):
    """The right outputs, at the wrong tokens.

    Cause: To undo the sort, the order was applied once more. That undoes
        only an order which is its own inverse, such as a swap.
    Cure: The inverse of an order is its argsort: found[order.argsort()].
    """
    order, sizes = in_order(buckets)
    return parts(sizes, q[order], k[order], v[order])[order]


@mistake
def never_undone(q, k, v, buckets):
    """The outputs are still sorted by bucket.

    Cause: The sort is never undone.
    Cure: found[order.argsort()].
    """
    order, sizes = in_order(buckets)
    return parts(sizes, q[order], k[order], v[order])


@mistake
def values_left_behind(q, k, v, buckets):
    """Your weights belong to other tokens than your values.

    Cause: Queries and keys are sorted, values are not.
    Cure: Sort all three.
    """
    order, sizes = in_order(buckets)
    return parts(sizes, q[order], k[order], v)[order.argsort()]


@mistake
def queries_left_behind(q, k, v, buckets):
    """Each query looks into another one's bucket.

    Cause: Keys and values are sorted, queries are not.
    Cure: Sort all three.
    """
    order, sizes = in_order(buckets)
    return parts(sizes, q, k[order], v[order])[order.argsort()]


@mistake
def equal_pieces(q, k, v, buckets):
    """Right if all buckets are of one size.

    Cause: The sorted tokens are cut into pieces of equal length. Where
        buckets are uneven, a piece mixes two of them.
    Cure: Cut by the buckets' own sizes: buckets.bincount().
    """
    order, sizes = in_order(buckets)
    filled = sum(size > 0 for size in sizes)
    long = -(-len(order) // filled)
    return parts(long, q[order], k[order], v[order])[order.argsort()]


@mistake
def all_see_all(q, k, v, buckets):
    """Everybody sees everybody.

    Cause: After sorting, the buckets were forgotten.
    Cure: A query sees the keys of its own bucket.
    """
    order, _ = in_order(buckets)
    whole = parts(len(order), q[order], k[order], v[order])
    return whole[order.argsort()]


@mistake
def the_bucket_before_too(q, k, v, buckets):
    """Your queries see another bucket besides their own.

    Cause: Each bucket looks at itself and at the one before, as chunks do,
        and nothing hides what is of another bucket.
    Cure: Only a query's own bucket, or a mask over the two.
    """
    seen = (buckets[:, None] == buckets) | (buckets[:, None] - 1 == buckets)
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~seen, -torch.inf)
    return scores.softmax(dim=-1) @ v


@mistake_as(mixing.no_scale)
def no_scale(q, k, v, buckets):
    order, sizes = in_order(buckets)
    found = parts(sizes, q[order], k[order], v[order], scale=False)
    return found[order.argsort()]


UNSORTING = Exercise(
    "reformer/unsorting",
    asks="attention within buckets, from sorted tokens",
    solution=solution,
    probes=(
        Probe(
            "it is attention within buckets",
            *tokens([2, 0, 1, 0, 2, 1, 1]),
            gradient=True,
            fixed=("n",),
        ),
        Probe(
            "three tokens that move round", *tokens([2, 0, 1]), fixed=("n",)
        ),
        Probe(
            "uneven buckets", *tokens([1, 1, 0, 1, 1, 2, 1, 0]), fixed=("n",)
        ),
        Probe("an empty bucket", *tokens([3, 0, 3, 1, 0]), fixed=("n",)),
        Probe(
            "one bucket is attention", *tokens([0, 0, 0, 0, 0]), fixed=("n",)
        ),
        Probe(
            "float64 stays float64",
            *tokens([1, 2, 0, 1, 0]),
            dtype=torch.float64,
            fixed=("n",),
        ),
    ),
    mistakes=(
        sorted_twice,
        never_undone,
        values_left_behind,
        queries_left_behind,
        equal_pieces,
        all_see_all,
        the_bucket_before_too,
        no_scale,
    ),
)
