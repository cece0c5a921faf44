"""The smallest input on which an answer fails, and code to see it."""

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from selfattn.doctor.engine.comparison import difference
from selfattn.doctor.engine.outcome import observe
from selfattn.doctor.exercise import Exercise
from selfattn.doctor.patient import Patient, parameters
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Difference, Finding
from selfattn.doctor.report.snippets import snippet, snippet_of_calls

TRIALS, SECONDS = 300, 4.0  # of all inputs of a report together


def smallest_failure(
    answer: Any, exercise: Exercise, findings: Sequence[Finding]
) -> tuple[Finding, str]:
    """Shrink every failing input; return the smallest, and code to see it.

    Of inputs of one size, the one that takes the fewest lines to see.
    """
    best: tuple[tuple[int, float], Finding, str] | None = None
    patience = Patience()
    for finding in findings:
        sizes, found = shrink(answer, exercise, finding, patience)
        inputs = finding.probe.make(**sizes)
        count = sum(size_of(x) for x in inputs.values())
        if best is None or count <= best[0][0]:
            code = as_snippet(answer, exercise, finding.probe, sizes, found)
            rank = count, len(code.splitlines()) or math.inf
            if best is None or rank < best[0]:
                best = rank, finding._replace(difference=found), code
    if best is None:
        raise ValueError("there must be a failure to shrink, but none is")
    return best[1:]


def shorter(full: int) -> list[int]:
    """Lengths to try in place of a longer one, the shortest first.

    >>> shorter(4), shorter(131)[-4:]
    ([1, 2, 3], [16, 32, 64, 128])
    """
    if full <= 32:
        return list(range(1, full))
    return [*range(1, 10), *(2**i for i in range(4, 32) if 2**i < full)]


def size_of(x: object) -> int:
    """The bytes of an input; what is half as long is no easier to read."""
    if not isinstance(x, Tensor):
        return 0
    return x.numel() * max(4, x.element_size())


class Patience:
    """How much longer to try: so many trials, and so many seconds of work.

    One thread's seconds: what else a machine does shall not tell, nor how
    many threads wait for one another.
    """

    def __init__(self, trials: int = TRIALS, seconds: float = SECONDS):
        """Begin now."""
        self.trials, self.end = trials, time.thread_time() + seconds

    def lasts(self) -> bool:
        """Count one more trial, and say whether it may be made."""
        self.trials -= 1
        return self.trials >= 0 and time.thread_time() < self.end


def shrink(
    answer: Any, exercise: Exercise, finding: Finding, patience: Patience
) -> tuple[dict[str, int], Difference]:
    """Make axes shorter, one by one, as long as it fails in the same way."""
    probe, found, rule = finding
    if found.sort != "gradient":  # then gradients need not be looked at
        probe = dataclasses.replace(probe, gradient=False)
    right = exercise.solution if rule is None else rule.answer
    sizes = probe.axes()
    for axis, full in sizes.items():
        for size in () if axis in probe.fixed else shorter(full):
            if not patience.lasts():
                return sizes, found
            smaller = sizes | {axis: size}
            still = difference(
                observe(exercise, answer, probe, **smaller),
                observe(exercise, right, probe, **smaller),
                probe.tolerance,
            )
            if still is not None and still.sort == found.sort:
                sizes, found = smaller, still
                break
    return sizes, found


def as_snippet(
    answer: Any,
    exercise: Exercise,
    probe: Probe,
    sizes: dict[str, int],
    found: Difference,
) -> str:
    """Code to copy that shows a failure, in the answer's own terms."""
    if isinstance(answer, Patient):
        recorded, calls = answer.recorded()
        once = dataclasses.replace(probe, gradient=False)
        observe(exercise, recorded, once, **sizes)
        plain = parameters(answer.thing)
        return snippet_of_calls(calls, answer.code, found, plain)
    return snippet(
        probe.make(**sizes), exercise.by_name, name_of(answer), found
    )


def name_of(answer: Any) -> str:
    """What to call the answer in code."""
    try:
        name = getattr(answer, "__name__", None)
    except Exception:  # it answers nobody
        name = None
    usable = isinstance(name, str) and name.isidentifier()
    return str(name) if usable else "answer"
