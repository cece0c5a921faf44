"""Patients that are hostile: a clear report, and no traceback of ours."""

import ctypes
import dataclasses
import os
import pickle
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from selfattn import attention
from selfattn.doctor import examine
from selfattn.doctor.engine.isolation import (
    Trouble,
    can_fork,
    end_with_all,
    ending,
    in_a_child,
    listen,
    portable,
)
from selfattn.doctor.exercise import Mistake
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Difference, Finding, Report

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
]


@pytest.mark.parametrize(
    ("patient", "sentence"), HOSTILE, ids=[p.__name__ for p, _ in HOSTILE]
)
def test_a_hostile_patient_gets_a_sentence(patient, sentence, capfd):
    report = examine(patient, kind="attention", layout="any", time_limit=LIMIT)
    text = " ".join(str(report).split())
    assert sentence in text
    assert text.startswith(f"✗ {patient.__name__} (attention): ")
    assert "Traceback" not in text and report.exit_code == 1
    assert "".join(capfd.readouterr()) == ""


def test_a_patient_that_hangs_is_stopped():
    start = time.monotonic()
    report = examine(hangs, kind="attention", time_limit=0.5)
    assert "did not come to an end within 0.5 seconds" in report.trouble
    assert "at the probe “it is softmax(q kᵀ / √d) v”" in report.trouble
    assert time.monotonic() - start < 20


def test_what_a_patient_starts_ends_with_it(tmp_path):
    """Its own child would otherwise go on after its death."""
    path = tmp_path / "pid"

    def breeds(q, k, v):
        child = os.fork()
        if not child:
            time.sleep(600)
            os._exit(0)
        path.write_text(str(child), "utf-8")
        while True:
            time.sleep(0.01)

    examine(breeds, kind="attention", time_limit=2.0)
    child = int(path.read_text("utf-8"))
    for _ in range(100):
        status = Path(f"/proc/{child}/stat")
        if not status.exists() or " Z " in status.read_text("utf-8"):
            return  # it is dead, or dead and not yet buried
        time.sleep(0.1)
    pytest.fail("the child of the patient is still alive")


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


KNOWN = Mistake("no luck", None, "It is bad.", "Chance.", "Wait.")


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


def test_what_a_child_says_is_heard():
    process = SimpleNamespace(exitcode=-11, join=lambda seconds: None)
    nothing, report = Report("x", 0), Report("x", 3)

    def heard(*things):
        return listen(Told(*things), process, nothing, 1.5)

    assert heard("a", "b", report) is report
    assert heard("a", Trouble("It fell")).trouble == (
        "It fell at the probe “a”."
    )
    assert heard("a", "b", EOFError()).trouble == (
        "It crashed the process (SIGSEGV) at the probe “b”."
    )
    late = heard("a").trouble
    assert "within 1.5 seconds" in late and "at the probe “a”" in late
    assert heard().trouble.count("probe") == 0
    assert ending(3).endswith("code 3") and ending(-9).endswith("(SIGKILL)")


def test_a_child_that_never_began_takes_no_group_along(monkeypatch):
    """Group 0, which stood for a child without a number, is the caller's."""
    signalled = []
    monkeypatch.setattr(os, "killpg", lambda *told: signalled.append(told[0]))
    for pid in (None, 4242):
        process = SimpleNamespace(pid=pid, kill=int, join=int)
        end_with_all(process)
    assert signalled == [4242]


def test_a_child_may_take_so_much_memory_and_no_more():
    def eats(watch):
        watch("four hundred megabytes")
        return Report("x", int(torch.ones(10**8).sum() > 0))

    few, enough = (
        in_a_child(eats, Report("x", 0), 60.0, limit) for limit in (1e8, 4e9)
    )
    assert few.trouble.startswith("It raises RuntimeError at the probe “four")
    assert not enough.trouble and enough.probes == 1


def test_a_report_that_is_sent_has_no_functions():
    known = dataclasses.replace(KNOWN, answer=lambda x: x)
    probe = Probe("a", {"x": lambda s: 1}, change=print, experiment=print)
    finding = Finding(
        probe, Difference("value", "b", torch.ones(1), torch.ones(1)), known
    )
    sent = portable(
        Report("x", 1, (finding,), mistake=known, likeness=known).with_(
            remarks=(known,)
        )
    )
    back = pickle.loads(pickle.dumps(sent))
    assert back.findings[0].probe.claim == "a" and str(back)
    assert back.mistake.name == back.remarks[0].name == "no luck"
    assert back.findings[0].rule.answer is None
    assert portable(Report("x", 1)).mistake is None
