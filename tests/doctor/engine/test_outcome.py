"""Outcomes: all that an answer did on a probe, and no trace elsewhere."""

import math
import warnings

import pytest
import torch

from selfattn.doctor.engine.outcome import alike, in_words, observe
from selfattn.doctor.exercise import UnusableError
from selfattn.doctor.probes import Probe

NAN, INF = math.nan, math.inf
ROWS = {"x": "n d"}


def test_an_outcome_holds_all_that_an_answer_did(an_exercise):
    def busy(x):
        print("here")
        warnings.warn("there", stacklevel=1)
        x += torch.rand(1)
        return x

    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = observe(an_exercise(), busy, Probe("x", ROWS))
        second = observe(an_exercise(), busy, Probe("x", ROWS))
    assert first.error is None and first.modified == ("x",)
    assert first.value.equal(second.value)  # it draws the same numbers
    assert torch.get_rng_state().equal(state)
    assert first.gradients == {}  # nobody asked


def test_gradients_are_of_a_weighted_sum(an_exercise):
    """Else those of weights, whose rows sum to one, would all be zero."""
    probe = Probe("x", ROWS, gradient=True)
    seen = observe(an_exercise(), lambda x: x.softmax(dim=-1), probe)
    assert seen.gradients["x"].abs().max() > 0.01
    cut = observe(an_exercise(), lambda x: x.detach(), probe)
    assert cut.gradients == {"x": None} and cut.gradient_error is None
    numpy = observe(an_exercise(), lambda x: x * x.numpy().sum(), probe)
    assert numpy.gradient_error.startswith("RuntimeError: Can't call numpy")


def test_stubs_and_errors_are_told_apart(an_exercise):
    def raising(error):
        def answer(x):
            raise error

        return observe(an_exercise(), answer, Probe("x", ROWS))

    assert raising(NotImplementedError("later")).stub
    assert not raising(ValueError("no")).stub
    assert raising(UnusableError("no")).unusable
    assert observe(an_exercise(), lambda x: ..., Probe("x", ROWS)).stub


@pytest.mark.parametrize("on_the_way_back", [False, True])
def test_who_has_no_memory_left_has_no_answer_that_is_wrong(
    an_exercise, on_the_way_back
):
    """Under a limit of one byte attention was different from the usual."""

    def answer(x):
        if x.requires_grad or not on_the_way_back:
            raise MemoryError
        return 2 * x

    probe = Probe("x", ROWS, gradient=True)
    with pytest.raises(MemoryError):
        observe(an_exercise(), answer, probe)


def test_the_same_to_the_last_bit():
    x = torch.tensor([NAN, 1.0])
    assert alike(x, x.clone()) and not alike(x, torch.tensor([1.0, NAN]))
    assert not alike(x, x.double()) and not alike(x, x[None])
    assert alike("a", "a") and not alike(1, 2)


def test_an_error_is_one_line():
    assert in_words(ValueError("a.\nb")) == "ValueError: a"
    assert in_words(ValueError()) == "ValueError"
    assert len(in_words(ValueError("a" * 999))) < 250
