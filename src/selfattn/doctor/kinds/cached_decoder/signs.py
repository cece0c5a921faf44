"""What gives a decoder's mistake away: its cache, and who sees whom.

Nobody knows its numbers. But a cache can be looked into between two chunks:
how much it keeps, in which order, of which text, in which type. What is seen
there says nothing of whether the decoder is ill, and much of why.
"""

import functools

import torch
from torch import Tensor

from selfattn.doctor.deviations import handing_back, hiding, scores
from selfattn.doctor.exercise import described, mistake, name_of
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.exercises.positions import batch_axis
from selfattn.doctor.kinds.attention import mistakes as flags
from selfattn.doctor.kinds.cached_decoder import mistakes
from selfattn.doctor.kinds.cached_decoder.blindness import OTHERWISE
from selfattn.doctor.kinds.cached_decoder.cache_contents import (
    Kept,
    close,
    history,
)
from selfattn.doctor.kinds.cached_decoder.places import (
    AMISS,
    in_its_positions,
)
from selfattn.doctor.kinds.cached_decoder.probes import (
    changed,
    moved,
    text,
    written,
)
from selfattn.doctor.kinds.cached_decoder.sight import in_what_it_sees
from selfattn.doctor.kinds.cached_decoder.steps_taken import ALL, in_its_steps
from selfattn.doctor.patient import Patient

HALVES = (torch.float16, torch.bfloat16)


@mistake
def caches_of_layers_exchanged():
    """A layer goes on with what another one has read.

    Cause: The caches are handed to the layers in another order, or one of
        them to all.
    Cure: Each layer has a cache of its own.
    Chapter: multihead
    """


# What has no twin here, and is named by what is to be seen of it.
GIVEN_AWAY = (
    caches_of_layers_exchanged,
    *(
        described(known)
        for known in (
            triangles.from_the_other_side,
            triangles.one_too_many,
            flags.keys_of_the_first_sequence,
            scores.weights_averaged,
            functions.mask_after_softmax,
            functions.masked_with_zero,
            hiding.masked_with_too_small_a_number,
            triangles.upside_down,
            functions.softmax_over_queries,
            functions.weights_on_their_side,
            functions.mask_on_its_side,
            flags.no_softmax,
            scores.softmax_over_heads,
            batch_axis.positions_count_the_texts,
        )
    ),
    handing_back.axes_in_another_order,
    handing_back.changed_in_place,
)

NEVER_GROWS = name_of(mistakes.cache_never_grows)
ONE_CHUNK = name_of(mistakes.only_the_last_chunk_kept)
ALL_BUT_ONE = name_of(mistakes.last_word_not_kept)
# From the second chunk on everything is wrong: that has many causes.
UNSURE = (
    AMISS,
    name_of(mistakes.keys_kept_as_values),
    name_of(mistakes.not_causal),
    name_of(mistakes.not_causal_within_a_chunk),
    name_of(mistakes.not_itself_and_the_first_averages),
    ONE_CHUNK,
    name_of(mistakes.positions_start_again),
)


def sign(patient: Patient, d_model: int | None) -> str:
    """The name of the mistake that is to be seen; "" if none is."""
    x = text(d_model)
    looks = (
        functools.partial(in_its_steps, patient, text(d_model, ALL)),
        *(
            functools.partial(look, patient, x)
            for look in (in_the_cache, in_what_it_sees, in_its_positions)
        ),
    )
    for look in looks:
        try:
            with torch.no_grad():
                name = look()
        except Exception:
            continue  # it fails at what it is asked, which is told elsewhere
        if name:
            return name
    return ""


