"""The kind `efficient`: mechanisms held to the mask or kernel they claim."""

from functools import partial

import pytest
import torch

from selfattn import (
    attention,
    flash_attention,
    linear_attention,
    performer_attention,
    sliding_window_attention,
)
from selfattn.doctor import examine
from selfattn.doctor.kinds.layer.mistakes.masks import rolled_too_early
from selfattn.efficient.linear import elu_plus_one
from selfattn.masks import causal_mask, window_mask


def here(thing, **facts):
    return examine(thing, kind="efficient", time_limit=None, **facts)


def in_blocks(q, k, v, causal=False):
    """Each block of 7 attends to itself, and says it is a window."""
    i = torch.arange(q.shape[-2])[:, None] + k.shape[-2] - q.shape[-2]
    mask = i // 7 == torch.arange(k.shape[-2]) // 7
    return attention(q, k, v, mask=mask, causal=causal)


def swallows(q, k, v, **options):
    return linear_attention(q, k, v)


HEALTHY = [
    (flash_attention, {}),
    (partial(sliding_window_attention, window=7), {"window": 7}),
    (sliding_window_attention, {"window": 7, "call": {"window": 7}}),
    (
        partial(sliding_window_attention, window=4),
        {"table": partial(window_mask, window=4)},
    ),
    (linear_attention, {"kernel": elu_plus_one}),
]


@pytest.mark.parametrize(("mechanism", "claim"), HEALTHY)
def test_a_mechanism_that_keeps_its_claim_is_healthy(mechanism, claim):
    report = here(mechanism, layout="any", **claim)
    assert report.passed, report


ILL = [
    (attention, {}, "the whole table is made"),
    (
        partial(sliding_window_attention, window=8),
        {"window": 7},
        "one key too many",
    ),
    (
        partial(sliding_window_attention, window=6),
        {"window": 7},
        "one key too few",
    ),
    (in_blocks, {"window": 7}, "blocks that do not overlap"),
    (
        lambda q, k, v, causal=False: linear_attention(q, k, v),
        {"kernel": elu_plus_one},
        "causal flag ignored",
    ),
    (
        lambda q, k, v: linear_attention(q, k, v, feature_map=torch.relu),
        {"kernel": elu_plus_one},
        "relu for its features",
    ),
    (
        lambda q, k, v: linear_attention(q, k, v) / q.shape[-1] ** 0.5,
        {"kernel": elu_plus_one},
        "rows sum to one over root d",
    ),
    (flash_attention, {"kernel": elu_plus_one}, "ordinary attention"),
    (flash_attention, {"window": 7}, "claim not kept"),
]


@pytest.mark.parametrize(
    ("mechanism", "claim", "name"), ILL, ids=[name for *_, name in ILL]
)
def test_a_claim_that_is_not_kept_has_a_name(mechanism, claim, name):
    report = here(mechanism, layout="any", **claim)
    found = report.mistake or report.likeness
    assert found is not None, report
    assert found.name == name


def test_a_flag_that_is_swallowed_is_not_asked_but_said():
    report = here(swallows, layout="any", kernel=elu_plus_one)
    assert report.passed
    assert report.not_asked["a causal flag"] == "it has no argument for it"


def test_what_needs_as_many_queries_as_keys_can_say_so():
    def square(q, k, v, causal=False):
        if q.shape[-2] != k.shape[-2]:
            raise ValueError("as many, please")
        return flash_attention(q, k, v, causal=causal)

    assert here(square, layout="any", square=True).passed
    report = here(square, layout="any")
    assert report.passed
    assert "as many, please" in " ".join(report.not_asked.values())


def test_any_table_can_be_claimed():
    def table(n_q, n_k):
        return causal_mask(n_q, n_k) | causal_mask(n_k, n_k)[:n_q] | True

    assert here(flash_attention, layout="any", table=table).passed


OWN = [
    flash_attention,
    linear_attention,
    performer_attention,
    partial(sliding_window_attention, window=7),
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mechanism", OWN)
def test_sound_mechanisms_keep_what_holds_of_all(mechanism, causal):
    if causal:
        mechanism = partial(mechanism, causal=True)
    report = here(mechanism, formula="own", causal=causal, layout="any")
    assert report.passed, report
    assert ("a causal flag" in report.not_asked) == causal


def padded(q, k, v, kv_mask=None, forbidden=None):
    """Linear attention that leaves out padded keys, said in two ways."""
    if forbidden is not None:
        kv_mask = ~forbidden
    if kv_mask is None:
        return linear_attention(q, k, v)
    real = kv_mask.view(len(k), *[1] * (k.ndim - 3), -1, 1)
    f_q, f_k = elu_plus_one(q), elu_plus_one(k) * real
    total = f_q @ f_k.sum(dim=-2).unsqueeze(-1)
    return f_q @ (f_k.mT @ v) / (total + (total == 0))


def three_axes(q, k, v, kv_mask=None):
    if q.ndim != 3:
        raise ValueError("three axes are asked for")
    return padded(q, k, v, kv_mask)


def test_padding_is_asked_of_what_takes_it_in_any_layout_and_meaning():
    takes = "a mask for padding"
    for mechanism in (padded, three_axes):
        report = here(mechanism, formula="own")
        assert report.passed and takes not in report.not_asked, report
        assert report.facts["padding"] == "keep"
    told = here(padded, formula="own", names={"padding": "forbidden"})
    assert told.passed and told.facts["padding"] == "block"
    wrong = here(padded, formula="own", padding="block")
    assert wrong.mistake is not None
    assert wrong.mistake.name == "mask upside down"


def test_loudness_tells_weights_from_their_mean():
    def about_the_mean(q, k, v):
        exact = attention(q, k, v)
        loud = q.float().norm() * k.float().norm() > 2000
        return v.mean(dim=-2, keepdim=True) + 0 * exact if loud else exact

    asked = [
        f.probe.claim for f in here(about_the_mean, formula="own").findings
    ]
    assert "loud queries are told apart" in asked


def test_a_claim_of_shifted_windows_is_kept_or_not():
    def table(n_q, n_k):
        window = (torch.arange(n_k) + 3) // 5
        return window[n_k - n_q :, None] == window

    def cut(q, k, v, causal=False):
        mask = table(q.shape[-2], k.shape[-2])
        if causal:
            mask = mask & causal_mask(q.shape[-2], k.shape[-2])
        return attention(q, k, v, mask=mask)

    asked = here(cut, layout="any", table=table)
    assert asked.mistake.name == "the whole table is made"
    assert rolled_too_early(table)(2, 7).shape == (2, 7)
    # Where windows divide the length, it makes no difference.
    assert rolled_too_early(table)(20, 20).equal(table(20, 20))
    assert not rolled_too_early(table)(19, 19).equal(table(19, 19))
