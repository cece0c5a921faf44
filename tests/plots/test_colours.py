"""The colours of all figures: three roles, each seen on white."""

import re

import pytest
from contrast import contrast

from selfattn.plots import colours


def test_colours_are_six_digits_and_three_roles_differ():
    roles = (colours.Q, colours.K, colours.V)
    assert roles == ("#0072B2", "#D55E00", "#009E73")
    named = [x for x in vars(colours).values() if str(x).startswith("#")]
    assert len(named) == len(set(named))
    assert all(re.fullmatch("#[0-9A-F]{6}", colour) for colour in named)


@pytest.mark.parametrize(
    "colour",
    [colours.Q, colours.K, colours.V, colours.OUTPUT, colours.NEUTRAL],
)
def test_a_colour_stands_out_on_white_by_three_to_one(colour):
    assert contrast(colour, "#FFFFFF") >= 3
