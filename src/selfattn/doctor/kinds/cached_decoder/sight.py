"""What gives a decoder's mistake away by who sees whom, at once and in chunks.

Nobody knows its numbers, but what moves when what changes can be looked at.
"""

import torch
from torch import Tensor

from selfattn.doctor.deviations import hiding, scores
from selfattn.doctor.exercise import name_of
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.attention import mistakes as flags
from selfattn.doctor.kinds.cached_decoder import mistakes
from selfattn.doctor.kinds.cached_decoder.blindness import (
    OTHERWISE,
    of_the_blind,
)
from selfattn.doctor.kinds.cached_decoder.cache_contents import CHUNKS, close
from selfattn.doctor.kinds.cached_decoder.probes import (
    EXACT,
    at_once,
    changed,
    compared,
    influence,
    moved,
    written,
)
from selfattn.doctor.kinds.cached_decoder.score_tables import (
    hide_the_future,
)
from selfattn.doctor.kinds.cached_decoder.steps_taken import step
from selfattn.doctor.patient import Patient

ASIDE = 1e-2  # of a change along a line, more is no rounding


def in_what_it_sees(patient: Patient, x: Tensor) -> str:
    """Who sees whom, in one pass and in chunks."""
    if blind := of_the_blind(patient, x):
        return blind
    n = x.shape[1]
    seen = influence(patient, x, at_once(x))  # type: ignore[arg-type]
    past = torch.ones(n, n).tril().bool()
    if torch.equal(seen, past.mT) or torch.equal(seen, past.mT.triu(1)):
        return name_of(triangles.from_the_other_side)
    if torch.equal(seen, past.tril(-1)):
        return name_of(mistakes.not_itself_and_the_first_is_nan)
    if torch.equal(seen.tril(1), seen) and seen.diagonal(1).all():
        return name_of(triangles.one_too_many)
    if is_upside_down(patient, x, seen):
        return name_of(triangles.upside_down)
    if seen.triu(1).any():
        if all_alike(patient, x):
            return name_of(scores.weights_averaged)
        if are_only_fainter(patient, x):
            return name_of(functions.mask_after_softmax)
        if not seen.diagonal()[1:].any():
            return name_of(mistakes.not_itself_and_the_first_averages)
        return of_the_future(patient, x, seen)
    if not across(patient, x):
        if step(patient, x, 0)[0].averaged:
            return name_of(scores.weights_averaged)
        return name_of(flags.keys_of_the_first_sequence)
    return of_chunks(patient, x, seen)


def of_the_future(patient: Patient, x: Tensor, seen: Tensor) -> str:
    """Why what is later is seen: faintly; or nothing is hidden, and all is.

    Where some of it is hidden, or each table of scores hides all of it, the
    future comes in another way, such as by an axis that is another one.
    """
    n = x.shape[1]
    watched, _ = step(patient, x, 0)
    if watched.averaged:
        return name_of(scores.weights_averaged)
    if name := faintly(patient, x):
        return name
    later = torch.ones(n, n).triu(1).bool()
    if not bool(seen[later].all()) or hide_the_future(watched.tables, n):
        return OTHERWISE
    return name_of(mistakes.not_causal)


def is_upside_down(patient: Patient, x: Tensor, seen: Tensor) -> bool:
    """Whether only what is later is seen; the last, alone, may see all.

    Itself it may see by the path around the attention.
    """
    first = seen[:-1]
    later = torch.ones_like(seen).bool().triu(1)[:-1]
    if not torch.equal(first.triu(1), later) or first.tril(-1).any():
        return False
    last = written(patient, x, at_once(x))[:, -1]  # type: ignore[arg-type]
    return bool(seen[-1, :-1].all()) or bool(last.isnan().any())


def faintly(patient: Patient, x: Tensor) -> str:
    """With what number later tokens are hidden, if it is a small one.

    Then they have the same share of the weights whatever they are, so that
    what two of them change is the sum of what each of them changes.
    """
    both = changed(x, -1)
    both[:, -2] = changed(x, -2)[:, -2]
    said = [
        written(patient, y, at_once(x))[:, :-2]  # type: ignore[arg-type]
        for y in (x, changed(x, -1), changed(x, -2), both)
    ]
    last, other, two = (y - said[0] for y in said[1:])
    if not close(last + other, two):
        return ""
    second = written(patient, changed(x, 0), at_once(x))  # type: ignore[arg-type]
    past = (second[:, 1:-2] - said[0][:, 1:]).abs().mean()
    if last.abs().mean() < past / 8:
        return name_of(hiding.masked_with_too_small_a_number)
    return name_of(functions.masked_with_zero)


def all_alike(patient: Patient, x: Tensor) -> bool:
    """Whether, in one pass, all tokens of a text are told the same."""
    said = written(patient, x, at_once(x))  # type: ignore[arg-type]
    return not bool(moved(said[:, :1].expand_as(said), said).any())


def are_only_fainter(patient: Patient, x: Tensor) -> bool:
    """Whether a later token makes what is said longer or shorter alone.

    Then it shares in the weights, and what it says is not heard. A small
    change hardly turns anything: so what counts is how much of it is aside.
    """
    before, after = (
        written(patient, y, at_once(x))[:, :-1]  # type: ignore[arg-type]
        for y in (x, changed(x, -1))
    )
    change = after - before
    along = (change * before).sum(-1, True) / before.square().sum(-1, True)
    aside = (change - along * before).norm(dim=-1)
    rounding, much = EXACT / 10 * before.norm(dim=-1), change.norm(dim=-1)
    if not (much > 10 * rounding).any():
        return False  # of so little no direction is to be seen
    return bool((aside <= ASIDE * much + rounding).all())


def across(patient: Patient, x: Tensor) -> bool:
    """Whether, in one pass, each text is for itself."""
    other = x.clone()
    other[:1] = changed(x[:1], slice(None))
    pair = (
        written(patient, y, at_once(x))  # type: ignore[arg-type]
        for y in (x, other)
    )
    return not bool(moved(*pair)[1:].any())


def is_right_singly(patient: Patient, x: Tensor) -> bool:
    """Whether, word by word, it says what it says at once."""
    singly = (1,) * x.shape[1]
    return bool((compared(patient, x, singly) == 1).all())  # type: ignore[arg-type]


def of_chunks(patient: Patient, x: Tensor, once: Tensor) -> str:
    """What tokens see in chunks that they do not see in one pass."""
    seen = influence(patient, x, CHUNKS)  # type: ignore[arg-type]
    if torch.equal(seen, once):
        return ""
    own = torch.block_diag(*(torch.ones(c, c) for c in CHUNKS)).bool()
    if torch.equal(seen, once & own):
        return name_of(mistakes.cache_not_read)
    more, less = seen & ~once, once & ~seen
    if more.any() and torch.equal(more, more & own):
        if less.any():
            # Written over by the new ones.
            return name_of(mistakes.only_the_last_chunk_kept)
        if not is_right_singly(patient, x):
            return ""
        return name_of(mistakes.not_causal_within_a_chunk)
    first = torch.cat([torch.ones(c, seen.shape[1]).tril() for c in CHUNKS])
    first = first.bool()
    if torch.equal(seen, first) or torch.equal(
        seen, first | torch.eye(len(seen)).bool()
    ):
        return name_of(mistakes.first_on_first)
    return ""
