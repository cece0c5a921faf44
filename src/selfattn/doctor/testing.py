"""For pytest: a thing of yours is healthy, or the test says what it has."""

from typing import Any

from selfattn.doctor.door.surveying import survey
from selfattn.doctor.engine.examination import examine
from selfattn.doctor.engine.readings import title
from selfattn.doctor.report import Report


def assert_healthy(thing: Any, kind: str, **facts: Any) -> None:
    """Raise unless a thing is found healthy.

    Args:
        thing: what is examined.
        kind: what it should be, as for `examine`.
        facts: what is known of it, and the limits, as for `examine`.

    Raises:
        AssertionError: with the report, if it is ill or cannot be examined.

    >>> from selfattn import fused_attention
    >>> assert_healthy(fused_attention, kind="attention")
    """
    __tracebackhide__ = True  # pytest shows the line that calls this one
    report = examine(thing, kind=kind, **facts)
    if not report.passed:
        raise AssertionError(f"\n{report}{doubt(thing, kind, report)}")


def doubt(thing: Any, kind: str, report: Report) -> str:
    """A line that says what it looks like, if nothing fits and it is else."""
    if report.likely:
        return ""
    found = survey(lambda watch: thing, title(thing), 20.0, 4e9).guesses
    if not found or found[0].kind in ("", kind) or kind in found[0].others:
        return ""
    return f"\n  You said {kind}, but {found[0]}"
