"""Examine in a child process, with limits on time and on memory.

Nothing that a patient does there can hurt: not an endless loop, not `exit`,
not a crash, not a tensor of a terabyte. Between us and the child stands a
guard, which does nothing but wait, and then ends all that the child started.
"""

import contextlib
import faulthandler
import math
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol, Self, TypeVar

import torch

from selfattn.doctor.engine import processes
from selfattn.doctor.engine.outcome import in_words
from selfattn.doctor.engine.processes import ending
from selfattn.doctor.report.progress import EVERY, Progress

MEMORY = Path("/proc/self/statm")  # where Linux tells how much is in use
LONG = 1e8  # seconds, three years
LAST_STREAM = 2  # standard error, after standard input and output
LATE = 1.0  # seconds after the last, in which a message may come to its end
PATIENCE = 10.0  # seconds for a guard to end what is left
MOST = 200  # processes that a patient may have at once
LOOKS_EVERY = 0.25  # seconds, in which few processes can become many


class Stage(NamedTuple):
    """What the child is at, when that is no probe: "while …", say; or ""."""

    words: str


# Is told, before each probe, what it claims; and a stage, where one begins.
Watch = Callable[[str | Stage], object]


class Answer(Protocol):
    """What comes out of a child: a report, or what else can be sent."""

    def portable(self) -> Self:
        """The same, without what cannot be sent."""

    def with_(self, **changes: Any) -> Self:
        """The same, with something changed, such as its ``trouble``."""


Found = TypeVar("Found", bound=Answer)
Work = Callable[[Watch], Found]


class Trouble(NamedTuple):
    """Why the child has no report."""

    words: str


class Refusal(NamedTuple):
    """What is wrong with the question, not with the patient."""

    words: str


class RefusedError(ValueError):
    """Nothing can be examined as it was asked for."""


def can_fork() -> bool:
    """Whether a child can do what this process could.

    A child is a fork, because a function or class of a notebook exists in
    this process alone and cannot be sent to another. But neither CUDA nor
    the gradients of PyTorch outlive a fork once CUDA is in use.
    """
    return hasattr(os, "fork") and not torch.cuda.is_initialized()


def in_a_child(
    work: Work[Found],
    nothing_found: Found,
    time_limit: float,
    memory_limit: float | None,
) -> Found:
    """Do some work in a child process, and return its report.

    Args:
        work: makes a report; it is given a `Watch`.
        nothing_found: the report to complete if the child does not.
        time_limit: seconds after which the child is ended; may be infinite.
        memory_limit: bytes that it may take beyond what is taken now; None
            for as many as there are.

    Raises:
        RefusedError: if the work says that it was asked for what cannot be.
    """
    ours, theirs = Pipe(duplex=False)
    us = os.getpid()
    with warnings.catch_warnings():
        # Python 3.12 and later warn of forks beside threads: the child must
        # not wait for a lock that another thread held. See `child`.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            guard = os.fork()
        except OSError as error:
            return nothing_found.with_(
                trouble=f"No process can be made for it: {in_words(error)}."
            )
    if not guard:
        stand_guard(us, theirs, work, memory_limit)
    try:
        theirs.close()
        with processes.in_time(guard, min(time_limit, LONG) + LATE):
            return listen(ours, guard, nothing_found, time_limit)
    finally:
        end_with_all(guard)
        ours.close()


def end_with_all(guard: int) -> None:
    """Have a guard end the child, and all that it started; then end it."""
    processes.ask_to_end(guard)
    if processes.ended(guard, PATIENCE) is None:
        processes.end_below(guard)  # who ends it first loses sight of them
        with contextlib.suppress(OSError):
            os.killpg(guard, signal.SIGKILL)
        processes.ended(guard, 1.0)


def listen(
    pipe: Connection, guard: int, nothing_found: Found, time_limit: float
) -> Found:
    """Wait for the child's report, and note how far it came."""
    # Some limits are longer than the system can wait.
    end = math.inf if time_limit > LONG else time.monotonic() + time_limit
    at = ""
    try:
        with Progress() as progress:
            while comes(pipe, end, at, progress):
                heard = hear(pipe)
                if isinstance(heard, type(nothing_found)):
                    return heard
                if isinstance(heard, Refusal):
                    raise RefusedError(heard.words)
                if isinstance(heard, Trouble):
                    words = f"{heard.words}{at}."
                    return nothing_found.with_(trouble=words)
                at = place(heard, at)
    except (EOFError, OSError):  # nobody is left to say more
        code = processes.ended(guard, left(end))
        in_time = time.monotonic() < end + LATE / 2
        if left(end) or (code is not None and in_time):
            return nothing_found.with_(trouble=f"{ending(code)}{at}.")
    return nothing_found.with_(
        trouble=f"It did not come to an end within {time_limit:g} seconds, "
        f"and was stopped{at}. If it is only slow, say a longer time_limit."
    )


def hear(pipe: Connection) -> object:
    """What the child says. Who writes where it speaks garbles that: a patient
    may, or whatever it put in the place of what Python has to send things.
    """
    try:
        return pipe.recv()
    except (EOFError, OSError):
        raise
    except Exception:
        return Trouble("It garbles what is told of it, so none can be read")


