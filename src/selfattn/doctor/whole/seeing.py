"""Who hears whom in a whole model: the future, the batch, the padding."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from selfattn.doctor.exercise import Mistake
from selfattn.doctor.whole import mistakes as known
from selfattn.doctor.whole.calling import Whole, changed, some_ids

N, BATCH = 7, 3
MOVES = 1e-5  # many parts compute in float32, whatever the model's type is
FAR = 1e-2  # of what rounds to few digits


class Fault(NamedTuple):
    """What does not hold, and why, if that can be told."""

    words: str
    mistake: Mistake | None = None


def because(of: Mistake, words: str) -> Fault:
    """A fault with a name."""
    return Fault(words, of)


class NotAskedError(Exception):
    """There is no way to ask, and why."""


@torch.no_grad()
def said(whole: Whole, ids: Tensor, real: Tensor | None = None) -> Tensor:
    """What it says of a text."""
    return whole(ids, real)


def moved(before: Tensor, after: Tensor) -> Tensor:
    """Which tokens' outputs are other ones, (batch, n); NaN is another."""
    gap = (before - after).abs().flatten(2).amax(-1)
    scale = 1 + before.abs().nan_to_num(0, 0, 0).amax()
    return ~(gap <= MOVES * scale)


def influence(whole: Whole) -> Tensor:
    """Which output moves (a row) when which token changes (a column)."""
    ids = some_ids(whole, 1, N)
    before = said(whole, ids)
    columns = [
        moved(before, said(whole, changed(whole, ids, j)))[0] for j in range(N)
    ]
    return torch.stack(columns, dim=-1)


def finite(whole: Whole) -> Fault | None:
    """Numbers come out."""
    output = said(whole, some_ids(whole, BATCH, N))
    if output.isfinite().all():
        return None
    return because(known.no_number, "It gives NaN or infinity.")


def again(whole: Whole) -> Fault | None:
    """Two calls of one text are alike, whatever was read in between."""
    ids = some_ids(whole, BATCH, N)
    first, second = said(whole, ids), said(whole, ids)
    if moved(first, second).any():
        words = "Two calls in evaluation differ."
        return because(known.dropout_that_never_ends, words)
    said(whole, some_ids(whole, BATCH, N + 2, seed=4))
    if moved(first, said(whole, ids)).any():
        words = "After another text it says something else of the first."
        return because(known.something_is_remembered, words)
    return None


def future(whole: Whole) -> Fault | None:
    """A token changes nothing before it."""
    later = influence(whole).triu(1)
    if not later.any():
        return None
    words = f"{int(later.sum())} of {N * (N - 1) // 2} outputs move."
    if not later[0, -1]:  # however many layers pass it on
        return because(known.one_token_ahead, words)
    return because(known.not_causal, words)


def past(whole: Whole) -> Fault | None:
    """A token hears the one before it, and itself."""
    seen = influence(whole)
    if seen.diagonal(-1).any():
        return None
    return because(known.deaf, "Nothing moves as the token before changes.")


def both_sides(whole: Whole) -> Fault | None:
    """A token hears those before it and those after it."""
    seen = influence(whole)
    if not (seen.triu(1).any() or seen.tril(-1).any()):
        return because(known.deaf, "Nothing moves as another token changes.")
    if seen.triu(1).any():
        return None
    return because(known.the_past_alone, "Nothing before a token moves.")


def alone(whole: Whole) -> Fault | None:
    """Each text of a batch is what it is alone."""
    ids = some_ids(whole, BATCH, N)
    together = said(whole, ids)
    other = ids.clone()
    other[1:] = changed(whole, ids[1:], slice(None))
    pairs = [(together[:1], said(whole, ids[:1]))]
    pairs.append((together[:1], said(whole, other)[:1]))
    if any(moved(*pair).any() for pair in pairs):
        return because(known.texts_meet, "The first text of three moves.")
    return None


