"""Ranks that a notebook starts are processes, and none is waited for forever.

What they send is counted; what they compute is in test_devices.py.
"""

import contextlib
import multiprocessing
import os
import time

import pytest
import torch
import torch._dynamo  # LiveBytes needs it: here, and not in each rank
import torch.distributed as dist
from torch.distributed._functional_collectives import all_reduce
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from selfattn.cost import LiveBytes
from selfattn.devices import world
from selfattn.devices.ulysses import ulysses_attention
from selfattn.devices.world import Sent, SwapsApart, fate, on_ranks

# Seconds that a rank is waited for, where it never comes. They begin before
# ranks are connected, which on a busy machine may take more than half of one.
LATE = 3.0


def numbered(rank, ranks):
    """Who a rank is, by what it is told and by its process group."""
    told = torch.full((2,), float(rank)), ranks
    assert (dist.get_rank(), dist.get_world_size()) == (rank, ranks)
    return told, os.getpid(), torch.get_num_threads()


def test_each_rank_is_a_process_and_answers_in_its_place():
    found = on_ranks(numbered, 3)
    assert [x[0][0].tolist() for x in found] == [[0, 0], [1, 1], [2, 2]]
    assert {x[0][1] for x in found} == {3}
    assert len({os.getpid(), *(x[1] for x in found)}) == 4
    assert {x[2] for x in found} == {1}


def ends(rank, ranks):
    """The last rank ends where the others wait for it."""
    if rank == ranks - 1:
        os._exit(0)
    dist.barrier()


def raises(rank, ranks):
    """One rank has something to complain of."""
    if rank == 0:
        raise ValueError("no such token")
    dist.barrier()


def sleeps(rank, ranks):
    """One rank never comes."""
    if rank == 1:
        time.sleep(600.0)
    dist.barrier()


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (ends, r"rank 1: has ended without a word$"),
        (raises, r"rank 0: ValueError: no such token\n  rank 1: RuntimeErr"),
        (sleeps, r"rank 0: RuntimeError(.|\n)*rank 1: has not answered in"),
    ],
)
def test_a_rank_that_fails_is_an_error_in_time(work, told):
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=told):
        on_ranks(work, 2, timeout=LATE)
    assert time.monotonic() - begin < LATE + 30  # and not the 600


def test_no_rank_works_before_all_are_connected(monkeypatch, tmp_path):
    """A rank was done and gone while another still made its connections.

    That one then failed as it joined, in gloo's words and not in ours: of 60
    runs on a busy machine 12, and once the page on devices was red.
    """
    connected, connect = tmp_path / "connected", dist.init_process_group

    def slowly(*args, rank, **settings):
        connect(*args, rank=rank, **settings)
        if rank == 0:
            time.sleep(0.3)
            connected.touch()

    monkeypatch.setattr(dist, "init_process_group", slowly)
    assert on_ranks(lambda rank, ranks: connected.exists(), 3) == [True] * 3


def test_a_rank_starts_no_ranks():
    """Its forks would take its process group for theirs."""
    dist.init_process_group(
        "gloo", store=dist.HashStore(), rank=0, world_size=1
    )
    try:
        with pytest.raises(ValueError, match="no process group yet"):
            on_ranks(numbered, 2)
    finally:
        dist.destroy_process_group()


def exchanged(rank, ranks):
    """What leaves a rank of four, for a tensor of 80 bytes, by exchange."""
    x, parts = torch.ones(20), torch.ones(4, 20)
    calls = {
        "allreduce_": lambda: dist.all_reduce(x),
        "alltoall_base_": lambda: dist.all_to_all_single(x.clone(), x),
        "allgather_": lambda: dist.all_gather([*parts], x),
        "_allgather_base_": lambda: dist.all_gather_single(torch.ones(80), x),
        "_reduce_scatter_base_": lambda: dist.reduce_scatter_single(
            torch.ones(5), x
        ),
    }
    found = {}
    for name, call in calls.items():
        with Sent() as sent:
            call()
        found[name] = dict(sent.bytes)
    return found


def test_what_leaves_a_rank_is_counted():
    """Of a tensor that is cut in four one part stays; a sum goes twice."""
    assert on_ranks(exchanged, 4)[2] == {
        "allreduce_": {"allreduce_": 2 * 60},
        "alltoall_base_": {"alltoall_base_": 60},
        "allgather_": {"allgather_": 3 * 80},
        "_allgather_base_": {"_allgather_base_": 3 * 80},
        "_reduce_scatter_base_": {"_reduce_scatter_base_": 60},
    }


