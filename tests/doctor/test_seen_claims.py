"""Mechanisms that save work: what they claim is seen, if nobody told it."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from selfattn import attention
from selfattn.doctor import examine
from selfattn.doctor.kinds.attention.layouts import TURNED
from selfattn.doctor.kinds.efficient.seen_tables import claims


def here(thing, **facts):
    return examine(thing, kind="efficient", time_limit=None, **facts)


def by_rows(q, k, v, scale=None, strict=False, sees=lambda i: slice(i + 1)):
    """One query after the other, beside the keys that it sees."""
    scale = scale or 1 / math.sqrt(q.shape[-1])
    rows = []
    for i in range(q.shape[-2]):
        kept = slice(i) if strict else sees(i)
        scores = q[..., i : i + 1, :] @ k[..., kept, :].mT * scale
        rows.append(scores.softmax(-1) @ v[..., kept, :])
    return torch.cat(rows, dim=-2)


def since_noon(i):
    """Of days of six hours: the hours of this day and of the one before."""
    return slice(max(0, (i // 6 - 1) * 6), i + 1)


def cubed(q, k, v):
    """Each weight a power of a cosine that is never below nought; by rows."""
    q, k = (F.normalize(x, dim=-1) for x in (q, k))
    rows = []
    for query in q.split(1, dim=-2):
        weights = (1.5 + query @ k.mT) ** 3
        rows.append(weights @ v / weights.sum(-1, keepdim=True))
    return torch.cat(rows, dim=-2)


@pytest.mark.parametrize(
    ("mechanism", "found"),
    [
        (by_rows, {"causal": True}),
        (partial(by_rows, sees=since_noon), {"table": "as seen"}),
        (cubed, {"formula": "own"}),
    ],
    ids=["causal", "under a mask", "of its own"],
)
def test_of_whom_nothing_was_told_the_claim_is_seen(mechanism, found):
    """It was said to be different from the usual, which nobody had told."""
    report = here(mechanism)
    assert report.passed, report
    assert found.items() <= report.facts.items()


def test_and_its_numbers_are_asked_under_that_claim():
    report = here(partial(by_rows, sees=since_noon, scale=1.0))
    assert report.mistake.name == "no scale", report
    assert report.exit_code == 1


def test_a_mask_that_no_design_has_is_not_taken_for_one():
    """A text that does not see itself would else be sound by definition."""
    report = here(partial(by_rows, strict=True))
    assert not report.passed
    assert "mask" not in report.facts  # of which it was told nothing


def test_who_has_a_flag_claims_nothing_without():
    def flagged(q, k, v, causal=False):
        return by_rows(q, k, v)

    assert not here(flagged).passed


def in_pairs(q, k, v, mask=None, texts=None, fill=-torch.inf):
    """Two queries at a time, under a mask of (batch, 1, queries, keys)."""
    mask = None if mask is None else mask[:texts]
    outputs = []
    for first in range(0, q.shape[-2], 2):
        rows = slice(first, first + 2)
        scores = q[..., rows, :] @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask[..., rows, :], fill)
        outputs.append(scores.softmax(-1).nan_to_num() @ v)
    return torch.cat(outputs, dim=-2)


MASKED = {"layout": "BHND", "mask": "keep", "mask_axes": "B1NN"}


def test_a_mask_is_asked_of_whom_its_meaning_was_told():
    """What was told of a mask was no word; so whatever it hid was healthy."""
    assert here(in_pairs, **MASKED).passed
    report = here(partial(in_pairs, texts=1), **MASKED)
    assert report.mistake.name == "one mask for the whole batch", report
    report = here(partial(in_pairs, fill=0.0), **MASKED)
    assert report.mistake.name == "masked with zero", report


def test_and_it_shall_save_work_still():
    report = here(attention, layout="any", mask="keep", mask_axes="any")
    assert report.mistake.name == "the whole table is made", report


def test_a_window_of_tokens_last_claims_no_more_than_is_seen():
    """One that hides more than the future was taken for causal alone."""

    def turned(q, k, v):
        rows = (x.mT.contiguous() for x in (q, k, v))
        return by_rows(*rows, sees=since_noon).mT

    names = {"q": None, "k": None, "v": None}
    found = [*claims(turned, {"names": names, "mask": "keep"})]
    assert not [one for one in found if one["layout"] in TURNED], found
