"""What a process has started, also in the background, and how it is ended.

A process that detaches itself, in a session of its own, leaves its group, but
not its ancestors: whoever adopts orphans finds it below. Linux alone can tell;
elsewhere nothing is found.
"""

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PROCESSES = Path("/proc")
DIE_WITH_PARENT, ADOPT_ORPHANS = 1, 36  # of prctl(2)


def control(option: int, value: int) -> None:
    """Ask Linux for one of these; other systems have no such thing."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class Place(NamedTuple):
    """Where a process stands among the others."""

    parent: int
    group: int


def places() -> dict[int, Place]:
    """Of every process that lives: its parent and its group."""
    found = {}
    for path in PROCESSES.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            # pid (name) state ppid pgrp …, and a name may hold anything
            state, *told = path.read_text().rpartition(")")[2].split()
            if state not in "ZX":
                found[int(path.parent.name)] = Place(*map(int, told[:2]))
    return found


def descendants(ancestor: int) -> dict[int, Place]:
    """All living processes that one started, or that these did."""
    everybody = places()
    children = defaultdict(list)
    for one, place in everybody.items():
        children[place.parent].append(one)
    found: dict[int, Place] = {}
    open_ = [ancestor]
    while open_:
        new = [one for one in children[open_.pop()] if one not in found]
        found |= {one: everybody[one] for one in new}
        open_ += new
    return found


def end_descendants(seconds: float = 5.0) -> bool:
    """End all that this process has started, and what they start meanwhile.

    It has to adopt orphans, else those of the ones that end are lost.
    Returns whether none is left.
    """
    return end_below(os.getpid(), seconds)


def end_below(ancestor: int, seconds: float = 5.0) -> bool:
    """End all that one process has started; whether none is left.

    Group by group: one by one, they would be started faster than they end.
    The groups of that process and of this one are spared.
    """
    end = time.monotonic() + seconds
    while (alive := descendants(ancestor)) and time.monotonic() < end:
        spared = {os.getpgrp(), ancestor}
        for group in {place.group for place in alive.values()} - spared:
            end_group(group)
        for one in alive:
            with contextlib.suppress(OSError):
                os.kill(one, signal.SIGKILL)
        bury_all(alive)
        time.sleep(0.002)
    return not alive


def end_group(group: int) -> None:
    """End all processes of a group at once, if there is such a group."""
    with contextlib.suppress(OSError):
        if group > 1:  # the others stand for the caller's, and for all
            os.killpg(group, signal.SIGKILL)


def bury_all(dead: Iterable[int]) -> None:
    """Take notice of those that have ended, and are children of ours."""
    for one in dead:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(one, os.WNOHANG)


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


def ask_to_end(process: int) -> None:
    """Ask a process to end, though it be stopped, if it is there still."""
    with contextlib.suppress(OSError):
        os.kill(process, signal.SIGTERM)
        os.kill(process, signal.SIGCONT)


@contextlib.contextmanager
def in_time(process: int, seconds: float) -> Iterator[None]:
    """Ask a process to end, if what is done in here takes longer."""
    timer = threading.Timer(seconds, ask_to_end, (process,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def leave_no_core() -> None:
    """Have no crash write down the memory of its process."""
    import resource  # which exists on Unix alone, as does a fork

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def ending(code: int | None) -> str:
    """How a process ended, in words; None if the system does not tell.

    >>> ending(3), ending(-11)
    ('It ended the process with code 3', 'It crashed the process (SIGSEGV)')
    """
    if code is None:
        return "It ended the process"
    if code >= 0:
        return f"It ended the process with code {code}"
    known = {one.value: one.name for one in signal.Signals}
    return f"It crashed the process ({known.get(-code, f'signal {-code}')})"
