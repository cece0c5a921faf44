"""Who forgot a ``return`` is told so; who has written nothing yet is not."""

import pytest

from selfattn.doctor import examine

FORGOTTEN = "is a `return` missing?"


def attention(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores.softmax(dim=-1) @ v


def to_come(q, k, v): ...


@pytest.mark.parametrize(
    ("thing", "forgotten"), [(attention, True), (to_come, False)]
)
def test_who_forgot_a_return_is_told_so(thing, forgotten):
    """Both were not answered yet, and no word more."""
    report = examine(thing, kind="attention")
    assert report.exit_code == 2 and not report.findings
    assert report.unanswered.startswith("Not answered yet")
    assert (FORGOTTEN in report.unanswered) == forgotten
