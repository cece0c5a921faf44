"""A line on a terminal, for what takes longer than two seconds."""

import io
import re

import pytest

from selfattn.doctor import self_test
from selfattn.doctor.engine import isolation
from selfattn.doctor.report import Report, progress
from selfattn.doctor.report.progress import CLEAR, Progress


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when it is told to."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return lambda seconds: now.__setitem__(0, now[0] + seconds)


def test_nothing_is_said_for_two_seconds_then_every_half(clock):
    stream = Terminal()
    with Progress(stream) as shown:
        said = []
        for _ in range(30):
            shown.tell(" at the probe “it is right”")
            said.append(stream.getvalue().count("…"))
            clock(0.1)
    assert said[19] == 0 and 1 <= said[21] <= 2
    assert said[-1] == 2
    assert "\r… 2 s at the probe “it is right”" in stream.getvalue()
    assert stream.getvalue().endswith(f"\r{CLEAR}")


def test_what_was_quick_leaves_no_trace(clock):
    stream = Terminal()
    with Progress(stream) as shown:
        clock(1.9)
        shown.tell("here")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), object()])
def test_where_there_is_no_terminal_nothing_is_said(stream, clock):
    with Progress(stream) as shown:
        clock(9.0)
        shown.tell("here")
    assert not shown.on and not shown.shown
    if isinstance(stream, io.StringIO):
        assert stream.getvalue() == ""


def test_a_closed_stream_is_no_terminal(tmp_path):
    with (tmp_path / "log").open("w") as stream:
        assert not Progress(stream).on
    assert not Progress(stream).on


def test_a_line_is_no_longer_than_the_terminal(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    with Progress(stream) as shown:
        clock(3.0)
        shown.tell("x" * 99)
        line = stream.getvalue()
    assert len(line.removeprefix("\r").removesuffix(CLEAR)) == 19


def test_a_slow_patient_says_where_it_is(monkeypatch):
    """In its own process, and heard of by the one that waits."""
    stream = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", stream)
    monkeypatch.setattr(progress, "AFTER", 0.2)
    monkeypatch.setattr(isolation, "EVERY", 0.05)

    def slow(watch):
        watch("first")
        progress.time.sleep(1.0)
        return Report("x", 1)

    report = isolation.in_a_child(slow, Report("x", 0), 20.0, None)
    assert report.probes == 1
    assert re.search(r"… \d s at the probe “first”", stream.getvalue())
    assert stream.getvalue().endswith(CLEAR)


def test_the_self_test_says_at_which_exercise_it_is(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", stream)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setattr(self_test, "names", lambda: ["doctor/first_loss"])
    assert list(self_test.survival()) == ["doctor/first_loss"]
    assert "at the exercise doctor/first_loss" in stream.getvalue()
