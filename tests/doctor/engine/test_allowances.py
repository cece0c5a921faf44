"""Allowances: conventions that are kept, and what may be refused."""

import torch

from selfattn.doctor.engine import diagnosis

ROWS = {"x": "n d"}


def doubled(x):
    return 2 * x


def test_what_is_refused_is_no_fault_unless_it_was_said_to_be_taken(
    several, only
):
    case = diagnosis.judge(only(torch.float32), several())
    assert case.report.passed and case.report.refused == ("float64",)
    assert case.report.probes == 1
    assert "is refused" in case.report.not_asked["float64"]
    held = diagnosis.judge(
        only(torch.float32), several(), required=["float64"]
    )
    assert not held.report.passed and held.report.refused == ()
    less = diagnosis.judge(
        only(torch.float32), several(), lacks={"float64": "not today"}
    )
    assert less.report.passed and less.report.probes == 1
    named = diagnosis.judge(only(torch.float32, times=3), several())
    assert named.report.mistake.name == "three times"
    assert named.report.refused == ("float64",)


def test_a_refusal_is_one_on_every_probe_that_needs_it(several, only):
    def sometimes(x):
        return only(torch.float32)(x) if x.ndim > 1 else 2 * x

    assert not diagnosis.judge(sometimes, several()).report.passed
    never = diagnosis.judge(only(torch.float16), several()).report
    assert not never.passed and never.refused == ()


def test_a_convention_is_a_remark_unless_another_was_said(by_convention):
    exercise = by_convention()

    def zeros(x):
        return 2 * x.relu()

    free = diagnosis.judge(zeros, exercise).report
    assert free.passed and [m.name for m in free.remarks] == ["zeros below"]
    held = diagnosis.judge(zeros, exercise, said={"below": "doubled"}).report
    assert held.mistake.name == "zeros below" and held.remarks == ()
    kept = diagnosis.judge(zeros, exercise, said={"below": "zero"}).report
    assert kept.passed and kept.remarks == ()
    other = diagnosis.judge(doubled, exercise, said={"below": "zero"}).report
    assert not other.passed
