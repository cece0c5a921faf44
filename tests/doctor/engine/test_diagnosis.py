"""Diagnosis: whether an answer passes, and what is said if it does not."""

import torch

from selfattn.doctor.engine import diagnosis
from selfattn.doctor.exercise import UnusableError
from selfattn.doctor.probes import Probe

ROWS = {"x": "n d"}


def doubled(x):
    return 2 * x


def test_one_probe_that_is_not_answered_makes_no_stub(an_exercise):
    probes = [Probe("a", ROWS), Probe("b", ROWS, sizes={"d": 3})]
    exercise = an_exercise(*probes)
    half = diagnosis.diagnose(
        lambda x: doubled(x) if x.shape[-1] == 3 else None, exercise
    )
    assert not half.unanswered and len(half.findings) == 1
    assert diagnosis.diagnose(lambda x: None, exercise).unanswered


def test_without_names_it_is_only_told_whether_it_passes(several, only):
    quick = diagnosis.judge(lambda x: 3 * x, several(), name=False).report
    assert not quick.passed and quick.mistake is None
    refusing = diagnosis.judge(only(torch.float32), several(), name=False)
    assert not refusing.report.passed  # it must be looked into

    def cannot(x):
        if x.dtype == torch.float64:
            raise UnusableError("there is no way to")
        return 2 * x

    plain = diagnosis.judge(cannot, several(), name=False).report
    assert plain.passed and plain.refused == ("float64",)
    assert plain.not_asked == {"float64": "there is no way to"}


def test_what_is_known_is_not_run_again(several):
    calls = []

    def counted(x):
        calls.append(x)
        return 3 * x

    exercise = several()
    case = diagnosis.judge(counted, exercise, name=False)
    before = len(calls)
    named = diagnosis.judge(counted, exercise, known=case.outcomes)
    assert named.report.mistake.name == "three times"
    assert len(calls) == before == 3
