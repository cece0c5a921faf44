"""The least that the doctor's parts can be tested on: to double a tensor."""

import pytest
import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe

ROWS = {"x": "n d"}
# Where every solution, every mistake and every example is run: there, shapes
# are checked in all that the doctor calls.
CHECKED = {"test_exercises.py", "test_kinds.py"}


@pytest.fixture(autouse=True)
def unchecked_elsewhere(request):
    """The doctor calls the same things by the thousand in all other files."""
    if request.path.name not in CHECKED:
        request.getfixturevalue("unchecked")


def doubled(x):
    return 2 * x


def doubling(*probes, mistakes=(), **more):
    """Double a tensor; its bank knows two mistakes, and any others."""
    probes = probes or (Probe("it is doubled", ROWS, gradient=True),)

    @mistake
    def three_times(x):
        """It is too much.

        Cause: 3.
        Cure: 2.
        """
        return 3 * x

    @mistake
    def nothing_done(x):
        """It is too little.

        Cause: 1.
        Cure: 2.
        """
        return x.clone()

    bank = (three_times, nothing_done, *mistakes)
    return Exercise("x/double", "2 x", doubled, probes, mistakes=bank, **more)


def doubled_if(dtype, times=2):
    """Double what is of one type, and refuse every other."""

    def answer(x):
        if x.dtype != dtype:
            raise TypeError(f"{x.dtype} is refused")
        return times * x

    return answer


def of_types(**more):
    """Doubling, of which types other than float32 are optional."""
    probes = (
        Probe("it is doubled", ROWS),
        Probe("float64", ROWS, dtype=torch.float64, needs=("float64",)),
        Probe("two", {"x": "d"}, dtype=torch.float64, needs=("float64",)),
    )
    return doubling(*probes, optional={"float64": "float64"}, **more)


def with_a_convention():
    """Doubling; of negative numbers it may be said otherwise."""

    @mistake
    def zeros_below(x):
        """Nothing comes of what is below zero."""
        return 2 * x.clamp(min=0)

    return doubling(
        Probe("it is doubled", {"x": lambda sizes: torch.ones(3)}),
        Probe(
            "and below zero",
            {"x": lambda sizes: -torch.ones(3)},
            convention="below",
        ),
        conventions={"below": {"doubled": None, "zero": zeros_below}},
        mistakes=(zeros_below,),
    )


@pytest.fixture
def an_exercise():
    """Makes the exercise, of the probes that are handed over."""
    return doubling


@pytest.fixture
def several():
    """Makes it with probes that need a type which may be refused."""
    return of_types


@pytest.fixture
def by_convention():
    """Makes it with a convention below zero."""
    return with_a_convention


@pytest.fixture
def only():
    """Makes an answer to it that takes a single type."""
    return doubled_if
