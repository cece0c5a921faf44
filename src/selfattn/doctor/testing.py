"""For pytest: a thing of yours is healthy, or the test says what it has."""

from typing import Any

from selfattn.doctor.engine.examination import examine


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
    report = examine(thing, kind=kind, **facts)
    if not report.passed:
        raise AssertionError(f"\n{report}")
