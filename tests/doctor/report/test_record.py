"""The record: what was found, and what of it can be sent."""

import dataclasses
import pickle

import torch

from selfattn.doctor.exercise import Mistake
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Difference, Finding, Report

KNOWN = Mistake("no luck", None, "It is bad.", "Chance.", "Wait.")


def test_a_report_that_is_sent_has_no_functions():
    known = dataclasses.replace(KNOWN, answer=lambda x: x)
    probe = Probe("a", {"x": lambda s: 1}, change=print, experiment=print)
    finding = Finding(
        probe, Difference("value", "b", torch.ones(1), torch.ones(1)), known
    )
    whole = Report("x", 1, (finding,), mistake=known, likeness=known)
    sent = whole.with_(remarks=(known,)).portable()
    back = pickle.loads(pickle.dumps(sent))
    assert back.findings[0].probe.claim == "a" and str(back)
    assert back.mistake.name == back.remarks[0].name == "no luck"
    assert back.findings[0].rule.answer is None
    assert Report("x", 1).portable().mistake is None
