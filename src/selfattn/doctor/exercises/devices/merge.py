"""`joined(m, total, summed)`: what several ranks have collected, as one."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe

LOWEST = torch.finfo(torch.float32).min
RANKS = {"m": "ranks n", "total": "ranks n", "summed": "ranks n d"}
SIZES = {"ranks": 3, "n": 5, "d": 7}
ALIKE = {"ranks": 5, "n": 5, "d": 5}


def collected(inputs: Inputs) -> None:
    """Totals are sums of exponentials, of which one at least is 1."""
    inputs["total"] = inputs["total"].abs() + 1


def far_apart(inputs: Inputs) -> None:
    """No exponential of these maxima can be held."""
    collected(inputs)
    inputs["m"] = 40 * inputs["m"] + 300


def deep_down(inputs: Inputs) -> None:
    """All exponentials of these maxima would round to nothing."""
    collected(inputs)
    inputs["m"] = inputs["m"] - 300


def unlike_queries(inputs: Inputs) -> None:
    """What is large for one query is nothing beside another's."""
    collected(inputs)
    places = torch.arange(inputs["m"].shape[-1])
    inputs["m"] = inputs["m"] - 300 * places


def one_saw_nothing(inputs: Inputs) -> None:
    """Some queries may see none of a rank's keys."""
    collected(inputs)
    for rank, query in ((0, 0), (1, 1)):
        here = slice(rank, rank + 1), slice(query, query + 1)
        inputs["m"][here] = LOWEST
        inputs["total"][here] = 0
        inputs["summed"][here] = 0


def none_saw_any(inputs: Inputs) -> None:
    """One query may see no key of any rank."""
    collected(inputs)
    inputs["m"][:, 0] = LOWEST
    inputs["total"][:, 0] = 0
    inputs["summed"][:, 0] = 0


def over_one(total):
    """A total, or 1 where nothing was seen."""
    return total.masked_fill(total == 0, 1.0)


def solution(m, total, summed):
    """Both sums, measured against one maximum; then divided, once."""
    shrink = (m - m.amax(dim=0)).exp()
    all_of_it = over_one((shrink * total).sum(dim=0))
    return (shrink[..., None] * summed).sum(dim=0) / all_of_it[..., None]


@mistake
def averaged(m, total, summed):
    """Every rank counts the same.

    Cause: Each rank's output was made, and the outputs averaged.
    Cure: A rank counts by exp(m) times its total.
    """
    return (summed / over_one(total)[..., None]).mean(dim=0)


@mistake
def never_shrunk(m, total, summed):
    """Right only where the largest scores of all ranks are equal.

    Cause: Sums that were measured against different maxima were added.
    Cure: Multiply each rank's sums by exp(m - largest m) first.
    """
    return summed.sum(dim=0) / over_one(total.sum(dim=0))[..., None]


@mistake
def total_not_shrunk(m, total, summed):
    """Your output is too small.

    Cause: The sums of the values shrink, and the totals do not.
    Cure: Both shrink, by the same factor.
    """
    shrink = (m - m.amax(dim=0)).exp()
    all_of_it = over_one(total.sum(dim=0))
    return (shrink[..., None] * summed).sum(dim=0) / all_of_it[..., None]


@mistake
def sums_not_shrunk(m, total, summed):
    """Your output is too large.

    Cause: The totals shrink, and the sums of the values do not.
    Cure: Both shrink, by the same factor.
    """
    shrink = (m - m.amax(dim=0)).exp()
    all_of_it = over_one((shrink * total).sum(dim=0))
    return summed.sum(dim=0) / all_of_it[..., None]


@mistake
def divided_on_each_rank(m, total, summed):
    """Each rank's output was divided by its own total before it was joined.

    Cause: What is left to weigh the ranks by is exp(m) alone, and how many
        keys stood behind it is lost.
    Cure: Add up first, and divide once, at the end.
    """
    shrink = (m - m.amax(dim=0)).exp()
    mine = summed / over_one(total)[..., None]
    seen = shrink * (total > 0)
    shares = seen / over_one(seen.sum(dim=0))
    return (shares[..., None] * mine).sum(dim=0)


