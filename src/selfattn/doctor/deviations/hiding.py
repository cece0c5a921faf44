"""What is done otherwise with masks."""

import torch

from selfattn.doctor.deviations.design import Deviation, unchanged, without
from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.masks import causal
from selfattn.masks import causal_mask

LOW = torch.finfo(torch.float32).min


@mistake
def a_billion_in_float16():
    """In float16 it fails as soon as there is a mask.

    Cause: float16 ends at 65,504, and -1e9 does not fit.
    Cure: -torch.inf fits every type.
    Chapter: masks#large-and-negative
    """


@mistake
def causal_without_being_asked():
    """Queries do not see what comes after them, though nobody asked for it.

    Cause: The causal mask is made whether or not the flag is up.
    Cure: Make it if causal.
    Chapter: masks
    """


@mistake
def causal_flag_ignored():
    """Every query sees what comes after it, though the flag says causal.

    Cause: The flag is never used, or swallowed by **kwargs.
    Cure: Hide the scores of later keys before the softmax.
    Chapter: masks
    """


@mistake
def itself_alone():
    """Each token sees itself and nothing else.

    Cause: The positions are compared with ==, or eye was meant to be tril;
        or what came before is hidden where something else hides the rest.
    Cure: j <= i.
    Chapter: masks
    """


@mistake
def one_mask_for_the_whole_batch():
    """Each sequence has the padding of the first.

    Cause: Only the first of a batch of masks is used.
    Cure: Let it broadcast: (batch, 1, n_k), or (batch, 1, 1, n_k) by heads.
    Chapter: masks
    """


@mistake
def masked_with_too_small_a_number():
    """Forbidden keys still get a little attention.

    Cause: What stands for a forbidden score, or is added to one, is a number
        of everyday size, such as -10 or -1: its exponential is a vote.
    Cure: Set them to -inf, whose exponential is 0.
    Chapter: masks#zero-is-a-vote
    """


@mistake
def rows_wiped_that_see():
    """Queries that may see something get nothing.

    Cause: What should wipe out the rows that see nothing wipes out the
        others: it is upside down.
    Cure: weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0).
    Chapter: masks#a-row-with-nothing-in-it
    """


def added(much):
    """Hide by adding a number."""

    def hide(scores, allowed):
        return scores if allowed is None else scores - much * ~allowed

    return hide


def multiplied(scores, allowed):
    """Scores times the mask, as zeros and ones."""
    return scores if allowed is None else scores * allowed


def as_ones(scores, allowed):
    """Scores and the mask, as zeros and ones, added."""
    return scores if allowed is None else scores + allowed.to(scores.dtype)


def late(weights, allowed):
    """Weights times the mask, after the softmax."""
    return weights if allowed is None else weights * allowed


def late_by(fill):
    """A number in place of weights that are forbidden, after the softmax."""

    def after(weights, allowed):
        return (
            weights if allowed is None else weights.masked_fill(~allowed, fill)
        )

    return after


def late_and_mended(weights, allowed):
    """The same, divided by what is left."""
    kept = late(weights, allowed)
    return kept / kept.sum(dim=-1, keepdim=True)


def wiped(weights, allowed):
    """Zeros where a row may see something."""
    if allowed is None:
        return weights
    return weights.masked_fill(allowed.any(dim=-1, keepdim=True), 0.0)


def first_text(mask):
    """The mask of the first text, for all."""
    return mask[:1] if mask.ndim > 2 else mask


def first_row(mask):
    """The mask of the first query, for all."""
    return mask[..., :1, :]


def on_its_side(mask):
    """The mask, transposed."""
    return mask.mT


def turned(mask):
    """True where one may not look."""
    return ~mask


def edge(diagonal):
    """A causal mask whose diagonal is moved."""
    return lambda n_q, n_k: torch.ones(n_q, n_k, dtype=torch.bool).tril(
        n_k - n_q + diagonal
    )


