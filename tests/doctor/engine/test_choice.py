"""Of several readings: the most likely, or a question."""

from dataclasses import replace

from selfattn.doctor.engine import choice, diagnosis
from selfattn.doctor.exercise import Mistake
from selfattn.doctor.kind import Fact, Kind
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Difference, Finding, Report

WRONG = Finding(Probe("it is so", {}), Difference("value", "It is not."))
KNOWN = Mistake("no luck", None, "It is bad.", "Chance.", "Wait.")


def a_kind(**facts):
    return Kind("x", "y", lambda thing, facts: None, facts)


def test_of_readings_the_most_likely_counts():
    healthy, refusing = Report("x", 9), Report("x", 9, refused=("a",))
    named = Report("x", 9, (WRONG,), mistake=KNOWN)
    ill, worse = Report("x", 9, (WRONG,)), Report("x", 9, (WRONG, WRONG))
    shape = WRONG._replace(difference=Difference("shape", "It is long."))
    far = Report("x", 9, (shape,))
    order = [healthy, refusing, named, ill, far, worse]
    assert sorted(order, key=choice.likelihood, reverse=True) == order


def case(report, **facts):
    return diagnosis.Case(None, None, [], report.with_(facts=facts), {})


def test_what_is_left_open_is_asked_for_only_if_it_matters():
    kind = a_kind(a=Fact("the way", {1: "one", 2: "two"}))
    ill, other = (Report("x", 9, (WRONG,)) for _ in range(2))
    alike = choice.decide([case(ill, a=1), case(other, a=2)], kind).report
    assert alike.assumed == {"a": 1} and alike.facts == {}
    assert not alike.question and alike.findings
    found = WRONG._replace(probe=Probe("another", {}))
    nameless = Report("x", 9, (found,))
    told = choice.decide([case(ill, a=1), case(nameless, a=2)], kind).report
    assert told.findings == (WRONG,), "it is ill in every reading"
    named, other = (
        Report("x", 9, (WRONG,), mistake=replace(KNOWN, name=name))
        for name in ("no luck", "no wit")
    )
    asked = choice.decide([case(named, a=1), case(other, a=2)], kind).report
    assert "Say a, the way: 1 (one) or 2 (two)." in asked.question
    assert asked.findings == () and asked.exit_code == 2
    well = choice.decide([case(ill, a=1), case(Report("x", 9), a=2)], kind)
    assert well.report.passed and well.report.facts == {"a": 2}
