"""What a process has started, also in the background, and how it is ended.

A process that detaches itself, in a session of its own, leaves its group, but
not its ancestors: whoever adopts orphans finds it below. Linux alone can tell;
elsewhere nothing is found.
"""

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

PROCESSES = Path("/proc")
DIE_WITH_PARENT, ADOPT_ORPHANS = 1, 36  # of prctl(2)


def control(option: int, value: int) -> None:
    """Ask Linux for one of these; other systems have no such thing."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def parents() -> dict[int, int]:
    """Of every process that lives: its parent."""
    found = {}
    for path in PROCESSES.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            # pid (name) state ppid …, and a name may hold anything
            state, parent, *_ = path.read_text().rpartition(")")[2].split()
            if state not in "ZX":
                found[int(path.parent.name)] = int(parent)
    return found


def descendants(ancestor: int) -> set[int]:
    """All living processes that one started, or that these did."""
    found: set[int] = set()
    above = parents()
    before = -1
    while before < len(found):
        before = len(found)
        family = {ancestor, *found}
        found |= {one for one, parent in above.items() if parent in family}
    return found


def end_descendants(seconds: float = 5.0) -> None:
    """End all that this process has started, and what they start meanwhile.

    It has to adopt orphans, else those of the ones that end are lost.
    """
    end = time.monotonic() + seconds
    while (alive := descendants(os.getpid())) and time.monotonic() < end:
        for one in alive:
            with contextlib.suppress(OSError):
                os.kill(one, signal.SIGKILL)
        bury()
        time.sleep(0.002)
    bury()


def bury() -> None:
    """Take notice of every child that has ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def ended(child: int, seconds: float) -> int | None:
    """Wait for a child; how it ended, as its code or less its signal.

    None, if it has not ended by then, or nobody can tell.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            done, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:  # the caller does not want to know
            return None
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            return None
        time.sleep(0.005)
