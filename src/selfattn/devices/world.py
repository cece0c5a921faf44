"""Several ranks on this machine, each a process."""

import multiprocessing
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Annotated, Any, NoReturn

import torch
import torch.distributed as dist

from selfattn.devices.exchanges import Sent as Sent
from selfattn.devices.exchanges import SwapsApart as SwapsApart
from selfattn.signatures import Within, checked

Ranks = Annotated[int, Within(1, 64)]
Seconds = Annotated[float, Within(0.1, 600.0)]
START = timedelta(seconds=60)  # until every process has begun
GRACE = 5.0  # seconds beyond the timeout, for others to say what happened


@checked
def on_ranks(
    work: Callable, n_ranks: Ranks, *, timeout: Seconds = 60.0
) -> list:
    """Do the same work on several ranks, each a process, joined by gloo.

    A rank is a fork of this process, so that it has all that is defined
    here; a system that cannot fork, such as Windows, has `torchrun`. It
    calculates on one thread. What it prints is not shown.

    Args:
        work: is called as ``work(rank, n_ranks)`` on each of them.
        n_ranks: how many processes there are.
        timeout: seconds that a rank waits for another; that all have begun,
            for a minute at most.

    Returns:
        What ``work`` returned on each rank, the first rank's first.

    Raises:
        ValueError: if this process is a rank itself.
        RuntimeError: if a rank raises an error or ends; it says what became
            of each, and waits for the others not much longer than the
            timeout.

    >>> on_ranks(lambda rank, n_ranks: 10 * rank + n_ranks, 2)
    [2, 12]
    """
    if dist.is_initialized():
        raise ValueError(
            "ranks are started where there is no process group yet, but this "
            "process is in one"
        )
    context = multiprocessing.get_context("fork")
    processes, reports = [], []
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        try:
            for rank in range(n_ranks):
                theirs, ours = context.Pipe(duplex=False)
                given = (work, rank, n_ranks, timeout, store, ours)
                process = context.Process(target=be_a_rank, args=given)
                process.start()
                processes.append(process)
                reports.append(theirs)
                ours.close()  # so that the other end hears when it is gone
            told = fates(reports, timeout + GRACE)
        finally:  # also if somebody stops us, or there can be no more
            for process in processes:
                process.kill()
                process.join()
    return results(told)


def results(told: list[tuple[bool, Any]]) -> list:
    """What each rank returned; an error that tells all, if one did not."""
    if all(well for well, _ in told):
        return [result for _, result in told]
    became = "\n".join(
        f"  rank {rank}: {'came to its end' if well else why}"
        for rank, (well, why) in enumerate(told)
    )
    raise RuntimeError(f"not every rank came to its end:\n{became}")


def be_a_rank(
    work: Callable,
    rank: int,
    n_ranks: int,
    timeout: float,
    store: Path,
    report: Connection,
) -> NoReturn:
    """What one process does: it joins the others, works, and reports."""
    torch.set_num_threads(1)
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)
    sys.stdout = sys.stderr = os.fdopen(silence, "w")
    try:
        join(rank, n_ranks, timedelta(seconds=timeout), store)
        # Not as multiprocessing sends tensors: that needs the sender to live.
        told = pickle.dumps((True, work(rank, n_ranks)))
        if dist.is_initialized():  # work may have left the group by itself
            dist.barrier()  # nobody leaves while another still needs it
    except Exception as error:
        told = pickle.dumps((False, words_of(error)))
    report.send_bytes(told)
    os._exit(0)


def words_of(error: Exception) -> str:
    """What an error says, if it can say it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def join(rank: int, n_ranks: int, timeout: timedelta, path: Path) -> None:
    """Connect this rank with the others; go on when all are connected.

    A rank that has its own connections may work and end while another still
    makes its own, and that one would fail as it joins. So each writes into
    the store how far it is, and waits until all are: a file outlives the
    rank that wrote it, which a message between ranks need not.
    """
    store = dist.FileStore(str(path), n_ranks)
    ranks = range(n_ranks)
    store.set(f"{rank} has begun", "")  # on a busy machine that takes a while
    store.wait([f"{other} has begun" for other in ranks], START)
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=n_ranks, timeout=timeout
    )
    store.set(f"{rank} is connected", "")
    store.wait([f"{other} is connected" for other in ranks], START)


def fates(
    reports: list[Connection], patience: float
) -> list[tuple[bool, Any]]:
    """Whether each rank came to its end, and with what, or else why not.

    Once one has failed, so many seconds are left to the others.
    """
    told: dict[Connection, tuple[bool, Any]] = {}
    until = None
    while len(told) < len(reports):
        left = until and max(0.0, until - time.monotonic())
        ready = wait(
            [report for report in reports if report not in told], left
        )
        if not ready:
            break
        told |= {report: fate(report) for report in reports if report in ready}
        if until is None and not all(well for well, _ in told.values()):
            until = time.monotonic() + patience
    late = False, "has not answered in time"
    return [told.get(report, late) for report in reports]


def fate(report: Connection) -> tuple[bool, Any]:
    """What a rank says, or that it has ended."""
    try:
        return pickle.loads(report.recv_bytes())
    except EOFError:
        return False, "has ended without a word"
    except Exception as error:
        # It ended within its answer; or that holds what cannot be made here.
        words = f"{type(error).__name__}: {error}"
        return False, f"has not answered so that it can be read: {words}"
