"""Answers as readers wrote them to the exercise on masking too late.

A product of infinity and zero was told that it was 0/0; and a large negative
number passed for minus infinity.
"""

import math

import pytest
import torch
import torch.nn.functional as F

from selfattn.doctor import examine

TOO_LATE = "masks/too_late"


def scores(q, k):
    """Of all queries on all keys."""
    return q @ k.mT / math.sqrt(q.shape[-1])


def exponentials_times_mask(q, k, v, mask):
    powers = scores(q, k).exp() * mask
    return powers / powers.sum(dim=-1, keepdim=True) @ v


def infinity_times_mask(q, k, v, mask):
    added = (1 - mask.to(q.dtype)) * -math.inf
    return (scores(q, k) + added).softmax(dim=-1) @ v


def infinity_times_not_mask(q, k, v, mask):
    return (scores(q, k) + ~mask * -math.inf).softmax(dim=-1) @ v


def kept_and_times_infinity(q, k, v, mask):
    s = scores(q, k)
    return torch.where(mask, s, s * -math.inf).softmax(dim=-1) @ v


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (exponentials_times_mask, "exponentials times mask"),
        (infinity_times_mask, "zero times infinity"),
        (infinity_times_not_mask, "zero times infinity"),
    ],
)
def test_infinity_times_zero_is_called_so(answer, name):
    """The first looked like “mask after softmax mended”, which is 0/0."""
    report = examine(answer, exercise=TOO_LATE)
    said = " ".join(str(report).split())
    assert report.mistake and report.mistake.name == name, said
    assert "infinity" in said and "0/0" not in said


def test_what_is_not_known_is_likened_to_no_0_over_0():
    report = examine(kept_and_times_infinity, exercise=TOO_LATE)
    assert not report.passed and "0/0" not in str(report)


@pytest.mark.parametrize("low", [-1e4, -1e9])
@pytest.mark.parametrize("way", ["filled in", "added"])
def test_a_number_for_minus_infinity_is_named(low, way):
    """It passed: no probe's allowed scores were as low as that."""

    def attend(q, k, v, mask):
        s = scores(q, k)
        hidden = s.masked_fill(~mask, low)
        if way == "added":
            hidden = s + low * ~mask
        return hidden.softmax(dim=-1) @ v

    report = examine(attend, exercise=TOO_LATE)
    assert not report.passed
    assert report.mistake and report.mistake.name == f"a large number {way}"


def lowest_filled_in(q, k, v, mask):
    s = scores(q, k)
    return s.masked_fill(~mask, torch.finfo(s.dtype).min).softmax(-1) @ v


def infinity_by_where(q, k, v, mask):
    return torch.where(mask, scores(q, k), -math.inf).softmax(dim=-1) @ v


def masked_before_scaling(q, k, v, mask):
    hidden = (q @ k.mT).masked_fill(~mask, -math.inf)
    return (hidden / q.shape[-1] ** 0.5).softmax(dim=-1) @ v


def scaled_first(q, k, v, mask):
    hidden = (q / q.shape[-1] ** 0.5 @ k.mT).masked_fill(~mask, -math.inf)
    return hidden.log_softmax(dim=-1).exp() @ v


def fused(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@pytest.mark.parametrize(
    "answer",
    [
        lowest_filled_in,
        infinity_by_where,
        masked_before_scaling,
        scaled_first,
        fused,
    ],
)
def test_what_hides_a_key_from_the_lowest_of_scores_passes(answer):
    """The lowest number is as good, where each row has a key to see."""
    report = examine(answer, exercise=TOO_LATE)
    assert report.passed, str(report)


def filled_late(q, k, v, mask):
    weights = scores(q, k).softmax(dim=-1)
    return weights.masked_fill(~mask, -math.inf) @ v


def mended_by_a_softmax(q, k, v, mask):
    weights = scores(q, k).softmax(dim=-1)
    return weights.masked_fill(~mask, -math.inf).softmax(dim=-1) @ v


def zeros_and_a_softmax(q, k, v, mask):
    return (scores(q, k).softmax(dim=-1) * mask).softmax(dim=-1) @ v


def causal_of_its_own(q, k, v, mask):
    s = scores(q, k)
    later = torch.ones_like(s).triu(1).bool()
    return s.masked_fill(later, -math.inf).softmax(dim=-1) @ v


def by_d(q, k, v, mask):
    s = (q @ k.mT / q.shape[-1]).masked_fill(~mask, -math.inf)
    return s.softmax(dim=-1) @ v


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (filled_late, "filled after the softmax"),
        (mended_by_a_softmax, "a second softmax to mend it"),
        (zeros_and_a_softmax, "a second softmax over zeros"),
        (causal_of_its_own, "a mask of its own"),
        (by_d, "divided by d"),
    ],
)
def test_what_is_wrong_without_a_forbidden_key_is_named(answer, name):
    """It was told that a mask changes something that forbids nothing."""
    report = examine(answer, exercise=TOO_LATE)
    assert report.mistake and report.mistake.name == name


def test_where_nothing_is_forbidden_the_mask_is_not_blamed():
    def no_softmax(q, k, v, mask):
        return scores(q, k).masked_fill(~mask, 0.0) @ v

    said = " ".join(str(examine(no_softmax, exercise=TOO_LATE)).split())
    assert "where nothing is forbidden, it is plain attention." in said
    assert "a mask that allows everything" not in said
