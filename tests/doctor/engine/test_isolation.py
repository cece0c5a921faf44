"""Patients that are hostile: a clear report, and no traceback of ours."""

import ctypes
import math
import multiprocessing
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
import torch

from selfattn import attention
from selfattn.doctor import examine
from selfattn.doctor.engine import isolation, processes
from selfattn.doctor.engine.isolation import (
    Refusal,
    RefusedError,
    Stage,
    Trouble,
    can_fork,
    ending,
    in_a_child,
    listen,
)
from selfattn.doctor.report import Report

LIMIT = 30.0  # seconds; this machine may be busy


def hangs(q, k, v):
    while True:
        time.sleep(0.01)


def ends(q, k, v):
    os._exit(3)


def exits(q, k, v):
    sys.exit(4)


def crashes(q, k, v):
    ctypes.string_at(0)


def interrupts(q, k, v):
    raise KeyboardInterrupt


def eats(q, k, v):
    return torch.ones(10**12)


def wants_a_gpu(q, k, v):
    return attention(q.to("cuda:77"), k, v)


def not_a_number(q, k, v):
    return attention(q, k, v) * float("nan")


def modifies(q, k, v):
    q.zero_()
    return attention(q, k, v)


def wrong_shape(q, k, v):
    return q


class LoudError(Exception):
    def __str__(self):
        raise SystemExit(0)


def exits_when_it_is_told(q, k, v):
    raise LoudError


def stops_who_watches(q, k, v):
    os.kill(os.getppid(), signal.SIGSTOP)
    return attention(q, k, v)


def closes_all(q, k, v):
    os.closerange(0, 100)


class UnspeakableError(Exception):
    def __str__(self):
        raise ValueError("not even this")


def raises_the_unspeakable(q, k, v):
    raise UnspeakableError


HOSTILE = [
    (ends, "It ended the process with code 3 at the probe"),
    (exits, "It raises SystemExit: 4."),
    (crashes, "It crashed the process (SIGSEGV) at the probe"),
    (interrupts, "It raises KeyboardInterrupt at the probe"),
    (eats, "can't allocate memory"),
    (wants_a_gpu, "It raises "),
    (not_a_number, "It gives NaN in 1 of 1 numbers."),
    (modifies, "It changes q, which belongs to the caller."),
    (wrong_shape, "It returns the shape (1, 1), but (1, 2) is asked for."),
    (raises_the_unspeakable, "It raises UnspeakableError."),
    (exits_when_it_is_told, "It raises LoudError."),
    (closes_all, "It ended the process with code 0 at the probe"),
]


@pytest.mark.parametrize(
    ("patient", "sentence"), HOSTILE, ids=[p.__name__ for p, _ in HOSTILE]
)
def test_a_hostile_patient_gets_a_sentence(patient, sentence, capfd):
    report = examine(patient, kind="attention", layout="any", time_limit=LIMIT)
    text = " ".join(str(report).split())
    assert sentence in text
    assert text.startswith(f"✗ {patient.__name__} (attention): ")
    assert "Traceback" not in text
    assert report.exit_code == (2 if report.trouble else 1)
    assert "".join(capfd.readouterr()) == ""


def stopped(patient, has_come_far, **facts):
    """A patient is stopped in time; longer is given to it, up to a minute,
    if on a busy machine it has not come as far by then as it was to come.
    """
    for limit in (0.5, 2.0, 8.0, 60.0):
        start = time.monotonic()
        report = examine(patient, kind="attention", time_limit=limit, **facts)
        assert time.monotonic() - start < limit + 20
        told = f"did not come to an end within {limit:g} seconds"
        assert told in report.trouble
        if has_come_far(report):
            return
    pytest.fail(f"it was stopped elsewhere: {report}")


def test_a_patient_that_hangs_is_stopped():
    where = "stopped as it was called to see what it takes"
    stopped(hangs, lambda report: where in report.trouble)
    where = "at the probe “it is softmax(q kᵀ / √d) v”"
    stopped(hangs, lambda report: where in report.trouble, layout="any")


