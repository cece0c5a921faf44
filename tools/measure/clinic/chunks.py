"""The oracle of decoders with a cache: what they promise is to be consistent.

In chunks, however cut, one says what it says in one pass; no token sees a
later one, and no text another. Which numbers it says is its own affair: with
another scale it is another decoder, and keeps its promise.
"""

from typing import Any

import torch
from torch import Tensor

from tools.measure.clinic.inputs import Chance
from tools.measure.clinic.oracle import (
    TRIALS,
    Answer,
    Verdict,
    answer,
    compare,
    first_seen,
    parameters,
    trials,
)
from tools.measure.clinic.patients import Patient, stirred, whole_copy

KIND = "cached-decoder"


def judged(healthy: Patient, mutant: Patient, kind: str = KIND) -> Verdict:
    """Whether a mutant breaks what every decoder with a cache promises."""
    one, other = (stirred(whole_copy(p.thing)) for p in (healthy, mutant))
    if parameters(one) != parameters(other):
        return Verdict("another", "it has other parameters")
    found = [
        why_not(one, other, given, by)
        for given, by in trials(healthy, kind, torch.float64, TRIALS)
        if by.loud <= 4  # louder ones leave one key in each row
    ]
    return first_seen(found) or Verdict("equivalent")


def why_not(
    healthy: Any, other: Any, given: dict[str, Tensor], by: Chance
) -> str:
    """What a decoder does that it should not; "" if it does nothing such."""
    (x,) = given.values()  # whatever it is called
    right = answer(healthy, given, KIND, by)
    chunks = answer(other, given, KIND, by)
    if chunks.error or chunks.changed:
        return compare(right, chunks, torch.inf)
    kinds = [(t.shape, t.dtype) for t in (*right.tensors, *chunks.tensors)]
    if kinds[0] != kinds[-1]:
        return "another shape or type"
    if not chunks.tensors[0].isfinite().all():
        return "NaN or infinity"
    later = x.clone()
    later[:, -1] = another(x[:, -1])
    for other_way, seen, why in (
        (at_once(other, x), slice(None), "in chunks it says something else"),
        (at_once(other, later), slice(-1), "a later token is seen"),
        (one_by_one(other, x), slice(None), "another text is seen"),
    ):
        if other_way.error:
            return f"raises {other_way.error}"
        whole = Answer(tuple(t[:, seen] for t in other_way.tensors))
        mine = Answer(tuple(t[:, seen] for t in chunks.tensors))
        if compare(whole, mine, 1e-9):
            return why
    return ""


def another(token: Tensor) -> Tensor:
    """A token that is another one; of a number of a word, such a number.

    >>> another(torch.tensor([0, 1, 8]))
    tensor([1, 0, 7])
    """
    if token.is_floating_point():
        return -3 * token + 1
    return (token - 1).abs()


def at_once(thing: Any, x: Tensor) -> Answer:
    """What it says in one pass."""
    try:
        return Answer((thing(x.clone(), None)[0],))
    except Exception as error:
        return Answer(error=f"{type(error).__name__}: {error}"[:120])


def one_by_one(thing: Any, x: Tensor) -> Answer:
    """What it says of each text alone."""
    texts = [at_once(thing, text) for text in x.split(1)]
    for text in texts:
        if text.error:
            return text
    return Answer((torch.cat([text.tensors[0] for text in texts]),))
