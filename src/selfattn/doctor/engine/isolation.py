"""Examine in a child process, with limits on time and on memory.

Nothing that a patient does there can hurt: not an endless loop, not `exit`,
not a crash, not a tensor of a terabyte.
"""

import contextlib
import dataclasses
import faulthandler
import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import torch

from selfattn.doctor.report import Finding, Report

Watch = Callable[[str], object]
Work = Callable[[Watch], Report]
MEMORY = Path("/proc/self/statm")  # where Linux tells how much is in use


class Trouble(NamedTuple):
    """Why the child has no report."""

    words: str


def can_fork() -> bool:
    """Whether a child can do what this process could.

    A child is a fork, because a function or class of a notebook exists in
    this process alone and cannot be sent to another. But neither CUDA nor
    the gradients of PyTorch outlive a fork once CUDA is in use.
    """
    return hasattr(os, "fork") and not torch.cuda.is_initialized()


def in_a_child(
    work: Work, nothing_found: Report, time_limit: float, memory_limit: float
) -> Report:
    """Do some work in a child process, and return its report.

    Args:
        work: makes a report; it is given a function to tell each probe.
        nothing_found: the report to complete if the child does not.
        time_limit: seconds after which the child is killed.
        memory_limit: bytes that it may take beyond what is taken now.
    """
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    process = fork.Process(
        target=child, args=(theirs, work, memory_limit), daemon=True
    )
    with warnings.catch_warnings():
        # Python 3.12 and later warn of forks beside threads: the child must
        # not wait for a lock that another thread held. See `child`.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()
    try:
        return listen(ours, process, nothing_found, time_limit)
    finally:
        end_with_all(process)
        ours.close()


def end_with_all(process: Any) -> None:
    """End a child and all that it started; see `child`."""
    if process.pid is not None:  # else its group would be our own
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def listen(
    pipe: Connection, process: Any, nothing_found: Report, time_limit: float
) -> Report:
    """Wait for the child's report, and note how far it came."""
    end = time.monotonic() + time_limit
    at = ""
    try:
        while pipe.poll(max(0.0, end - time.monotonic())):
            told = pipe.recv()
            if isinstance(told, Report):
                return told
            if isinstance(told, Trouble):
                return nothing_found.with_(trouble=f"{told.words}{at}.")
            at = f" at the probe “{told}”"
    except (EOFError, OSError):
        process.join(1.0)
        return nothing_found.with_(trouble=f"{ending(process.exitcode)}{at}.")
    return nothing_found.with_(
        trouble=f"It did not come to an end within {time_limit:g} seconds, "
        f"and was stopped{at}. If it is only slow, say a longer time_limit."
    )


def ending(code: int | None) -> str:
    """How a process ended, in words.

    >>> ending(3), ending(-11)
    ('It ended the process with code 3', 'It crashed the process (SIGSEGV)')
    """
    if code is None or code >= 0:
        return f"It ended the process with code {code}"
    return f"It crashed the process ({signal.Signals(-code).name})"


def child(pipe: Connection, work: Work, memory_limit: float) -> None:
    """Run in the child: make the report, send it, and end at once."""
    faulthandler.disable()  # a crash shall not print where we stood
    os.setsid()  # so that it can be killed with all that it starts
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # it neither asks nor prints
        os.dup2(quiet, stream)
    # A fork has none of the threads that OpenMP started before, but OpenMP
    # would wait for them. With a single thread there are none to wait for.
    torch.set_num_threads(1)
    limit_memory(memory_limit)
    try:
        pipe.send(portable(work(pipe.send)))
    except BaseException as error:
        pipe.send(Trouble(f"It raises {type(error).__name__}"))
    finally:
        pipe.close()
        os._exit(0)  # what the patient registered with atexit is not run


def limit_memory(limit: float) -> None:
    """Let this process take so many bytes more, where that can be limited."""
    if not MEMORY.exists():
        return
    import resource  # which exists on Unix alone

    taken = int(MEMORY.read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (int(taken + limit), hard))


def portable(report: Report) -> Report:
    """A report that can be sent: words and numbers, but no functions."""

    def bare(mistake: Any) -> Any:
        return mistake and dataclasses.replace(mistake, answer=None)

    return report.with_(
        mistake=bare(report.mistake),
        likeness=bare(report.likeness),
        remarks=tuple(bare(mistake) for mistake in report.remarks),
        findings=tuple(
            Finding(
                dataclasses.replace(
                    found.probe, inputs={}, change=None, experiment=None
                ),
                found.difference._replace(yours=None, expected=None),
                bare(found.rule),
            )
            for found in report.findings
        ),
    )