def test_what_a_patient_starts_ends_with_it(tmp_path):
    """Its own child would otherwise go on after its death."""
    path = tmp_path / "pid"

    def breeds(q, k, v):
        child = os.fork()
        if not child:
            time.sleep(600)
            os._exit(0)
        new = path.with_name(str(child))
        new.write_text(new.name, "utf-8")
        new.replace(path)  # at once: never an empty file
        while True:
            time.sleep(0.01)

    stopped(breeds, lambda report: path.exists())
    child = int(path.read_text("utf-8"))
    for _ in range(100):
        if is_dead(child):
            return  # or dead and not yet buried
        time.sleep(0.1)
    pytest.fail("the child of the patient is still alive")


def test_who_stops_its_guard_wins_no_time(monkeypatch):
    monkeypatch.setattr(isolation, "PATIENCE", 120.0)
    start = time.monotonic()
    facts = {"kind": "attention", "layout": "any", "time_limit": LIMIT}
    assert examine(stops_who_watches, **facts).passed
    assert time.monotonic() - start < 90


def test_it_may_be_examined_in_a_thread_and_by_a_daemon():
    """A daemon's children were refused, with a bare AssertionError."""
    with ThreadPoolExecutor(1) as pool:
        report = pool.submit(
            examine, attention, kind="attention", layout="any"
        ).result()
    assert report.passed, report
    fork = multiprocessing.get_context("fork")
    with fork.Pool(1) as pool:
        assert pool.apply(examines) == (True, True)


def examines():
    daemon = multiprocessing.current_process().daemon
    report = examine(attention, kind="attention", layout="any")
    return daemon, report.passed


def test_what_a_patient_starts_in_a_session_of_its_own_ends_with_it(tmp_path):
    """It had left its group, and lived on."""
    path = tmp_path / "pid"

    def daemonises(q, k, v):
        if not os.fork():
            os.setsid()
            if not os.fork():  # as a daemon does, so that it has no parent
                new = path.with_name(str(os.getpid()))
                new.write_text(new.name, "utf-8")
                new.replace(path)  # at once: never an empty file
                time.sleep(600)
            os._exit(0)
        while not path.exists():
            time.sleep(0.01)
        return attention(q, k, v)

    limit = {"kind": "attention", "layout": "any", "time_limit": LIMIT}
    assert examine(daemonises, **limit).passed
    assert is_dead(int(path.read_text("utf-8")))


def counted(path):
    """How often this was called, in whatever process."""
    with path.open("ab", buffering=0) as file:
        file.write(b".")
        return file.tell()


def alive_of(path):
    return [int(p) for p in path.read_text("utf-8").split() if not_dead(p)]


def not_dead(pid):
    return not is_dead(int(pid))


@pytest.mark.parametrize("own_groups", [False, True])
def test_who_doubles_at_each_call_ends_with_all_of_its_kind(
    own_groups, tmp_path, monkeypatch
):
    """They were ended one by one, slower than they came; 2,093 lived on."""
    monkeypatch.setattr(isolation, "MOST", 12)
    calls, pids = tmp_path / "calls", tmp_path / "pids"
    guards, seen = tmp_path / "guards", processes.descendants

    def written_down(pid):  # by the guard: some never say who they are
        found = seen(pid)
        with guards.open("a", encoding="utf-8") as file:
            file.write(" ".join(map(str, found)) + "\n")
        return found

    def doubles(q, k, v):
        for _ in range(6):
            if counted(calls) < 60 and not os.fork():
                if own_groups:
                    os.setpgid(0, 0)
                with pids.open("a", encoding="utf-8") as file:
                    file.write(f"{os.getpid()} ")
        time.sleep(600)

    monkeypatch.setattr(processes, "descendants", written_down)
    start = time.monotonic()
    report = examine(doubles, kind="attention", time_limit=300.0)
    assert report.trouble.startswith("It starts more than 12 processes as it ")
    assert report.exit_code == 2 and time.monotonic() - start < 60
    at_once = guards.read_text("utf-8").splitlines()
    assert max(len(line.split()) for line in at_once) > 12
    assert alive_of(guards) == alive_of(pids) == []


