"""A whole model that writes: in chunks, with a cache, in beams."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.copying import copy_of
from selfattn.doctor.exercise import Mistake
from selfattn.doctor.kinds.cached_decoder.mistakes import MISTAKES
from selfattn.doctor.kinds.cached_decoder.signs import GIVEN_AWAY, sign
from selfattn.doctor.patient import Patient, handed, parameters
from selfattn.doctor.whole import mistakes as known
from selfattn.doctor.whole.calling import Whole, output_of, some_ids
from selfattn.doctor.whole.seeing import (
    BATCH,
    Fault,
    N,
    NotAskedError,
    because,
    moved,
    said,
)

Step = Callable[[Tensor, Any], tuple[Tensor, Any]]
KEPT = ("past_key_values", "cache", "past")


def stepping(whole: Whole) -> Step:
    """A step of the model: of new tokens and a cache, output and cache.

    Raises:
        NotAskedError: if it keeps none, or nobody knows how.
    """
    told = whole.facts.get("step")
    if told is not None:
        return lambda ids, cache: told(whole.model, ids, cache)
    if "cache" in whole.names:
        return by_argument(whole)
    step = getattr(whole.model, "step", None)
    if not callable(step) or len(parameters(step)) < 2:
        raise NotAskedError("it takes none that I know (else say step=…)")
    if not whole.reads:
        return step
    reader = getattr(whole.model, "read", None)
    if reader is None or whole.source is None:
        raise NotAskedError("it takes none that I know (else say step=…)")
    source = whole.source
    return lambda ids, cache: step(
        ids, cache, memory=reader(source.expand(len(ids), -1))
    )


def by_argument(whole: Whole) -> Step:
    """The step of a model that takes its cache as an argument."""
    name, model = whole.names["cache"], whole.model
    more = {"use_cache": True} if "use_cache" in parameters(model) else {}

    def step(ids: Tensor, cache: Any) -> tuple[Tensor, Any]:
        given = {name: cache, **more}
        if whole.reads and whole.source is not None:
            texts = (whole.source.expand(len(ids), -1),)
            given |= whole.to(ids)
        else:
            texts = (ids,)
        value = handed(model, *texts, **given)
        return output_of(value), kept_in(value)

    return step


def kept_in(value: Any) -> Any:
    """The cache in what a model returns.

    Raises:
        NotAskedError: if there is none.
    """
    for name in KEPT:
        found = getattr(value, name, None)
        if found is None and isinstance(value, dict):
            found = value.get(name)
        if found is not None:
            return found
    if isinstance(value, tuple) and len(value) > 1 and value[-1] is not None:
        return value[-1]
    raise NotAskedError("it returns no cache")


@torch.no_grad()
def in_chunks(
    step: Step, ids: Tensor, chunks: list[int]
) -> tuple[Tensor, Any]:
    """What is said of the last token of each chunk, and the cache."""
    cache, last = None, []
    for chunk in ids.split(chunks, dim=1):
        output, cache = step(chunk, cache)
        last.append(output if output.ndim == 2 else output[:, -1])
    return torch.stack(last, dim=1), cache


def ends(chunks: list[int]) -> list[int]:
    """The last token of each chunk."""
    return [sum(chunks[: i + 1]) - 1 for i in range(len(chunks))]


def cached(whole: Whole) -> Fault | None:
    """Word by word, with a cache, it says what it says at once."""
    return agree(whole, [[1] * N])


def chunked(whole: Whole) -> Fault | None:
    """Chunk by chunk it says what it says at once."""
    return agree(whole, [[N], [3, 2, 2], [1, 4, 2]])


def agree(whole: Whole, ways: list[list[int]]) -> Fault | None:
    """Whether chunks with a cache give what one pass gives."""
    step, ids = stepping(whole), some_ids(whole, BATCH, N)
    full = said(whole, ids)
    for chunks in ways:
        output, _ = in_chunks(step, ids, chunks)
        off = moved(full[:, ends(chunks)], output)
        if off.any():
            words = f"In chunks of {chunks}, {int(off.sum())} outputs differ."
            return because(why(whole, step, ids, full), words)
    return None


def why(whole: Whole, step: Step, ids: Tensor, full: Tensor) -> Mistake:
    """The name of what is wrong with a cache, as far as it shows."""
    with torch.no_grad():
        _, cache = step(ids[:, :-1], None)
        second = step(ids[:, -1:], cache)[0]
        lone = step(ids[:, -1:], None)[0]
    if not moved(
        lone.reshape(BATCH, 1, -1), second.reshape(BATCH, 1, -1)
    ).any():
        return known.cache_not_read
    same = ids[:, :1].expand_as(ids).clone()
    output, _ = in_chunks(step, same, [1] * N)
    if not moved(output[:, :1].expand_as(output), output).any():
        return known.positions_start_again
    return kept_wrongly(whole, step) or known.chunks_tell_another_story


def kept_wrongly(whole: Whole, step: Step) -> Mistake | None:
    """What its cache gives away, looked at as that of a decoder is."""
    patient = Patient(whole.model, {}, lambda thing, facts: step)
    name = sign(patient, None)
    every = (*MISTAKES, *GIVEN_AWAY)
    return next((one for one in every if one.name == name), None)


def reordered(cache: Any, rows: Tensor) -> Any:
    """A cache whose rows are in another order, by whatever way it has."""
    own = getattr(cache, "reorder_cache", None)
    if callable(own):
        other = copy_of(cache)
        returned = other.reorder_cache(rows)
        return other if returned is None else returned
    if isinstance(cache, Tensor):
        if len(rows) not in cache.shape:
            return cache
        return cache.index_select(list(cache.shape).index(len(rows)), rows)
    if isinstance(cache, dict):
        return {n: reordered(x, rows) for n, x in cache.items()}
    if isinstance(cache, tuple) and hasattr(cache, "_fields"):
        return type(cache)(*(reordered(x, rows) for x in cache))
    if isinstance(cache, list | tuple):
        return type(cache)(reordered(x, rows) for x in cache)
    return cache


def beams(whole: Whole) -> Fault | None:
    """After beams were reordered, it goes on as if written so."""
    if agree(whole, [[4, 1, 2]]):
        raise NotAskedError("its cache is wrong without them")
    step, batch = stepping(whole), 5  # which no other axis is
    ids, rows = some_ids(whole, batch, N), torch.tensor([2, 0, 0, 4, 1])
    parents = torch.cat((ids[rows, :4], ids[:, 4:]), dim=1)
    of_model = getattr(whole.model, "reorder_cache", None)
    with torch.no_grad():
        _, cache = step(ids[:, :4], None)
        cache = (of_model or reordered)(cache, rows)
        for i in range(4, N):
            output, cache = step(parents[:, i : i + 1], cache)
    full = said(whole, parents)[:, -1:]
    if not moved(full, output.reshape(full.shape)).any():
        return None
    return because(known.beams_not_reordered, "Its last output is another.")
