"""Processes: whose descendants are whose, and how they are ended."""

import os
import signal
import time

import pytest

from selfattn.doctor.engine import processes
from selfattn.doctor.engine.processes import descendants, ended


@pytest.fixture
def a_table(monkeypatch, tmp_path):
    """A table of processes: number → state, parent."""

    def put(**table):
        for name, (state, parent) in table.items():
            folder = tmp_path / name.strip("_")
            folder.mkdir()
            words = f"1 (a ) name) {state} {parent} 0 0"
            (folder / "stat").write_text(words, "utf-8")
        (tmp_path / "meminfo").mkdir()
        monkeypatch.setattr(processes, "PROCESSES", tmp_path)

    return put


def test_descendants_are_found_however_far_they_are(a_table):
    a_table(
        _9=("S", 2),
        _2=("S", 1),
        _3=("R", 9),
        _4=("S", 7),
        _7=("Z", 2),  # is dead, and will not be killed
        _8=("T", 3),
        _6=("S", 5),
    )
    assert set(descendants(2)) == {9, 3, 8}
    assert set(descendants(1)) == {2, 9, 3, 8}
    assert set(descendants(4)) == set()


def forked(work):
    """A child that does some work, and ends."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(66)
    return child


def test_how_a_child_ended_is_told_and_waited_for():
    codes = [
        ended(forked(work), 60.0)
        for work in (
            lambda: os._exit(3),
            lambda: os.kill(os.getpid(), signal.SIGKILL),
        )
    ]
    assert codes == [3, -9]
    child = forked(lambda: time.sleep(60))
    assert ended(child, 0.05) is None
    os.kill(child, signal.SIGKILL)
    assert ended(child, 60.0) == -9
    assert ended(child, 60.0) is None  # nobody can tell any more


def test_a_process_ends_all_that_it_started_and_adopted():
    """Also what has a session of its own, and no parent left."""
    reader, writer = os.pipe()

    def breeds():
        processes.control(processes.ADOPT_ORPHANS, 1)
        between = os.fork()
        if not between:
            os.setsid()
            if not os.fork():
                os.write(writer, b"!")
                time.sleep(60)
            os._exit(0)
        os.waitpid(between, 0)
        assert os.read(reader, 1) == b"!"
        processes.end_descendants()
        os._exit(len(descendants(os.getpid())))

    child = forked(breeds)
    assert ended(child, 60.0) == 0
    os.close(writer)  # of which the orphan held a copy
    assert os.read(reader, 1) == b""
    os.close(reader)