def test_a_fork_of_the_patient_does_not_answer_for_it():
    """The child of `if os.fork() == 0: sys.exit()` told of its own end."""

    def ends_in_a_fork(watch):
        if not os.fork():
            sys.exit(0)
        os.wait()
        return Report("x", 3)

    def answers_in_a_fork(watch):
        if not os.fork():
            watch("what the fork is at")
            return Report("x", 4)
        os.wait()
        return Report("x", 3)

    for work in (ends_in_a_fork, answers_in_a_fork):
        report = in_a_child(work, Report("x", 0), LIMIT, None)
        assert not report.trouble and report.probes == 3


def test_both_sides_of_a_fork_may_go_on(tmp_path):
    """Whichever was the first to come to an end was believed."""
    calls = tmp_path / "calls"

    def forks_once(q, k, v):
        if counted(calls) == 1 and not os.fork():
            return q
        return attention(q, k, v)

    facts = {"kind": "attention", "layout": "any", "time_limit": LIMIT}
    assert examine(forks_once, **facts).passed


def test_who_drops_our_modules_is_examined_all_the_same():
    """What was sent had another class of that name, and nothing came."""

    def drops(q, k, v):
        for name in [n for n in sys.modules if n.startswith("selfattn")]:
            del sys.modules[name]
        return attention(q, k, v)

    report = examine(drops, kind="attention", layout="any", time_limit=LIMIT)
    assert report.passed, report


def is_dead(pid):
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or ") Z " in status.read_text("utf-8")


def test_who_ends_beside_a_child_that_listens_is_not_waited_for():
    """The child of a patient held the pipe, and so time ran out."""

    def leaves_one_behind(q, k, v):
        if not os.fork():
            time.sleep(600)
        os._exit(5)

    start = time.monotonic()
    report = examine(leaves_one_behind, kind="attention", time_limit=60.0)
    assert "It ended the process with code 5" in report.trouble
    assert time.monotonic() - start < 30


def test_a_patient_may_have_workers():
    """Ours was a daemon, which may have no children: it was called ill."""

    def loads(q, k, v):
        loader = torch.utils.data.DataLoader([1, 2], num_workers=1)
        assert len(list(loader)) == 2
        return attention(q, k, v)

    report = examine(loads, kind="attention", layout="any", time_limit=120.0)
    assert report.passed, report


@pytest.mark.parametrize(
    "limits",
    [
        {"time_limit": math.inf},
        {"memory_limit": None},
        {"memory_limit": math.inf},
        {"time_limit": 1e20, "memory_limit": 1e30},
        {"time_limit": Fraction(61, 2), "memory_limit": 4 * 10**9},
        {"time_limit": 10**400, "memory_limit": 10**400},  # no float is so
    ],
)
def test_there_may_be_no_limit(limits):
    facts = {"kind": "attention", "layout": "any", **limits}
    assert examine(attention, **facts).passed


@pytest.mark.parametrize("limit", [0, -1.0, math.nan, "20", True, [1]])
@pytest.mark.parametrize("what", ["time_limit", "memory_limit"])
def test_a_limit_that_is_none_is_refused(what, limit):
    with pytest.raises(ValueError, match=f"{what} must be a number above 0"):
        examine(attention, kind="attention", **{what: limit})


def test_a_patient_neither_prints_nor_reads_nor_changes_anything(capfd):
    seen = []

    def noisy(q, k, v):
        print("here I am")
        os.write(1, b"and here")
        seen.append(sys.stdin.read() if sys.stdin else "")
        return attention(q, k, v)

    state = torch.get_rng_state()
    assert examine(noisy, kind="attention", time_limit=LIMIT).passed
    assert "".join(capfd.readouterr()) == ""
    assert seen == []  # it was another process that appended
    assert torch.equal(torch.get_rng_state(), state)


