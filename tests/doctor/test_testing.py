"""For pytest: `assert_healthy`."""

import os
import subprocess
import sys

import pytest

from selfattn import MultiHeadAttention
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


def test_who_says_a_wrong_kind_is_told_what_it_looks_like():
    layer = MultiHeadAttention(12, 3)
    with pytest.raises(AssertionError) as failed:
        testing.assert_healthy(layer, kind="softmax")
    told = "You said softmax, but MultiHeadAttention looks like self-attention"
    assert told in str(failed.value)
    with pytest.raises(AssertionError) as failed:
        testing.assert_healthy(lambda q, k, v: v, kind="attention")
    assert "You said" not in str(failed.value)


ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # it needs no plugin
SUITE = """
from selfattn.doctor import assert_healthy


def attend(q, k, v):
    return (q @ k.mT / q.shape[-1]).softmax(-1) @ v


def test_mine():
    assert_healthy(attend, kind="attention")
"""


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_in_a_suite_the_report_is_the_failure(runner, tmp_path):
    """In pytest the line that asks is shown, and none of the doctor's own."""
    suite = SUITE
    if runner == "unittest":
        of_class = "class Mine(unittest.TestCase):\n    def test_mine(self):"
        suite = suite.replace("def test_mine():", of_class)
        suite = "import unittest\n" + suite.replace(
            "    assert_h", " " * 8 + "assert_h"
        )
    (tmp_path / "test_mine.py").write_text(suite, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", runner, "test_mine"]
        if runner == "unittest"
        else [sys.executable, "-m", runner, "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **ALONE, "PYTHONUTF8": "1"},
        timeout=300,
    )
    told = done.stdout + done.stderr
    assert done.returncode == 1
    assert "✗ attend (attention): divided by d\n" in told
    assert "Cure: Divide by math.sqrt(q.shape[-1]).\n" in told
    assert "assert_healthy(attend" in told
    if runner == "pytest":
        assert "testing.py" not in told
