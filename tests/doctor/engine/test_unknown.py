"""What is raised of inputs, by which nobody is accused."""

import pytest

from selfattn.doctor.engine.unknown import OF_INPUTS

OF_A_SIZE = [
    "It raises RuntimeError: shape '[2, 5]' is invalid.",
    "It raises RuntimeError: Error(s) in a layer:\n\tsize mismatch.",
    "It raises ValueError: not\nenough values to unpack.",
    "After two\nlines it raises IndexError.",
]
OF_ANOTHER_THING = [
    "It raises NameError: name 'shape' is not defined.",
    "It raises RuntimeError: out of memory, of size 8.",
    "It raises RuntimeError: of this size\nCUDA is out of memory.",
    "It raises RuntimeError: nothing\nof the kind.",
]


@pytest.mark.parametrize("words", OF_A_SIZE)
def test_what_is_raised_of_inputs_is_known_in_whichever_line(words):
    assert OF_INPUTS.search(words)


@pytest.mark.parametrize("words", OF_ANOTHER_THING)
def test_what_is_raised_of_something_else_is_too(words):
    assert not OF_INPUTS.search(words)
