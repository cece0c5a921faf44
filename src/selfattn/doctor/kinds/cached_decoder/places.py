"""At which places a decoder's words stand in chunks, beside one pass."""

from torch import Tensor

from selfattn.doctor.exercise import name_of
from selfattn.doctor.kinds.cached_decoder import mistakes
from selfattn.doctor.kinds.cached_decoder.blindness import OTHERWISE
from selfattn.doctor.kinds.cached_decoder.cache_contents import (
    CHUNKS,
    close,
    history,
)
from selfattn.doctor.kinds.cached_decoder.probes import (
    at_once,
    compared,
    moved,
    of_one_word,
    written,
)
from selfattn.doctor.patient import Patient

AMISS = name_of(mistakes.new_words_at_wrong_distances)
# Where the fifth word stands that comes as the third chunk.
PLACES = {
    0: name_of(mistakes.positions_start_again),
    2: name_of(mistakes.positions_count_the_chunks),
}


def in_its_positions(patient: Patient, x: Tensor) -> str:
    """Whether keys are kept that stand elsewhere than in one pass."""
    pairs = [
        *zip(history(patient, x), history(patient, x, at_once(x)), strict=True)
    ]
    wrong = [
        (one, whole)
        for one, whole in pairs
        if one.axis is not None
        and one.after[-1].shape == whole.after[-1].shape
        and not close(one.after[-1], whole.after[-1])
    ]
    if not wrong:
        return AMISS if pairs and are_weights_alone(patient, x) else ""
    alone = history(patient, x[:, 2:3], (1,))
    for one, _ in wrong:
        axis = one.axis or 0
        third = one.after[1].narrow(axis, 2, 1)
        for first in alone:
            if first.after[0].shape == third.shape and close(
                first.after[0], third
            ):
                return name_of(mistakes.positions_start_again)
    lengths = [
        close(one.after[-1].norm(dim=-1), whole.after[-1].norm(dim=-1))
        for one, whole in wrong
    ]
    if all(lengths):
        return AMISS
    return of_places(patient, x) or OTHERWISE


def are_weights_alone(patient: Patient, x: Tensor) -> bool:
    """Whether chunks are off by weights alone, where places tell.

    Where all tokens say the same, what weights they have does not matter. And
    whoever hears places in one pass knows the last token's order before it.
    """
    other = x.clone()
    other[:, :3] = x[:, [1, 2, 0]]
    last = [written(patient, y, at_once(x))[:, -1:] for y in (x, other)]  # type: ignore[arg-type]
    if not bool(moved(*last).any()):
        return False
    same = of_one_word(patient, x, CHUNKS)  # type: ignore[arg-type]
    off = compared(patient, x, CHUNKS)  # type: ignore[arg-type]
    return bool((same == 1).all()) and not bool(off[CHUNKS[0] :].any())


def of_places(patient: Patient, x: Tensor) -> str:
    """At which place the last word stands that comes as a third chunk.

    What is kept of it is what is kept of a word there, in a text that says
    nothing else: in the first layer, that is so. What is kept without its
    place, as values are, tells of none.
    """
    again = x[:, -1:].expand(-1, 6, *x.shape[2:]).clone()
    kept = zip(
        history(patient, x, (2, 2, 1)),
        history(patient, again, (6,)),
        strict=True,
    )
    for one, every in kept:
        if one.axis is None or one.after[-1].shape[one.axis] != 5:
            continue
        mine = one.after[-1].narrow(one.axis, 4, 1)
        ends = (every.after[0].narrow(one.axis, i, 1) for i in (0, 4))
        if close(*ends):
            continue
        for place in range(every.after[0].shape[one.axis]):
            if close(every.after[0].narrow(one.axis, place, 1), mine):
                if place != 4:
                    return PLACES.get(place, AMISS)
                break
    return ""
