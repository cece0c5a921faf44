"""What a stranger's numbers did from where nobody may see them."""

import math
from functools import partial

import pytest
import torch

from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import linear_attention, linear_weights
from selfattn.efficient.longformer import longformer_attention
from selfattn.efficient.performer import (
    performer_attention,
    performer_weights,
)
from selfattn.efficient.window import sliding_window_attention
from selfattn.hidden import unfelt
from selfattn.masks import window_mask


@pytest.fixture(autouse=True)
def by_a_stranger(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


BANDS = [
    partial(sliding_window_attention, window=2, causal=True),
    partial(longformer_attention, window=2, causal=True, global_at=()),
]


def passed_back(attend, inputs, g):
    """What a call passes back to its inputs."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(attend(*inputs), inputs, g)


@pytest.mark.parametrize("attend", BANDS)
@pytest.mark.parametrize("seed", range(40))
def test_a_band_does_not_feel_the_largest_key(attend, seed):
    """Minus infinity was added to its score, which was infinite on the way
    back: their sum is NaN, and so was every gradient.
    """
    torch.manual_seed(seed)
    q, k, v = torch.randn(8, 3), torch.randn(8, 3), torch.randn(8, 1)
    k[-1] = torch.finfo(torch.float32).max / 2
    g = torch.ones(8, 1)
    g[-1] = 0  # of the one query that sees it
    found = passed_back(attend, (q, k, v), g)
    mask = window_mask(8, 8, 2)
    exact = partial(attention, mask=mask, causal=True)
    torch.testing.assert_close(found, passed_back(exact, (q, k, v), g))


@pytest.mark.parametrize("attend", BANDS)
def test_a_band_does_not_feel_a_query_that_overflows(attend):
    """Its score was a number on the way there, and none on the way back."""
    for seed in range(40):
        torch.manual_seed(seed)
        q, k = torch.randn(2, 8, 3)
        v, g = torch.randn(2, 8, 1)
        q[-1] = torch.finfo(torch.float32).max / 2
        g[-1] = 0
        for grad in passed_back(attend, (q, k, v), g):
            assert grad.isfinite().all()


@pytest.mark.parametrize("lie", ["as they are", "turned"])
@pytest.mark.parametrize(
    "attend",
    [
        partial(sliding_window_attention, window=2),
        partial(flash_attention, mask=window_mask(3, 7, 2)),
        partial(fused_attention, mask=window_mask(3, 7, 2)),
    ],
)
def test_queries_do_not_feel_the_largest_keys_however_they_lie(attend, lie):
    """Where products overflowed, their sum was minus infinity in the first
    result; of a copy of the queries, which lies otherwise, they are added in
    another order, and it was NaN. The query was taken for spoilt by itself,
    and passed nothing back.
    """
    for seed in range(40):
        torch.manual_seed(seed)
        q = torch.randn(5, 3).mT if lie == "turned" else torch.randn(3, 5)
        k, v = torch.randn(2, 7, 5)
        wanted = passed_back(attend, (q, k, v), torch.ones(3, 5))
        k[:3] = torch.finfo(torch.float32).max  # none of them is seen
        found = passed_back(attend, (q, k, v), torch.ones(3, 5))
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(
    ("key", "calls"),
    [
        (1.0, 1),
        (1e30, 1),
        (3e38, 1),
        (math.nan, 7),
        ([[math.nan], [1e30], [1e30]], 7),
    ],
)
def test_who_finds_nothing_spoilt_does_not_look_further(key, calls):
    """A key that may be too large, and is not, costs who learns less than one
    that has to be left out.
    """
    asked = []

    def attend(*given):
        asked.append(given)
        return attention(*given, mask=torch.arange(7) > 2)

    q, k, v = torch.randn(3, 5), *torch.randn(2, 7, 5)
    k[:3] = torch.tensor(key)
    unfelt(attend, q.requires_grad_(), k, v)
    assert len(asked) == calls


def features_like(x):
    """Features of one's own."""
    return x.clamp(-10, 10).exp()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 2e200])
