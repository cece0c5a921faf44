"""The test of itself: every mistake of a bank under its own name."""

import dataclasses

from selfattn.doctor import self_test
from selfattn.doctor.exercise import prediction


def doubled(x):
    return 2 * x


def test_an_exercise_is_told_what_it_lacks(an_exercise):
    told = " ".join(self_test.complaints(an_exercise()))
    assert "at least 8 mistakes, but it names 2" in told
    few = prediction("x/y", "z", 1.0)
    assert (
        "at least 4 mistakes, but it names 0" in self_test.complaints(few)[0]
    )
    assert self_test.names_given(an_exercise()) == {
        "three times": "three times",
        "nothing done": "nothing done",
    }
    known = an_exercise().mistakes[0]
    thrice = dataclasses.replace(known, name="thrice", cure="")
    exercise = an_exercise(mistakes=(thrice,))
    told = " ".join(self_test.complaints(exercise))
    assert "“three times” and “thrice” agree on every probe" in told
    assert "“three times” and “nothing done”" not in told
    assert "“thrice” lacks symptom, cause or cure" in told
    assert "“thrice” is called three times" in told


def test_twins_agree_on_every_probe(several):
    exercise = several()
    triple = exercise.mistakes[0]

    def only_of_rows(x):
        return 3 * x if x.ndim == 2 else 5 * x

    cousin = dataclasses.replace(triple, answer=only_of_rows)
    same = dataclasses.replace(triple, answer=lambda x: x + 2 * x)
    assert self_test.twins(triple, same, exercise)
    assert not self_test.twins(triple, cousin, exercise)


def test_a_bank_is_held_to_the_solutions_own_conventions(by_convention):
    assert self_test.ours(by_convention()) == {"below": "doubled"}
    assert (
        self_test.names_given(by_convention())["zeros below"] == "zeros below"
    )