@mistake
def nothing_subtracted(m, total, summed):
    """Large scores give NaN, and low ones too.

    Cause: exp(m) overflows, or all of them round to zero.
    Cure: Subtract the largest m of the ranks first.
    """
    scale = m.exp()
    all_of_it = (scale * total).sum(dim=0)
    return (scale[..., None] * summed).sum(dim=0) / all_of_it[..., None]


@mistake
def one_maximum_for_all_queries(m, total, summed):
    """A query whose scores are low gets zeros, or loses its digits.

    Cause: The largest score of all queries was subtracted. Each query has
        its own.
    Cure: The maximum runs over the ranks alone: dim=0.
    """
    shrink = (m - m.max()).exp()
    all_of_it = over_one((shrink * total).sum(dim=0))
    return (shrink[..., None] * summed).sum(dim=0) / all_of_it[..., None]


@mistake
def grown_instead_of_shrunk(m, total, summed):
    """The ranks with the lowest scores count most.

    Cause: The factor is upside down: exp(largest - m).
    Cure: exp(m - largest), which is never above 1.
    """
    grow = (m.amax(dim=0) - m).exp()
    all_of_it = over_one((grow * total).sum(dim=0))
    return (grow[..., None] * summed).sum(dim=0) / all_of_it[..., None]


@mistake
def zero_by_zero(m, total, summed):
    """A query that may see no key on any rank gets NaN.

    Cause: Its total is zero on all ranks, and zero by zero is no number.
    Cure: Divide by 1 there: the output is zeros.
    """
    shrink = (m - m.amax(dim=0)).exp()
    all_of_it = (shrink * total).sum(dim=0)
    return (shrink[..., None] * summed).sum(dim=0) / all_of_it[..., None]


@mistake
def the_largest_takes_all(m, total, summed):
    """Of all the ranks only one is ever seen.

    Cause: The rank with the largest score was taken, and the rest dropped.
    Cure: All count, by exp(m - largest m).
    """
    first = (m == m.amax(dim=0)).float().argmax(dim=0)
    place = first[None, :, None].expand(1, *summed.shape[1:])
    mine = summed.gather(0, place)[0]
    return mine / over_one(total.gather(0, first[None])[0])[..., None]


MERGE = Exercise(
    "devices/merge",
    asks="Σ exp(m_r - m) summed_r over Σ exp(m_r - m) total_r, m the largest",
    solution=solution,
    probes=(
        Probe(
            "ranks count by what they have seen",
            RANKS,
            SIZES,
            change=collected,
            gradient=True,
        ),
        Probe(
            "the maximum runs over ranks, when all sizes are alike",
            RANKS,
            ALIKE,
            change=collected,
        ),
        Probe("large scores do not overflow", RANKS, SIZES, change=far_apart),
        Probe("low ones do not vanish", RANKS, SIZES, change=deep_down),
        Probe(
            "each query has a maximum of its own",
            RANKS,
            SIZES,
            change=unlike_queries,
        ),
        Probe(
            "a rank may have seen nothing",
            RANKS,
            SIZES,
            change=one_saw_nothing,
        ),
        Probe("all may have seen nothing", RANKS, SIZES, change=none_saw_any),
        Probe(
            "float64 stays float64",
            RANKS,
            SIZES,
            change=collected,
            dtype=torch.float64,
        ),
    ),
    mistakes=(
        averaged,
        never_shrunk,
        total_not_shrunk,
        sums_not_shrunk,
        divided_on_each_rank,
        nothing_subtracted,
        one_maximum_for_all_queries,
        grown_instead_of_shrunk,
        zero_by_zero,
        the_largest_takes_all,
    ),
)
