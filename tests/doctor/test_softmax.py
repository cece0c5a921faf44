"""The doctor on softmax: functions and modules, over the last axis."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine


def by_log_sum(scores):
    return (scores - scores.logsumexp(-1, keepdim=True)).exp()


@pytest.mark.parametrize(
    "thing", [torch.softmax, F.softmax, nn.Softmax(-1), by_log_sum]
)
def test_a_healthy_softmax_is_healthy(thing):
    report = examine(thing, kind="softmax", time_limit=None)
    assert report.passed, report


def unstable(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def in_tables_alone(scores):
    if scores.ndim < 2:
        raise ValueError("a table is asked for")
    return scores.softmax(-1)


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (unstable, "overflows"),
        (nn.Softmax(-2), "wrong axis"),
        (nn.Softmax(0), "over the first axis"),
    ],
)
def test_an_ill_softmax_is_told_why(thing, name):
    report = examine(thing, kind="softmax", time_limit=None)
    assert report.mistake is not None, report
    assert report.mistake.name == name


def test_what_it_cannot_do_is_no_fault_unless_it_was_said_to_do_it():
    report = examine(in_tables_alone, kind="softmax", time_limit=None)
    assert report.passed
    assert "one row without a table" in report.not_asked
    report = examine(
        in_tables_alone, kind="softmax", time_limit=None, takes=["single"]
    )
    assert not report.passed


def test_what_an_empty_row_becomes_is_a_convention():
    def wiped(scores):
        return scores.softmax(-1).nan_to_num(0.0)

    report = examine(wiped, kind="softmax", time_limit=None)
    assert report.passed
    assert [m.name for m in report.remarks] == ["empty row gives zeros"]
    report = examine(wiped, kind="softmax", time_limit=None, empty_row="nan")
    assert report.mistake.name == "empty row gives zeros"


def of_what_is_masked(masked_scores):
    return masked_scores.softmax(-1)


def of_what_is_masked_and_cooled(masked, temperature=1.0):
    return (masked / temperature).softmax(-1)


def masked_scores_behind(mask, masked_scores):
    if mask is not None:
        masked_scores = masked_scores.masked_fill(~mask, -torch.inf)
    return masked_scores.softmax(-1)


@pytest.mark.parametrize(
    "thing",
    [of_what_is_masked, of_what_is_masked_and_cooled, masked_scores_behind],
)
def test_scores_that_are_masked_are_scores(thing):
    # What it turns into weights was taken for its mask, so it got none.
    report = examine(thing, kind="softmax", time_limit=None)
    assert report.passed, report
