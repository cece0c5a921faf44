"""Mechanisms that save work: what they claim is seen, and what is amiss."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from selfattn import attention, flash_attention
from selfattn.doctor import examine
from selfattn.doctor.kinds.efficient import masks_seen, powers_seen
from selfattn.doctor.kinds.efficient import weights_seen as seen
from selfattn.doctor.kinds.efficient.exercise import first_tile_left_out
from selfattn.doctor.kinds.efficient.mistakes.own_weights import not_causal

OTHERS = {"future": not_causal, "first": first_tile_left_out}


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


def past(n_q, n_k):
    """The keys up to each query's own."""
    return torch.ones(n_q, n_k).bool().tril()


def told(attend, table=past, kernel=None):
    return seen.hint(attend, table, kernel, OTHERS)


@pytest.mark.parametrize(
    ("name", "sees"),
    [
        ("one too many", lambda i: slice(i + 2 if i % 5 else i + 1)),
        ("not causal", lambda i: slice(i - i % 5 + 5)),
        ("first tile left out", lambda i: slice(4 if i > 3 else i + 1, i + 1)),
        ("window ignored", None),
    ],
)
def test_weights_tell_which_keys_are_seen(name, sees):
    """In tiles a mask is another in each tile, and right on the whole."""
    if sees is None:
        near = past(seen.N, seen.N).triu(-3)
        assert told(by_rows, lambda n, m: near) == name
    elif name == "first tile left out":

        def late(q, k, v):
            return by_rows(q, k, v, sees=sees)[..., 4:, :]

        def whole(q, k, v):
            return F.pad(late(q, k, v), (0, 0, 4, 0))

        assert told(whole) == name
    else:
        assert told(partial(by_rows, sees=sees)) == name
    assert told(by_rows) == ""


def cut(keep, q, k, v):
    """Causal attention of which some outputs are lost."""
    return attention(q, k, v, causal=True)[..., keep, :]


def test_lost_outputs_tell_which_tile_is_left_out():
    """What has another shape was told by its shape alone."""
    assert told(partial(cut, slice(128))) == "last tile left out"
    assert told(partial(cut, slice(3, None))) == "first tile left out"


def test_keys_that_nobody_sees_tell_it_too():
    def short(q, k, v):
        return flash_attention(q, k[..., :128, :], v[..., :128, :])

    assert told(short, None) == "last tile left out"


SHARES = [
    ("no scale", lambda s, d: (s * math.sqrt(d)).softmax(-1)),
    ("divided by d", lambda s, d: (s / math.sqrt(d)).softmax(-1)),
    ("multiplied by the root", lambda s, d: (s * d).softmax(-1)),
    (
        "scaled by the number of keys",
        lambda s, d: (s * math.sqrt(d / 44)).softmax(-1),
    ),
    ("no softmax", lambda s, d: s),
    ("sigmoid instead of softmax", lambda s, d: s.sigmoid() / 50),
    ("softmax over queries", lambda s, d: s.softmax(-2)),
    ("", lambda s, d: s.softmax(-1)),
    ("", lambda s, d: 3 * s.softmax(-1)),
    ("", lambda s, d: (s.abs()).softmax(-1)),
]


@pytest.mark.parametrize(("name", "shares"), SHARES)
def test_weights_tell_which_step_is_another(name, shares):
    """Whatever the tiles, and wherever the scale is computed in them."""
    scores = torch.randn(60, 60, generator=torch.manual_seed(3)).double()
    may = torch.ones(60, 60).bool()
    assert powers_seen.hint(shares(scores, 16), scores, may, 16) == name


def test_masks_of_unequal_shares_are_no_masks():
    """A key that is hidden by a number is seen a little; that is no mask."""
    scores = torch.randn(9, 9, generator=torch.manual_seed(4))
    may = past(9, 9)
    faint = scores.masked_fill(~may, -5.0).softmax(-1)
    assert masks_seen.hint(faint, scores, may, OTHERS) == ""
    whole = scores.softmax(-1)
    assert masks_seen.hint(whole, scores, may, OTHERS) == "window ignored"


def with_features(q, k, v, divides=True, itself=0):
    """Causal attention with a kernel, in its quadratic form."""
    weights = (F.softplus(q) @ F.softplus(k).mT).tril(itself)
    return weights @ v / (weights.sum(-1, keepdim=True) if divides else 1)


def test_of_a_kernel_weights_are_products_of_features():
    tell = partial(told, kernel=F.softplus)
    assert tell(with_features) == ""
    assert tell(partial(with_features, divides=False)) == "not divided"
    assert tell(partial(with_features, itself=-1)) == "not itself"