def exchanged_by_some(rank, ranks):
    """What leaves a rank of three, in a group of two; and of three in parts
    that are not alike.
    """
    two, x = dist.new_group([0, 1]), torch.ones(20)
    parts = [[12, 8, 0], [4, 4, 12], [5, 5, 10]]
    got = torch.empty(sum(one[rank] for one in parts))
    coming = [one[rank] for one in parts]
    found = []
    for call in (
        lambda: rank < 2 and dist.all_reduce(x, group=two),
        lambda: rank < 2 and all_reduce(x, "sum", two).sum(),
        lambda: dist.all_to_all_single(got, x, coming, parts[rank]),
        lambda: dist.reduce_scatter(torch.empty(2), [torch.ones(2)] * ranks),
        dist.barrier,
    ):
        with Sent() as sent:
            call()
        found.append(sum(sent.bytes.values()))
    return found


def test_what_leaves_is_counted_among_those_that_exchange():
    """A sum of two ranks was counted as one of all that there are, and of
    parts of unequal length the same share was said to stay.
    """
    assert on_ranks(exchanged_by_some, 3) == [
        [80, 80, 4 * (8 + 0), 16, 0],
        [80, 80, 4 * (4 + 12), 16, 0],
        [0, 0, 4 * (5 + 5), 16, 0],
    ]


@pytest.mark.parametrize(
    "call",
    [
        lambda x, ranks: dist.broadcast(x, 0),
        lambda x, ranks: dist.reduce(x, 0),
        lambda x, ranks: dist.all_to_all([x] * ranks, [x] * ranks),
    ],
)
def test_an_exchange_that_is_not_counted_is_refused(call):
    """Nothing left whoever made a broadcast, it was said."""

    def work(rank, ranks):
        with Sent():
            call(torch.ones(3), ranks)

    with pytest.raises(RuntimeError, match="ValueError: bytes are counted of"):
        on_ranks(work, 2, timeout=LATE)


class Unreadable:
    """What can be sent, and cannot be made where it arrives."""

    def __reduce__(self):
        return int, ("no number",)


class LateLettingGo(TorchDispatchMode):
    """gloo whose thread never gets round to letting go of what it swapped."""

    def __init__(self):
        super().__init__()
        self.held = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "alltoall" in func.__name__:
            self.held.append(args)
        return func(*args, **(kwargs or {}))


def held_with_and_without(rank, ranks):
    """The most bytes held, and the output, if gloo lets go soon or late."""
    q, k, v = torch.randn(3, 4, 64, 8)
    found = []
    for gloo in (contextlib.nullcontext(), LateLettingGo()):
        with torch.no_grad(), gloo, SwapsApart(), LiveBytes() as memory:
            output = ulysses_attention(q, k, v)
        found.append((memory.peak, output))
    with torch.no_grad():
        return found, ulysses_attention(q, k, v)


def test_bytes_do_not_hang_on_when_another_thread_lets_go():
    """The chapter printed 11.0 pieces in one run, and 10.0 in another: on a
    busy machine gloo's thread was late, and what it had was counted.
    """
    for found, alone in on_ranks(held_with_and_without, 2):
        (soon, output), (late, again) = found
        # q, k, v and o of some heads; o as it is sent, and as it comes.
        assert soon == late == 6 * 4 * 64 * 8 * 4
        assert_close([output, again], [alone, alone], rtol=0, atol=0)


def test_an_answer_that_cannot_be_read_is_told():
    """It came out as a bare ValueError, and the other ranks lived on."""

    def work(rank, ranks):
        if rank:
            time.sleep(600.0)
        return Unreadable()

    with pytest.raises(RuntimeError, match=r"rank 0: .* be read: ValueError"):
        on_ranks(lambda rank, ranks: Unreadable(), 1)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="rank 0: RuntimeError"):
        on_ranks(work, 2, timeout=LATE)
    assert time.monotonic() - begin < LATE + 30


def test_a_rank_that_ends_within_its_answer_is_told():
    """What was raised then was no end of file, and came out bare."""
    theirs, ours = multiprocessing.Pipe(duplex=False)
    os.write(ours.fileno(), (100).to_bytes(4, "big") + b"the beginning")
    ours.close()
    well, why = fate(theirs)
    assert not well and "OSError" in why


@pytest.mark.parametrize("at", ["start", "wait"])
def test_whoever_stops_it_leaves_no_rank_behind(at, monkeypatch):
    """Ranks were ended only if all had been heard: Python waited for them
    when it came to its own end.
    """
    started = []
    fork = multiprocessing.get_context("fork").Process
    start = fork.start

    def starts(process):
        if at == "start" and started:
            raise BlockingIOError("Resource temporarily unavailable")
        start(process)
        started.append(process)

    def is_stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fork, "start", starts)
    monkeypatch.setattr(world, "fates", is_stopped)
    with pytest.raises((BlockingIOError, KeyboardInterrupt)):
        on_ranks(sleeps, 2)
    assert started and not any(one.is_alive() for one in started)
