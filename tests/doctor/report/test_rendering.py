"""The report: each verdict with its sign, in words, as a page and as data."""

import dataclasses

import pytest

from selfattn.doctor.exercise import Mistake
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Difference, Finding, Report
from selfattn.doctor.report.rendering import (
    as_html,
    as_json,
    as_text,
    mark,
)

WRONG = Finding(Probe("it is so", {}), Difference("value", "It is not."))
KNOWN = Mistake("no luck", None, "It is bad.", "Chance.", "Wait.")


@pytest.mark.parametrize(
    ("report", "passed", "code", "sign"),
    [
        (Report("x", 2), True, 0, "✓"),
        (Report("x", 2, (WRONG,)), False, 1, "✗"),
        (Report("x", 2, trouble="It fell."), False, 2, "✗"),
        (Report("x", 2, question="Which?"), False, 2, "○"),
        (Report("x", 2, unanswered="Not yet"), False, 2, "○"),
    ],
)
def test_each_verdict_has_its_code_and_its_sign(report, passed, code, sign):
    assert report.passed is passed and report.exit_code == code
    assert mark(report) == sign and str(report).startswith(f"{sign} x: ")


def test_what_is_likely_is_a_diagnosis():
    ill = Report("x", 2, (WRONG,))
    assert Report("x", 2).likely and not ill.likely
    assert ill.with_(mistake=KNOWN).likely and ill.with_(likeness=KNOWN).likely


def test_a_report_in_words():
    ill = Report("x", 7, (WRONG, WRONG), patient="mine")
    text = as_text(ill)
    assert text.startswith("✗ mine (x): wrong on 2 of 7 probes\n")
    assert "This does not hold: it is so.\n" in text and "It is not." in text
    like = as_text(ill.with_(likeness=KNOWN, alike_on=1))
    assert "On 1 of them it looks like “no luck”." in " ".join(like.split())
    for on, by in (2, "It"), (0, "By who sees whom it"):
        like = as_text(ill.with_(likeness=KNOWN, alike_on=on))
        assert f"\n  {by} looks like “no luck”." in like
    named = ill.with_(mistake=dataclasses.replace(KNOWN, chapter="cost#a-b"))
    told = "Explained in chapter 11, “Counting and measuring”, under “a b”."
    assert told in " ".join(as_text(named).split())
    whole = as_text(ill.with_(mistake=dataclasses.replace(KNOWN, chapter="x")))
    assert "Explained in the chapter “x”." in whole
    assert "Cause: Chance." in as_text(named)
    met = dataclasses.replace(KNOWN, thread="https://a.b/c-d" + "-e" * 24)
    assert met.thread in as_text(ill.with_(mistake=met))  # in one piece
    noted = Report("x", 2, not_asked={"a": "no", "b": "no"}, facts={"c": 1})
    assert "Not asked, as no: a, b." in as_text(noted)
    assert "I found c=1. If that is wrong, say what is right" in as_text(noted)


def test_a_report_as_a_page_and_for_programs():
    page = as_html(Report("<x>", 2, trouble="a < b"))
    assert "&lt;x&gt;" in page and "a &lt; b" in page and "<x>" not in page
    assert "danger" in page and "success" in as_html(Report("x", 2))
    told = as_json(Report("x", 2, (WRONG,), mistake=KNOWN))
    assert '"healthy": false' in told and '"name": "no luck"' in told
    assert '"how": "It is not."' in told and '"looks_like": null' in told
    like = as_json(Report("x", 2, (WRONG,), likeness=KNOWN))
    assert '"looks_like": "no luck"' in like
