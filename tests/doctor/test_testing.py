"""For pytest: `assert_healthy`."""

import pytest

from selfattn.doctor import testing
from selfattn.doctor.report import Report


def test_an_assertion_passes_what_is_healthy_and_tells_the_rest(monkeypatch):
    given = {}

    def examined(thing, **options):
        given.update(options)
        return Report("x", 9, trouble="" if thing else "It fell.")

    monkeypatch.setattr(testing, "examine", examined)
    testing.assert_healthy(True, "x", causal=True)
    assert given == {"kind": "x", "causal": True}
    with pytest.raises(AssertionError, match=r"✗ x: no diagnosis\n  It fell"):
        testing.assert_healthy(False, "x")
