"""The name of what an answer does, where no mistake tells all of it.

A harmless convention beside a mistake, such as another number for what is
forbidden, or a refusal of half precision, spoils the agreement with every
mistake that is known. So what is compared here are values in full precision
alone, where none of that shows: numbers that agree there with a deviation,
and with no other, agree by its cause.
"""

import functools
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from selfattn.doctor.engine.by_itself import fault, is_value, seen_alone
from selfattn.doctor.engine.comparison import (
    TOLERANCE,
    comparable,
    difference,
    tells_something,
)
from selfattn.doctor.engine.evidence import given_away, told_by_a_probe
from selfattn.doctor.engine.matching import (
    Seen,
    agrees,
    mistake_made,
    observe_known,
)
from selfattn.doctor.engine.outcome import Outcome, differentiable, observe
from selfattn.doctor.engine.two_at_once import first_of, weightier_first
from selfattn.doctor.exercise import Exercise, Mistake, name_of
from selfattn.doctor.exercises.dot_product import attention
from selfattn.doctor.probes import Inputs, Probe

LARGE, LARGEST = 10.0, 1000.0  # outputs of sound code are near one
ROUNDED = 100.0  # beyond, a count would be taken for the next one
COMPUTED = name_of(attention.computed_in_float32)
FLOAT32 = 1e-5  # how far off that is
SECONDS = 3.0  # of one thread, to look for two mistakes at once


def named(
    answer: Any, exercise: Exercise, seen: Sequence[Seen], second: bool = True
) -> Mistake | None:
    """The deviation that explains all values, or what gives itself away.

    Two at once are looked for if there is a ``second`` look.
    """
    return (
        inside(answer, exercise)
        or given_away(answer, exercise)
        or explained(exercise, seen, second)
        or alike_in_kind(exercise, seen)
        or rounded(exercise, seen)
        or seen_alone(answer, exercise, seen)
        or told_by_a_probe(exercise, seen)
    )


def inside(answer: Any, exercise: Exercise) -> Mistake | None:
    """The mistake of a part of an answer, where that can be asked alone."""
    pair = exercise.inside and exercise.inside(answer)
    if not pair:
        return None
    other, part = pair
    seen = [Seen(p, observe(other, part, p)) for p in other.probes]
    return mistake_made(other, seen) or explained(other, seen)


def explained(
    exercise: Exercise, seen: Sequence[Seen], second: bool = True
) -> Mistake | None:
    """The mistake, or the two, that agree on all values in full precision.

    Of several that do, the one that agrees on most of the rest. Pairs of
    them are tried if there is a ``second`` look.
    """
    values, failing = compared(exercise, seen)
    if not any(tells_something(one.outcome.value) for one in failing):
        return None
    found = found_on(exercise, soonest(failing, values), failing, second)
    return max(
        found,
        key=lambda one: sum(agrees(exercise, one, *s[:2]) for s in seen),
        default=None,
    )


def compared(
    exercise: Exercise, seen: Sequence[Seen]
) -> tuple[list[Seen], list[Seen]]:
    """The values that tell most, and those of them that are wrong.

    They are those without gradients, unless it is the gradients; and those
    that no convention is asked of, unless it was told and is not kept.
    """
    usual = [one for one in seen if is_value(one)]
    bare = [one._replace(probe=asked_of_all(one.probe)) for one in seen]
    kept = [s for s, b in zip(seen, bare, strict=True) if is_value(b)]
    for values in (list(map(plain, usual)), usual, list(map(plain, kept))):
        wrong = [one for one in values if fault(exercise, one) is not None]
        if wrong:
            return values, wrong
    return [], []


@functools.lru_cache(maxsize=2000)
def asked_of_all(probe: Probe) -> Probe:
    """A probe as if no convention were asked of it."""
    return replace(probe, convention="")


def found_on(
    exercise: Exercise,
    in_order: Sequence[Seen],
    failing: Sequence[Seen],
    second: bool,
) -> list[Mistake]:
    """What agrees on all values; or else, on all but the finest.

    Far out, and in float64, who rounds on the way is like nobody, whatever
    else is wrong; if two mistakes tell that, too, they come first.
    """
    found = alike(exercise, in_order)
    if found:
        return found
    coarse = [one for one in in_order if not is_fine(one)]
    if not coarse or all(map(is_fine, failing)):
        return list(first_of(two(exercise, in_order))) if second else []
    found = alike(exercise, coarse)
    if not second:
        return found
    if found:
        names = {one.name for one in found}
        return list(first_of(two(exercise, in_order, names))) or found
    return list(first_of(two(exercise, coarse)))


def soonest(failing: Sequence[Seen], values: Sequence[Seen]) -> list[Seen]:
    """First those that fail, by size: who is wrong elsewhere shows soonest."""
    first = sorted(failing, key=lambda one: size_of(one.outcome.value))
    return [*first, *(one for one in values if one not in failing)]


def is_fine(one: Seen) -> bool:
    """Whether a probe asks for more digits than float32 has, at the end."""
    return one.probe.dtype == torch.float64 or "long" in one.probe.needs


def alike(exercise: Exercise, values: Sequence[Seen]) -> list[Mistake]:
    """The mistakes and deviations that give all of these values."""
    return [
        one
        for one in (*exercise.mistakes, *exercise.deviations)
        if does(exercise, one, values)
    ]


def size_of(value: Any) -> int:
    """How many numbers a value has."""
    return int(value.numel())


