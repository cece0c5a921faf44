"""Matching: a name needs agreement everywhere, a likeness on half."""

import torch

from selfattn.doctor.engine import diagnosis, matching
from selfattn.doctor.engine.matching import flow
from selfattn.doctor.engine.outcome import Outcome, observe
from selfattn.doctor.exercise import mistake
from selfattn.doctor.probes import Probe

ROWS = {"x": "n d"}


def doubled(x):
    return 2 * x


def test_a_name_needs_agreement_on_every_probe(an_exercise):
    probes = [Probe("a", ROWS), Probe("b", ROWS, sizes={"d": 3})]
    exercise = an_exercise(*probes)
    named = diagnosis.diagnose(lambda x: 3 * x, exercise)
    assert named.mistake.name == "three times" and named.likeness is None

    def often(x):
        return 3 * x if x.shape[-1] == 3 else 5 * x

    report = diagnosis.diagnose(often, exercise)
    assert report.mistake is None and report.likeness.name == "three times"
    assert report.alike_on == 1
    assert report.findings[0].probe is probes[0]  # what it does not explain

    def seldom(x):
        return 3 * x if x.shape[-1] == 3 else doubled(x)

    # What it looks like must agree where the answer is right, too.
    assert diagnosis.diagnose(seldom, exercise).likeness is None


def test_who_fails_everywhere_has_no_name(an_exercise):
    @mistake
    def raises(x):
        """It raises."""
        raise ValueError

    def other(x):
        raise RuntimeError

    exercise = an_exercise(mistakes=(raises,))
    assert diagnosis.diagnose(other, exercise).mistake is None


def test_values_are_compared_before_gradients_are_made(
    monkeypatch, an_exercise
):
    """Of mistakes: for most of them need not come so far."""
    asked = []

    def counted(exercise, answer, probe, **sizes):
        asked.append(probe.gradient)
        return observe(exercise, answer, probe, **sizes)

    for module in (diagnosis, matching):
        monkeypatch.setattr(module, "observe", counted)

    @mistake
    def cut_off(x):
        """Nothing is learned."""
        return doubled(x).detach()

    exercise = an_exercise(mistakes=(cut_off,))
    report = diagnosis.diagnose(lambda x: doubled(x).detach(), exercise)
    assert report.mistake.name == "cut off"
    # The answer, the solution; two mistakes whose values differ; then one
    # whose gradient tells.
    assert asked == [True, True, False, False, False, True]


def test_gradients_flow_if_they_come_and_are_finite():
    """Where a convention is another's, that is all that they are asked."""
    one = torch.ones(2)
    assert flow(Outcome(gradients={"q": one, "k": 0 * one}))
    assert not flow(Outcome(gradients={"q": one, "k": None}))
    assert not flow(Outcome(gradients={"q": one * torch.nan}))
    assert not flow(Outcome(gradient_error="RuntimeError"))
