"""Exercises: mistakes from docstrings, inputs by name, predictions."""

import dataclasses

import pytest
import torch

from selfattn.doctor.engine import diagnosis
from selfattn.doctor.exercise import (
    Exercise,
    UnusableError,
    mistake_as,
    mistaken_value,
    prediction,
    read_docstring,
)


def doubled(x):
    return 2 * x


def test_a_docstring_is_cut_where_its_heads_stand():
    words = read_docstring(
        "It is: so.\n\nCause: A slip,\n    a long one.\nCure: Note: care."
        "\nThread: https://a.b"
    )
    assert words == {
        "symptom": "It is: so.",
        "cause": "A slip, a long one.",
        "cure": "Note: care.",
        "thread": "https://a.b",
    }


def test_a_mistake_has_the_name_and_the_words_of_its_function(an_exercise):
    exercise = an_exercise()
    first = exercise.mistakes[0]
    assert first.name == "three times" and first.chapter == ""
    assert str(first) == "It is too much. 3. 2."

    def other(x):
        return x

    known = mistake_as(first)(other)
    assert known.answer is other and known is not first
    assert str(known) == str(first) and known.name == "three times"
    assert mistake_as(doubled)(other).name == "doubled"
    assert an_exercise(mistakes=(known,)).mistakes[-1] is known


def test_a_mistaken_value_is_what_its_function_returns():
    @mistaken_value
    def the_other():
        """It is not.

        Cause: A sign.
        Cure: Think again.
        """
        return "flatter"

    assert the_other.answer == "flatter" and the_other.name == "the other"
    assert str(the_other) == "It is not. A sign. Think again."


def test_a_bank_is_declared_once_and_for_all(an_exercise):
    exercise = an_exercise()
    assert isinstance(exercise.mistakes, tuple)
    with pytest.raises(dataclasses.FrozenInstanceError):
        exercise.mistakes = ()


def test_inputs_are_put_by_name_where_that_is_said():
    def answer(x, *, more):
        return x + more

    exercise = Exercise("x/y", "a sum", answer, (), by_name=("more",))
    assert exercise.run(answer, {"more": 1, "x": 2}) == 3
    assert exercise.run(None, {}) is None and exercise.run(..., {}) is None
    with pytest.raises(UnusableError, match="hand over the function itself"):
        exercise.run(torch.ones(2), {})


def test_a_prediction_is_read_in_any_form():
    word = prediction("x/word", "which?", "flatter")
    assert diagnosis.diagnose(" Flatter ", word).passed
    number = prediction("x/number", "how many?", [1.0, 2.0])
    assert diagnosis.diagnose((1, 2.001), number).passed
    assert not diagnosis.diagnose((1, 2.1), number).passed