def test_a_class_of_a_notebook_can_be_examined():
    """Nobody could import it: it exists in this function alone."""

    class Mine(torch.nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.n_heads = n_heads
            self.qkv = torch.nn.Linear(d_model, 3 * d_model)
            self.proj = torch.nn.Linear(d_model, d_model)

        def forward(self, x):
            q, k, v = (
                y.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
                for y in self.qkv(x).chunk(3, dim=-1)
            )
            output = attention(q, k, v, causal=True)
            return self.proj(output.transpose(1, 2).flatten(-2))

    report = examine(Mine, kind="self-attention", time_limit=LIMIT)
    assert report.passed, report
    assert report.facts["causal"] is True
    assert can_fork() or torch.cuda.is_initialized()


def test_threads_of_before_the_fork_do_not_hang_it():
    """OpenMP in the child would wait for threads that no fork has."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        a = torch.randn(600, 600, requires_grad=True)
        (a @ a).exp().sum().backward()

        def large(q, k, v):
            b = torch.randn(600, 600, requires_grad=True)
            (b @ b).sum().backward()
            return attention(q, k, v)

        report = examine(large, kind="attention", time_limit=LIMIT)
    finally:
        torch.set_num_threads(threads)
    assert report.passed, report


# --- the child and its pipe, without a patient


class Told:
    """A pipe through which some things were said."""

    def __init__(self, *things):
        self.things = list(things)

    def poll(self, seconds):
        return bool(self.things)

    def recv(self):
        thing = self.things.pop(0)
        if isinstance(thing, Exception):
            raise thing
        return thing


def test_what_a_child_says_is_heard(monkeypatch):
    monkeypatch.setattr(processes, "ended", lambda guard, seconds: -11)
    nothing, report = Report("x", 0), Report("x", 3)

    def heard(*things):
        return listen(Told(*things), 4242, nothing, 1.5)

    assert heard("a", "b", report) is report
    assert heard("a", Trouble("It fell")).trouble == (
        "It fell at the probe “a”."
    )
    assert heard("a", "b", EOFError()).trouble == (
        "It crashed the process (SIGSEGV) at the probe “b”."
    )
    assert heard("a", Stage("on its way"), EOFError()).trouble.endswith(
        "(SIGSEGV) on its way."
    )
    with pytest.raises(RefusedError, match="not so"):
        heard("a", Refusal("not so"))
    late = heard("a").trouble
    assert "within 1.5 seconds" in late and "at the probe “a”" in late
    assert heard().trouble.count("probe") == 0
    assert ending(3).endswith("code 3") and ending(-9).endswith("(SIGKILL)")
    assert ending(-40).endswith("(signal 40)")  # which has no name
    monkeypatch.setattr(processes, "ended", lambda guard, seconds: None)
    assert heard(EOFError()).trouble == "It ended the process."


def test_who_listens_for_ever_hears_what_is_said(monkeypatch):
    """A limit of infinity was too long for the system to wait."""
    report = Report("x", 3)
    told = Told("a", report)
    waits = []
    monkeypatch.setattr(
        told, "poll", lambda seconds: waits.append(seconds) or True
    )
    assert listen(told, 4242, Report("x", 0), math.inf) is report
    assert waits == [None, None]


def test_a_child_that_never_began_takes_no_group_along(monkeypatch):
    """Group 0, which stood for a child without a number, is the caller's."""
    signalled = []

    def no_more():
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", no_more)
    monkeypatch.setattr(os, "kill", lambda *told: signalled.append(told))
    monkeypatch.setattr(os, "killpg", lambda *told: signalled.append(told))
    report = in_a_child(lambda watch: Report("x", 1), Report("x", 0), 9, None)
    assert report.trouble.startswith("No process can be made for it: Block")
    assert report.exit_code == 2 and signalled == []


def test_a_child_may_take_so_much_memory_and_no_more():
    def eats(watch):
        watch("four hundred megabytes")
        return Report("x", int(torch.ones(10**8).sum() > 0))

    few, enough = (
        in_a_child(eats, Report("x", 0), 60.0, limit) for limit in (1e8, 4e9)
    )
    assert few.trouble.startswith("It raises RuntimeError: ")
    assert few.trouble.endswith(" at the probe “four hundred megabytes”.")
    assert not enough.trouble and enough.probes == 1