def of_more_than_one(diagonal):
    """The same, where there is more than one token to be hidden from."""

    def table(n_q, n_k):
        return edge(diagonal if n_k > 1 else 0)(n_q, n_k)

    return table


def strict_but_first(n_q, n_k):
    """Not itself, but for a first query that would see nothing."""
    table = edge(-1)(n_q, n_k)
    table[:, 0] |= ~table.any(dim=-1)
    return table


SMALL = (*map(float, range(1, 11)), 12.0, 15.0, 16.0, 20.0, 25.0)
FILLS = (
    Deviation({"hide": without(0.0)}, functions.masked_with_zero),
    Deviation({"hide": multiplied}, functions.masked_with_zero),
    *(
        Deviation({"hide": without(-x)}, masked_with_too_small_a_number)
        for x in SMALL
    ),
    *(
        Deviation({"hide": without(x)}, functions.masked_with_zero)
        for x in (1e-9, -1e-9, 1e-6, -1e-6, 1.1754943508222875e-38)
    ),
    *(
        Deviation({"hide": added(x)}, masked_with_too_small_a_number)
        for x in SMALL
    ),
    Deviation({"hide": as_ones}, functions.mask_added_to_the_scores),
    Deviation(
        {"hide": unchanged, "after": late}, functions.mask_after_softmax
    ),
    Deviation(
        {"hide": unchanged, "after": late_and_mended},
        functions.mask_after_softmax_mended,
    ),
    *(
        Deviation(
            {"hide": unchanged, "after": late_by(fill)},
            functions.mask_after_softmax,
        )
        for fill in (-torch.inf, -1e9, torch.finfo(torch.float32).min)
    ),
    Deviation({"hide": unchanged}, functions.mask_ignored),
    Deviation({"after": wiped}, rows_wiped_that_see),
)
MEANINGS = (
    Deviation({"allow": turned}, functions.mask_upside_down),
    Deviation({"allow": on_its_side}, functions.mask_on_its_side),
    Deviation({"allow": first_text}, one_mask_for_the_whole_batch),
    Deviation({"allow": lambda mask: None}, functions.mask_ignored),
)
TRIANGLES = (
    Deviation({"past": edge(-1)}, causal.not_itself),
    Deviation({"past": of_more_than_one(-1)}, causal.not_itself),
    Deviation({"past": strict_but_first}, causal.not_itself),
    Deviation({"past": edge(1)}, causal.one_too_many),
    Deviation(
        {"past": lambda n, m: torch.ones(n, m).bool().tril()},
        causal.first_on_first,
    ),
    Deviation({"past": lambda n, m: ~causal_mask(n, m)}, causal.upside_down),
    Deviation({"past": lambda n, m: ~edge(1)(n, m)}, causal.upside_down),
    Deviation(
        {"past": lambda n, m: torch.ones(n, m).bool().triu(m - n)},
        causal.from_the_other_side,
    ),
    Deviation(
        {"past": lambda n, m: torch.ones(n, m).bool().tril(n - m)},
        causal.shifted_the_wrong_way,
    ),
    Deviation(
        {"past": lambda n, m: edge(0)(n, m) & ~edge(-1)(n, m)}, itself_alone
    ),
)
# First: whoever keeps every mask but the flag's has not ignored a mask.
NO_FLAG = (Deviation({"past": lambda n, m: None}, causal_flag_ignored),)
ALWAYS = (Deviation({"always": True}, causal_without_being_asked),)
# Numbers that hide as well as -inf does, where something else is allowed.
SAFE = (
    Deviation({"hide": without(LOW)}, None),
    Deviation({"hide": added(1e4)}, None),
    Deviation({"hide": added(1e9)}, None),
    Deviation({"hide": without(-1e5)}, None),
    Deviation({"weigh": lambda scores: scores.softmax(dim=-1)}, None),
)
ALL = (*NO_FLAG, *FILLS, *MEANINGS, *TRIANGLES, *ALWAYS)
