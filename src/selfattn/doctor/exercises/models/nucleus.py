"""`top_p(logits, p)`: minus infinity for all but those that make up p."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe

SIZES = {"batch": 3, "n_tokens": 7}


def top_p(logits, p):
    """The solution."""
    ordered, place = logits.sort(dim=-1, descending=True)
    chances = ordered.softmax(dim=-1)
    before = chances.cumsum(dim=-1) - chances
    ordered = ordered.masked_fill(before >= p, -torch.inf)
    return torch.empty_like(logits).scatter(-1, place, ordered)


def cut(logits, keep_of):
    """All but those that a rule keeps of the ordered chances."""
    ordered, place = logits.sort(dim=-1, descending=True)
    keep = keep_of(ordered.softmax(dim=-1))
    ordered = ordered.masked_fill(~keep, -torch.inf)
    return torch.empty_like(logits).scatter(-1, place, ordered)


@mistake
def without_the_one_that_crosses(logits, p):
    """You keep too few: they do not reach p.

    Cause: Kept are tokens whose running total, with themselves, is at most p.
    Cure: Keep a token if p was not made up *before* it: subtract its own
        chance from the running total.
    Thread: https://github.com/rasbt/reasoning-from-scratch/issues/164
    """
    return cut(logits, lambda chances: chances.cumsum(dim=-1) <= p)


@mistake
def likely_enough_by_itself(logits, p):
    """You keep what is likely by itself.

    Cause: Each chance is compared with p, or with 1 - p.
    Cure: It is the running total over the likeliest that counts.
    """
    return cut(logits, lambda chances: chances >= 1 - p)


@mistake
def left_in_order(logits, p):
    """The scores come back sorted.

    Cause: They were not put back where they stood.
    Cure: scatter them by the places that sort returned.
    """
    chances = logits.sort(dim=-1, descending=True).values.softmax(dim=-1)
    ordered = logits.sort(dim=-1, descending=True).values
    before = chances.cumsum(dim=-1) - chances
    return ordered.masked_fill(before >= p, -torch.inf)


@mistake
def put_back_by_gather(logits, p):
    """The right number is kept, and not the right ones.

    Cause: gather reads from the places; here is to be written to them.
    Cure: torch.empty_like(logits).scatter(-1, place, ordered).
    """
    ordered, place = logits.sort(dim=-1, descending=True)
    chances = ordered.softmax(dim=-1)
    before = chances.cumsum(dim=-1) - chances
    ordered = ordered.masked_fill(before >= p, -torch.inf)
    return ordered.gather(-1, place)


@mistake
def the_unlikely_first(logits, p):
    """You keep the unlikely.

    Cause: sort puts the smallest first unless it is told otherwise.
    Cure: descending=True.
    """
    return -top_p(-logits, p).masked_fill(top_p(-logits, p).isinf(), torch.inf)


@mistake
def no_softmax(logits, p):
    """Your total is of scores, not of chances.

    Cause: The scores themselves were added up.
    Cure: A softmax first.
    """
    ordered, place = logits.sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered
    ordered = ordered.masked_fill(before >= p, -torch.inf)
    return torch.empty_like(logits).scatter(-1, place, ordered)


@mistake
def zeros_for_the_rest(logits, p):
    """What is cut gets a score of 0, whose exponential is 1.

    Cause: masked_fill with 0.
    Cure: Minus infinity, whose exponential is 0.
    """
    return top_p(logits, p).masked_fill(top_p(logits, p).isinf(), 0.0)


@mistake
def chances_returned(logits, p):
    """These are chances; scores are asked for.

    Cause: The softmax was taken on the way out.
    Cure: Return the scores, minus infinity for the others.
    """
    return top_p(logits, p).softmax(dim=-1)


@mistake
def sums_over_the_batch(logits, p):
    """One text's chances are added to another's.

    Cause: The running total or the sort goes along the first axis.
    Cure: dim=-1, the tokens'.
    """
    return top_p(logits.T, p).T if logits.ndim == 2 else top_p(logits, p)


def rows(p):
    """A batch of scores, spread so that no total comes near p."""
    return {"logits": "batch n_tokens", "p": lambda _: p}


def spread(inputs):
    """No two alike, and a largest chance between .4 and .8."""
    logits = inputs["logits"]
    step = torch.arange(logits.shape[-1]) * 0.13
    inputs["logits"] = 1.5 * (logits + step.to(logits.dtype))


TOP_P = Exercise(
    "models/top_p",
    asks="logits, minus infinity for all but the fewest likeliest that "
    "make up p",
    solution=top_p,
    probes=(
        Probe("what is kept reaches p", rows(0.8), SIZES, change=spread),
        Probe(
            "a small p keeps the likeliest", rows(0.1), SIZES, change=spread
        ),
        Probe("a large p keeps nearly all", rows(0.97), SIZES, change=spread),
        Probe(
            "float64 stays float64",
            rows(0.6),
            SIZES,
            change=spread,
            dtype=torch.float64,
        ),
    ),
    mistakes=(
        without_the_one_that_crosses,
        likely_enough_by_itself,
        left_in_order,
        put_back_by_gather,
        the_unlikely_first,
        no_softmax,
        zeros_for_the_rest,
        chances_returned,
        sums_over_the_batch,
    ),
)