def order(whole: Whole) -> Fault | None:
    """The order of the tokens before tells."""
    ids = some_ids(whole, 1, N)
    swapped = ids.clone()
    swapped[:, :3] = ids[:, [2, 0, 1]]
    before, after = said(whole, ids), said(whole, swapped)
    if moved(before[:, -1:], after[:, -1:]).any():
        return None
    words = "The last output is the same in another order."
    return because(known.order_does_not_tell, words)


def source(whole: Whole) -> Fault | None:
    """What is read changes what is written."""
    heard = replace(whole, source=None)
    ids = some_ids(whole, 1, N)
    pair = said(heard, ids), said(heard, changed(whole, ids, 2))
    if moved(*pair).any():
        return None
    return because(known.source_not_read, "Another source, the same output.")


FORMS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda real: real.long(),
    lambda real: real,
    lambda real: ~real,
    lambda real: real[:, None, :],
    lambda real: real[:, None, None, :],
    lambda real: torch.zeros(real.shape).masked_fill(~real, -torch.inf),
)


def real_tokens(front: bool) -> Tensor:
    """Which tokens of two texts are real: the first is three shorter."""
    real = torch.ones(2, N, dtype=torch.bool)
    real[0, : 3 if front else -3] = False
    if not front:
        real[0, : N - 3] = True
    return real


def heard_through(whole: Whole, front: bool) -> bool:
    """Whether what stands in the padding changes what a text means.

    Raises:
        Exception: whatever the model raises.
    """
    real = real_tokens(front)
    ids = some_ids(whole, 2, N)
    other = ids.clone()
    other[:1] = torch.where(
        real[:1], ids[:1], changed(whole, ids, slice(None))[:1]
    )
    pair = said(whole, ids, real), said(whole, other, real)
    return bool(at_real(moved(*pair), real).any())


def at_real(found: Tensor, real: Tensor) -> Tensor:
    """What is found at real tokens; all, of a text of another length."""
    return found[real] if found.shape == real.shape else found


def with_form(whole: Whole) -> Whole:
    """The model with the form that its mask must have.

    It is one under which nothing changes if all is real; and, if there is
    such a one, under which padding is not heard.

    Raises:
        NotAskedError: if there is none.
    """
    if "mask" not in whole.names:
        raise NotAskedError("it has no argument for it")
    ids, kept = some_ids(whole, 2, N), []
    plain = said(whole, ids)
    for form in FORMS:
        one = replace(whole, form=form)
        try:
            full = said(one, ids, torch.ones(2, N, dtype=torch.bool))
            if moved(plain, full).any():
                continue
            kept.append(one)
            if not heard_through(one, front=True):
                return one
        except Exception:
            continue  # another form
    if not kept:
        raise NotAskedError("its mask has no form that I know")
    return kept[0]


def padding(whole: Whole) -> Fault | None:
    """What stands in the padding changes nothing."""
    whole = with_form(whole)
    sides = [
        n
        for n, f in (("front", True), ("back", False))
        if heard_through(whole, f)
    ]
    if not sides:
        return None
    words = f"Real tokens move with what stands in {' and '.join(sides)}."
    return because(known.padding_is_heard, words)


def behind(whole: Whole) -> Fault | None:
    """A text padded behind is what it is alone."""
    return as_alone(with_form(whole), front=False)


def before(whole: Whole) -> Fault | None:
    """A text padded in front is what it is alone."""
    whole = with_form(whole)
    found = as_alone(whole, front=True)
    if (
        found
        and not whole.facts.get("left")
        and "positions" not in whole.names
    ):
        raise NotAskedError(
            "its places count the padding (else say left=True)"
        )
    return found


def as_alone(whole: Whole, front: bool) -> Fault | None:
    """Whether the shorter of two texts means what it means alone."""
    real = real_tokens(front)
    ids = some_ids(whole, 2, N)
    padded = said(whole, ids, real)[:1]
    short = ids[:1][real[:1]][None]
    single = said(whole, short, torch.ones_like(short).bool())
    if padded.shape[1] == N and not (whole.reads and whole.source is None):
        padded = padded[:, real[0]]
    if not moved(single, padded).any():
        return None
    return because(
        known.padding_moves_the_text, "Padded, it means another thing."
    )