@pytest.mark.parametrize(
    "weigh",
    [
        linear_weights,
        partial(linear_weights, feature_map=features_like),
        performer_weights,
    ],
)
def test_weights_of_the_past_do_not_feel_the_future(weigh, number):
    """They were right, and their gradients NaN: the key's own weight was,
    and times zero it still is.
    """
    torch.manual_seed(0)
    q, k = torch.randn(2, 4, 8, dtype=torch.float64)
    g = torch.randn(4, 4, dtype=torch.float64)
    g[3], g[:, 3] = 0, 0
    past = partial(weigh, causal=True)
    wanted = passed_back(past, (q, k), g)
    k[3] = number
    found = passed_back(past, (q, k), g)
    for ours, exact in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours[:3], exact[:3])


@pytest.mark.parametrize("size", [10, 20, 30])
def test_long_queries_pass_back_numbers(size):
    """The logarithm of a product that rounds to zero has no finite slope."""
    for seed in range(50):
        torch.manual_seed(seed)
        q, k = size * torch.randn(2, 6, 8)
        g = torch.randn(6, 6)
        for grad in passed_back(performer_weights, (q, k), g):
            assert grad.isfinite().all()


def test_a_kernel_does_not_feel_the_largest_key_of_float64():
    """How far its scores reach is infinite there, which was taken for a key
    that is no number, and so no reason to go step by step.
    """
    for seed in range(100):
        torch.manual_seed(seed)
        q, k, v = torch.randn(3, 1, 1, 16, 3, dtype=torch.float64)
        k[..., 8:, :] = 2.0**1023
        g = torch.ones_like(v)
        g[..., 8:, :] = 0
        both = [
            passed_back(partial(attend, causal=True), (q, k, v), g)
            for attend in (fused_attention, attention)
        ]
        torch.testing.assert_close(*both)


@pytest.mark.parametrize("attend", BANDS)
@pytest.mark.parametrize("other", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", [(0, 5), (1, 5), (1, 197)])
def test_nothing_spoilt_excuses_a_large_value(attend, other, where):
    """No tile touched it, and the output was sound; but beside one the
    largest value was no number, and none large: who sees none had NaN.
    """
    q, k, v = torch.randn(3, 2, 200, 4)
    q = q[:, -2:]
    v[0, -1] = 3e38
    v[where] = other
    g = torch.zeros(2, 2, 4)
    g[0, 0] = 1
    found = passed_back(attend, (q, k, v), g)
    mask = window_mask(2, 200, 2)
    exact = partial(attention, mask=mask, causal=True)
    torch.testing.assert_close(found, passed_back(exact, (q, k, v), g))


def test_who_sees_infinity_that_weighs_nothing_does_not_see_a_large_value():
    """What is infinite was large, too: who has no weight for it, by its score
    of minus infinity, seemed to see whatever is large.
    """
    q, k, v = torch.ones(1, 4), torch.ones(4, 4), torch.ones(4, 1)
    k[0], v[0], v[1] = -math.inf, math.inf, 3e38
    mask = torch.tensor([[True, False, True, True]])
    attend = partial(attention, mask=mask)
    for x in passed_back(attend, (q, k, v), 3 * torch.ones(1, 1)):
        assert x.isfinite().all()


@pytest.mark.parametrize("attend", [linear_attention, performer_attention])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("far", [1.7e308, -1.7e308, 1e200, math.nan])
def test_without_a_query_nothing_is_passed_back(attend, causal, far):
    """A key of the largest numbers passed back NaN to all keys, though nobody
    asked them.
    """
    q, k, v = (torch.randn(1, n, 4).double() for n in (0, 3, 3))
    k[0, 1, 0] = far
    attend = partial(attend, causal=causal)
    for x in passed_back(attend, (q, k, v), torch.ones(1, 0, 4).double()):
        assert x.eq(0).all()
