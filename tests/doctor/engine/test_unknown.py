"""What is raised of inputs, by which nobody is accused."""

import math

import pytest
import torch

from selfattn import attention
from selfattn.doctor import examine
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


def summed(q, k, v, mask=None):
    """Of a row in which all is hidden the logarithm swallows how many."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return (scores - scores.logsumexp(-1, keepdim=True)).exp() @ v


@pytest.mark.parametrize("told", [{}, {"mask": "keep"}])
def test_who_fails_where_nothing_may_be_seen_alone_is_asked_of_that(told):
    """Which axes a mask has was asked for, and has nothing to do with it; and
    who had told what a mask says was accused of what nobody had promised.
    """
    report = examine(summed, kind="attention", **told)
    assert report.exit_code != 1
    assert "empty_row=…" in report.different
    assert "mask_axes" not in report.different
    promised = {"mask": "keep", "empty_row": "zeros"}
    assert examine(summed, kind="attention", **promised).exit_code == 1


def never(*given):
    """A fact that cannot be asked."""
    raise ZeroDivisionError


@pytest.mark.parametrize("name", ["bias", "table"])
def test_a_function_that_was_told_and_raises_is_named(name):
    """It was called the doctor's own trouble, and which fact, no word said."""
    report = examine(attention, kind="attention", **{name: never})
    assert report.exit_code == 2
    assert report.trouble.startswith(f"The trouble lies in {name}=…")
