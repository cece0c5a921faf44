"""What an answer is like, where no mistake tells all that it does.

Of two mistakes at once, one may be alone in what needs no mask, say, or in
full precision that is not double. What tells all of that is a likeness.
"""

import time
from collections.abc import Iterable, Iterator, Sequence

import torch

from selfattn.doctor.engine.by_itself import is_value
from selfattn.doctor.engine.matching import Seen, most_alike
from selfattn.doctor.engine.naming import does, explained, plain
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Finding

SECONDS = 2.0  # of one thread, for what is like a part of no kind
MASKS = {"mask", "rows", "texts", "causal", "flag", "both", "padding"}


def nearest(
    exercise: Exercise, seen: Sequence[Seen], findings: Sequence[Finding]
) -> tuple[Mistake | None, list[Probe]]:
    """The mistake that accounts for most, or for a part; on which probes."""
    best, told = most_alike(exercise, seen, findings, exercise.mistakes)
    if best is not None:
        return best, told
    failures = [finding.probe for finding in findings]
    for part in parts(seen, failures):
        best = explained(exercise, part, second=False)
        if best is not None:
            failed = [one for one in seen if one.probe in failures]
            return best, [
                one.probe for one in failed if tells(exercise, best, one)
            ]
    return most_alike(exercise, seen, findings, within(exercise.deviations))


def tells(exercise: Exercise, known: Mistake, one: Seen) -> bool:
    """Whether a mistake gives the value that came of a probe."""
    return is_value(one) and does(exercise, known, [plain(one)])


def within(known: Iterable[Mistake]) -> Iterator[Mistake]:
    """The first of some mistakes, as many as there is time for."""
    end = time.thread_time() + SECONDS
    for one in known:
        if time.thread_time() > end:
            return
        yield one


def parts(
    seen: Sequence[Seen], failures: Sequence[Probe]
) -> Iterator[list[Seen]]:
    """What is left without double precision, a need, or masks; masks alone."""
    yield [one for one in seen if one.probe.dtype != torch.float64]
    needs = {need: None for one in failures for need in one.needs}
    for need in needs:
        yield [one for one in seen if need not in one.probe.needs]
    if MASKS & needs.keys():
        yield [one for one in seen if not MASKS & {*one.probe.needs}]
    if all(MASKS & {*probe.needs} for probe in failures):
        # Who has a mask may go another way, and be wrong on that alone.
        yield [one for one in seen if MASKS & {*one.probe.needs}]