def two(
    exercise: Exercise, values: Sequence[Seen], names: Collection[str] = ()
) -> Iterator[Mistake]:
    """Pairs of deviations that agree on all values, as long as time lasts.

    Most are out by the first look, on the smallest input that fails. If there
    are ``names``, one of a pair has one of these.
    """
    end = time.thread_time() + SECONDS
    first = values[0]
    inputs = first.probe.make()
    for pair in exercise.second():
        if time.thread_time() > end:
            return
        both = {pair.name, pair.also.name if pair.also else ""}
        if names and not both & {*names}:
            continue
        if near(exercise, pair, first, inputs) and does(
            exercise, pair, values
        ):
            yield weightier_first(exercise, pair, values)


def near(
    exercise: Exercise, known: Mistake, one: Seen, inputs: Inputs
) -> bool:
    """Whether a mistake gives about this value, in one quick look."""
    try:
        with torch.no_grad():
            value = exercise.run(known.answer, inputs)
    except Exception:
        return False
    mine: Any = one.outcome.value
    if not comparable(value, mine):
        return False
    return torch.allclose(value, mine, rtol=1e-3, atol=1e-4, equal_nan=True)


def does(exercise: Exercise, known: Mistake, values: Iterable[Seen]) -> bool:
    """Whether a mistake gives all of these values."""
    for one in values:
        expected = observe_known(exercise, known, one.probe)
        if expected.error is not None:
            return False
        limit = allowed(exercise, one.probe, expected)
        if difference(one.outcome, expected, limit):
            return False
    return True


def allowed(
    exercise: Exercise, probe: Probe, expected: Outcome
) -> float | None:
    """How far a value may be from a mistake's, None for as usual.

    A mistake may divide by next to nothing, and then its numbers are large,
    and rounding, in whatever is divided by, grows with their square. What is
    predicted is rounded on paper, to as many digits as what is right.
    """
    value = expected.value
    if not (differentiable(value) and value.numel()):
        return probe.tolerance
    large = float(value.detach().abs().nan_to_num(0, 0, 0).max())
    if large < LARGE:
        return probe.tolerance
    usual = probe.tolerance or TOLERANCE.get(value.dtype, 0.0)
    if exercise.predicted:
        right: Any = observe_known(exercise, None, probe).value
        beside = large / max(1.0, float(right.abs().max()))
        return usual * min(max(1.0, beside), ROUNDED)
    return usual * min(large, LARGEST) ** 2


def plain(one: Seen) -> Seen:
    """The same without gradients, which cost most and tell least.

    What becomes of the inputs is left out, too: it is another matter.
    """
    bare = Outcome(value=one.outcome.value)
    return one._replace(probe=forwards(one.probe), outcome=bare)


@functools.lru_cache(maxsize=2000)  # so that what is known of one is found
def forwards(probe: Probe) -> Probe:
    """A probe without gradients."""
    return replace(probe, gradient=False)


def alike_in_kind(exercise: Exercise, seen: Sequence[Seen]) -> Mistake | None:
    """The mistake with the same faults, where no fault is one of values.

    Which input is changed or gets no gradient, which type comes out, or what
    is raised, in the very same words.
    """
    mine = kinds_of_fault(exercise, seen)
    sorts = {sort for sort, _ in mine.values()}
    if not sorts or not sorts <= {"modifies", "gradient", "dtype", "raises"}:
        return None
    if any(s == "gradient" and "flows" not in w for s, w in mine.values()):
        return None  # another gradient may have any cause
    values = [plain(one) for one in seen if is_value(one)]
    failing = [one for one in seen if one.probe in mine]
    best, most = None, (len(mine) - 1) // 2
    for known in (*exercise.mistakes, *exercise.deviations):
        if "modifies" in sorts and not does(exercise, known, values):
            continue  # it changes the same input into something else
        same = 0
        for left, one in zip(range(len(failing), 0, -1), failing, strict=True):
            if same + left <= most:
                break  # few do the same: the others are asked no further
            its = kinds_of_fault(exercise, done_by(exercise, known, [one]))
            same += its.get(one.probe) == mine[one.probe]
        if same <= most:
            continue
        its = kinds_of_fault(exercise, done_by(exercise, known, seen))
        if not {sort for sort, _ in its.values()} - sorts:
            best, most = known, same
    return best


def done_by(
    exercise: Exercise, known: Mistake, seen: Sequence[Seen]
) -> list[Seen]:
    """What a mistake does on the same probes."""
    return [
        one._replace(outcome=observe_known(exercise, known, one.probe))
        for one in seen
    ]


def rounded(exercise: Exercise, seen: Sequence[Seen]) -> Mistake | None:
    """What it is to be wrong in float64 alone, and there by a rounding.

    Whoever sums in another order is rounded to other digits than a mistake.
    """
    known = {m.name: m for m in (*exercise.mistakes, *exercise.deviations)}
    wrong = [one for one in seen if fault(exercise, one) is not None]
    if not wrong or COMPUTED not in known:
        return None
    for one in wrong:
        if one.probe.dtype != torch.float64 or not is_value(one):
            return None
        right = Outcome(value=observe_known(exercise, None, one.probe).value)
        if difference(plain(one).outcome, right, FLOAT32):
            return None
    return known[COMPUTED]


def kinds_of_fault(exercise: Exercise, seen: Sequence[Seen]) -> dict:
    """Of each probe that fails: the sort of its fault, and in which words."""
    faults = ((one.probe, fault(exercise, one)) for one in seen)
    return {p: (one.sort, one.sentence) for p, one in faults if one}