def place(heard: object, before: str) -> str:
    """Where the child is, in words, by what was heard of it."""
    if isinstance(heard, Stage):
        return f" {heard.words}".rstrip()
    return f" at the probe “{heard}”" if isinstance(heard, str) else before


def comes(pipe: Connection, end: float, at: str, progress: Progress) -> bool:
    """Wait for what comes next; whether it came before the end."""
    progress.tell(at)
    if not progress.on:
        return pipe.poll(None if math.isinf(end) else left(end))
    while not pipe.poll(min(EVERY, left(end))):
        if not left(end):
            return False
        progress.tell(at)
    return True


def left(end: float) -> float:
    """How many seconds are left until then."""
    return max(0.0, end - time.monotonic())


def stand_guard(
    us: int, pipe: Connection, work: Work[Any], memory_limit: float | None
) -> NoReturn:
    """Run in the guard: start the child, wait for it, leave nothing behind."""
    try:
        pipe = beyond_streams(pipe)
        faulthandler.disable()  # a crash shall not print where we stood
        os.setsid()
        be_silent()
        processes.leave_no_core()
        processes.control(processes.ADOPT_ORPHANS, 1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, end_all)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        processes.control(processes.DIE_WITH_PARENT, signal.SIGTERM)
        worker = os.fork() if os.getppid() == us else os._exit(0)
        if not worker:
            child(pipe, work, memory_limit)
        code = watched(worker)
        processes.end_group(worker)  # at once, whoever else is in it
        processes.end_descendants()
        if code is None:
            pipe.send(Trouble(f"It starts more than {MOST} processes"))
            os._exit(0)
        leave(code)
    finally:
        os._exit(70)  # which is not reached: never may two of us go on


def watched(worker: int) -> int | None:
    """Wait for the child; how it ended, or None if it becomes too many."""
    while (code := processes.ended(worker, LOOKS_EVERY)) is None:
        if len(processes.descendants(os.getpid())) > MOST:
            return None
    return code


def beyond_streams(pipe: Connection) -> Connection:
    """The same pipe under a number that is no stream's.

    Where the caller's streams are closed, a pipe gets the first free number,
    and whoever is silent closes it.
    """
    import fcntl  # which exists on Unix alone, as does a fork

    if pipe.fileno() > LAST_STREAM:
        return pipe
    least = LAST_STREAM + 1
    number = fcntl.fcntl(pipe.fileno(), fcntl.F_DUPFD_CLOEXEC, least)
    return Connection(number, readable=False)


def be_silent() -> None:
    """Neither ask nor print, also where Python's streams are a notebook's."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(quiet, stream)
    sys.stdin = os.fdopen(quiet)
    sys.stdout = sys.stderr = os.fdopen(os.dup(quiet), "w")


def end_all(*_: object) -> NoReturn:
    """End whatever this process has started, and this process.

    If some are left that are faster, it goes with all of its group.
    """
    if not processes.end_descendants():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def leave(code: int) -> NoReturn:
    """End as the child did, so that who waits for us can tell."""
    if code < 0 and -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    if code < 0:
        os.kill(os.getpid(), -code)
        time.sleep(1.0)
    os._exit(max(code, 0))


def child(
    pipe: Connection, work: Work[Any], memory_limit: float | None
) -> NoReturn:
    """Run in the child: make the report, send it, and end at once."""
    tell = in_our_name(pipe)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        processes.control(processes.DIE_WITH_PARENT, signal.SIGKILL)
        os.setpgid(0, 0)  # what it does to its group spares the guard
        multiprocessing.current_process().daemon = False  # it may have some
        # A fork has none of the threads that OpenMP started before, but
        # OpenMP would wait for them. With a single thread, there are none.
        torch.set_num_threads(1)
        limit_memory(memory_limit)
        tell(work(tell).portable())
    except RefusedError as error:
        tell(Refusal(str(error)))
    except BaseException as error:
        limit_memory_no_more()  # it takes a little to tell
        tell(Trouble(f"It raises {in_words(error)}"))
    finally:
        with contextlib.suppress(OSError):  # it may have closed it already
            pipe.close()
        os._exit(0)  # what the patient registered with atexit is not run


def in_our_name(pipe: Connection) -> Callable[[object], None]:
    """What sends things from this process alone, and from no fork of it.

    They are sent as what they were when the patient came: it may have put
    other modules in the place of ours.
    """
    us = os.getpid()
    ours = {n: m for n, m in sys.modules.items() if n.startswith("selfattn")}

    def tell(thing: object) -> None:
        if os.getpid() == us:
            sys.modules.update(ours)
            pipe.send(thing)

    return tell


def limit_memory(limit: float | None) -> None:
    """Let this process take so many bytes more, where that can be limited."""
    if limit is None or limit >= sys.maxsize or not MEMORY.exists():
        return
    import resource

    taken = int(MEMORY.read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    told = [x for x in (soft, hard) if x != resource.RLIM_INFINITY]
    most = min(int(taken + limit), sys.maxsize, *told)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def limit_memory_no_more() -> None:
    """Let this process take as much as the system lets it."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
