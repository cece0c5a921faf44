"""Shrinking: the smallest input that fails in the same way."""

import dataclasses

import pytest

from selfattn.doctor.engine.shrinking import (
    Patience,
    shorter,
    shrink,
    smallest_failure,
)
from selfattn.doctor.probes import SIZES, Probe
from selfattn.doctor.report import Difference, Finding

ROWS = {"x": "n d"}


def doubled(x):
    return 2 * x


def wrong_if_long(x):
    return x if x.shape[0] > 2 else doubled(x)


def found(probe, kind="value"):
    return Finding(probe, Difference(kind, "It is wrong."))


def test_axes_are_made_shorter_as_long_as_it_fails_alike(an_exercise):
    exercise = an_exercise(Probe("x", ROWS))
    probe = exercise.probes[0]
    sizes, how = shrink(wrong_if_long, exercise, found(probe), Patience())
    assert sizes == {"n": 3, "d": 1} and how.sort == "value"
    fixed = dataclasses.replace(probe, fixed=("d",))
    sizes, _ = shrink(wrong_if_long, exercise, found(fixed), Patience())
    assert sizes == {"n": 3, "d": SIZES["d"]}

    def shaped(x):  # of another shape, when it is narrow
        return x if x.shape[-1] > 4 else x[0]

    sizes, how = shrink(shaped, exercise, found(probe), Patience())
    assert sizes == {"n": 1, "d": 5} and how.sort == "value"


def test_the_smallest_of_all_failures_is_shown(an_exercise):
    probes = (
        Probe("x", ROWS, fixed=("n", "d")),
        Probe("y", {"x": "d"}, fixed=("d",)),
    )
    exercise = an_exercise(*probes)
    first, code = smallest_failure(
        lambda x: x, exercise, [found(probe) for probe in probes]
    )
    assert first.probe is probes[1] and "x = torch.tensor([" in code
    with pytest.raises(ValueError, match="there must be a failure"):
        smallest_failure(doubled, exercise, [])


def test_of_one_size_the_one_that_takes_fewer_lines_is_shown(an_exercise):
    """Thirty rows of one number fill more lines than one row of thirty."""
    probes = (
        Probe("x", ROWS, {"n": 30, "d": 1}, fixed=("n", "d")),
        Probe("y", ROWS, {"n": 1, "d": 30}, fixed=("n", "d")),
    )
    exercise, wrong = an_exercise(*probes), [*map(found, probes)]
    for findings in (wrong, wrong[::-1]):
        first, _ = smallest_failure(lambda x: x, exercise, findings)
        assert first.probe is probes[1]


def test_patience_ends_with_its_trials_or_its_time(an_exercise):
    few = Patience(trials=2, seconds=60)
    assert [few.lasts() for _ in range(3)] == [True, True, False]
    assert not Patience(trials=9, seconds=0).lasts()
    exercise, hasty = an_exercise(Probe("x", ROWS)), Patience(trials=0)
    probe = exercise.probes[0]
    sizes, _ = shrink(lambda x: x, exercise, found(probe), hasty)
    assert sizes == probe.axes()


def test_lengths_to_try_begin_with_the_shortest():
    assert shorter(1) == [] and shorter(5) == [1, 2, 3, 4]
    assert shorter(40) == [*range(1, 10), 16, 32]
