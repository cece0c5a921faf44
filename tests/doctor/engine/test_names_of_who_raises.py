"""In what words one raises does not matter, so that it says next to nothing.

A layer whose maps were taken for others raised on all probes but one, and had
the name of the first mistake that raised on these as well.
"""

import pytest

from selfattn.doctor.engine.diagnosis import judge
from selfattn.doctor.exercise import mistake
from selfattn.doctor.patient import Patient, directly
from selfattn.doctor.probes import Probe

PROBES = [Probe(f"{d}", {"x": "n d"}, sizes={"d": d}) for d in (1, 2, 3)]


def raising(*widths):
    def answer(x):
        """It raises."""
        if x.shape[-1] in widths:
            raise ValueError
        return 2 * x

    return answer


@pytest.mark.parametrize(("widths", "named"), [((2, 3), False), ((3,), True)])
def test_a_name_does_not_rest_on_the_one_probe_that_is_right(
    an_exercise, widths, named
):
    exercise = an_exercise(*PROBES, mistakes=(mistake(raising(*widths)),))
    patient = Patient(raising(*widths), {}, directly)
    report = judge(patient, exercise).report
    assert len(report.findings) == len(widths)
    assert (report.mistake is not None) == named
    # Of an answer to an exercise it is known how it is to be called.
    assert judge(raising(*widths), exercise).report.mistake is not None