def in_the_cache(patient: Patient, x: Tensor) -> str:
    """What the cache keeps of each chunk."""
    kept = history(patient, x)
    if not kept:
        return ""
    made = [last for one in kept if not is_in((last := one.after[-1]), x)]
    if any(map(is_rounded, made)):
        return name_of(mistakes.kept_in_half_precision)
    growing = [one for one in kept if one.axis is not None]
    for one in growing:
        name = of_lengths([t.shape[one.axis] for t in one.after])
        if name == NEVER_GROWS and is_written_over(one):
            name = ONE_CHUNK
        if name == ONE_CHUNK and not is_read(patient, x):
            return name_of(mistakes.cache_not_read)
        if name == ALL_BUT_ONE and not is_first(patient, x, one):
            return OTHERWISE
        if name:
            return name
    for i, one in enumerate(growing):
        name = of_order(one, growing, i)
        if name:
            return name
    return ""


def is_read(patient: Patient, x: Tensor) -> bool:
    """Whether what a chunk becomes depends on what was read before."""
    other = x.clone()
    other[:, :2] = changed(x[:, :2], slice(None))
    said = [
        written(patient, text[:, :3], (2, 1))  # type: ignore[arg-type]
        for text in (x, other)
    ]
    return bool(moved(*said)[:, 2].any())


def is_written_over(one: Kept) -> bool:
    """Whether the third token stands where the first one stood."""
    old, new = (t.narrow(one.axis or 0, 1, 1) for t in one.after[:2])
    return torch.equal(old, new) and not torch.equal(*one.after[:2])


def is_first(patient: Patient, x: Tensor, one: Kept) -> bool:
    """Whether what is kept of the first chunk is not its second token."""
    other = x.clone()
    other[:, 1] = changed(x, 1)[:, 1]
    first = [kept.after[0] for kept in history(patient, other[:, :2], (2,))]
    return any(
        f.shape == one.after[0].shape and close(f, one.after[0]) for f in first
    )


def is_in(kept: Tensor, x: Tensor) -> bool:
    """Whether what is kept came in like this, its digits the caller's."""
    return kept.dtype == x.dtype and bool(torch.isin(kept, x).all())


def is_rounded(x: Tensor) -> bool:
    """Whether numbers are of half precision, now or once."""
    if x.dtype in HALVES:
        return True
    some = x[x != 0]
    return some.numel() > 8 and any(
        torch.equal(rounded_to(half, some), some) for half in HALVES
    )


def rounded_to(half: torch.dtype, x: Tensor) -> Tensor:
    """Numbers as a type of fewer digits holds them."""
    return x.to(half).to(x.dtype)


def of_lengths(lengths: list[int]) -> str:
    """What is wrong with how much is kept after 2, 3 and 5 tokens."""
    known: dict[tuple[int, ...], str] = {
        (2, 2, 2): NEVER_GROWS,
        (2, 1, 2): ONE_CHUNK,
        (1, 1, 2): ALL_BUT_ONE,
    }
    return known.get(tuple(lengths), "")


def of_order(one: Kept, all_of: list[Kept], i: int) -> str:
    """Where what was kept before stands now, and whose it is."""
    axis = one.axis or 0
    old, new = one.after[0], one.after[1]
    n = old.shape[axis]
    if new.shape[axis] <= n:
        return ""
    front, back = new.narrow(axis, 0, n), new.narrow(axis, -n, n)
    if torch.equal(front, old):
        return ""
    if torch.equal(back, old):
        return name_of(mistakes.new_ones_in_front)
    if torch.equal(front, old[:1].expand_as(old)):
        return name_of(mistakes.first_text_for_all)
    if any(torch.equal(front, rounded_to(half, old)) for half in HALVES):
        return name_of(mistakes.kept_in_half_precision)
    for j, other in enumerate(all_of):
        if j == i or other.after[0].shape != old.shape:
            continue
        if torch.equal(front, other.after[0]):
            pair = j // 2 == i // 2
            layers = name_of(caches_of_layers_exchanged)
            return name_of(mistakes.keys_kept_as_values) if pair else layers
    turned = front.norm(dim=-1), old.norm(dim=-1)
    if torch.allclose(*turned, rtol=1e-4):
        return name_of(mistakes.keys_rotated_again)
    return ""
