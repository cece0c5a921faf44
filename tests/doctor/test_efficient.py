"""The kind `efficient`: mechanisms held to the mask or kernel they claim."""

from functools import partial

import pytest
import torch

from selfattn import (
    attention,
    flash_attention,
    linear_attention,
    sliding_window_attention,
)
from selfattn.doctor import examine
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
