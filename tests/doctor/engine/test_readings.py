"""Readings: what was said, what was found, and what less may be asked."""

import torch

from selfattn.doctor.engine import readings
from selfattn.doctor.engine.examination import examine
from selfattn.doctor.engine.readings import title
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.probes import Probe

ROWS = {"x": "n d"}


def doubled(x):
    return 2 * x


def test_a_thing_has_a_title():
    from functools import partial

    assert title(doubled) == title(partial(doubled)) == "doubled"
    assert title(torch.nn.Linear(1, 1)) == "Linear"


def test_what_was_said_is_not_told_as_found():
    kind = find_kind("softmax")
    assert kind.facts.keys() <= {"axis", "takes", *kind.facts}
    report = examine(
        lambda q, k, v: torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v,
        kind="attention",
        time_limit=None,
        layout="any",
    )
    assert report.passed and "layout" not in report.facts
    assert report.patient == "<lambda>" and report.exercise == "attention"


def test_a_fallback_is_tried_where_nothing_is_likely(an_exercise):
    tried = []

    def fallback(thing, told, seen):
        tried.append(told)
        return seen.with_facts(less=True)

    def exercise(thing, facts):
        short = Probe("b", ROWS, {"n": 3})
        more = () if facts.get("less") else (short,)
        return an_exercise(Probe("a", ROWS), *more)

    kind = Kind("x", "y", exercise, fallback=fallback)

    def seen(thing, **said):
        return readings.examine_here(thing, kind, said)

    assert seen(doubled).passed and not tried
    assert seen(lambda x: 3 * x).mistake.name == "three times" and not tried
    report = seen(lambda x: 5 * x, more=1)
    assert tried == [{"more": 1}] and len(report.findings) == 2
    half = seen(lambda x: 5 * x if len(x) == 3 else 2 * x)
    assert half.passed and half.probes == 1  # with less asked of it
