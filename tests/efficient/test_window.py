"""The window is the definition with the window's mask, at a linear cost."""

from functools import partial

import pytest
import torch
from mechanisms import (
    assert_differentiated_once,
    assert_heads_broadcast,
    assert_nothing_of_nothing,
)
from same import assert_same
from torch.autograd import gradcheck
from torch.testing import assert_close

from selfattn.cost import flops, largest_bytes, log_log_slope, peak_bytes
from selfattn.dot_product import attention
from selfattn.efficient.window import BLOCK, sliding_window_attention
from selfattn.masks import window_mask

LENGTHS = [(1, 1), (1, 9), (7, 11), (13, 5), (BLOCK, BLOCK), (131, 131)]
LENGTHS += [(70, 197), (197, 70), (2, 300), (300, 2), (129, 128)]


def some(n_q, n_k, *, device="cpu", axes=(2,)):
    """Queries, keys and values, every axis another prime if n is."""
    return tuple(
        torch.randn(*axes, n, d, device=device).double().requires_grad_()
        for n, d in ((n_q, 5), (n_k, 5), (n_k, 3))
    )


@pytest.mark.parametrize(("n_q", "n_k"), LENGTHS)
@pytest.mark.parametrize("window", [1, 2, 5, 63, 64, 65, 150, 1000])
@pytest.mark.parametrize("causal", [False, True])
def test_any_window_at_any_length(device, n_q, n_k, window, causal):
    """In value and gradient, also where some queries see nothing."""
    inputs = some(n_q, n_k, device=device)
    mask = window_mask(n_q, n_k, window, device=device)
    near = sliding_window_attention(*inputs, window=window, causal=causal)
    assert_same(near, attention(*inputs, mask=mask, causal=causal), inputs)


@pytest.mark.parametrize("causal", [False, True])
def test_token_by_token_with_a_cache_is_the_whole_at_once(causal):
    q, k, v = some(151, 151)
    whole = sliding_window_attention(q, k, v, window=70, causal=True)
    for n in (1, 69, 70, 71, 151):
        step = sliding_window_attention(
            q[:, n - 1 : n], k[:, :n], v[:, :n], window=70, causal=causal
        )
        assert_close(step, whole[:, n - 1 : n])


def test_a_window_of_one_returns_the_values():
    q, k, v = some(131, 131)
    assert_close(sliding_window_attention(q, k, v, window=1), v)


@pytest.mark.parametrize("causal", [False, True])
def test_what_lies_outside_changes_no_bit(causal):
    q, k, v = (x.detach() for x in some(197, 197))
    before = sliding_window_attention(q, k, v, window=7, causal=causal)
    k[:, 100], v[:, 100] = 30.0, 1e6
    after = sliding_window_attention(q, k, v, window=7, causal=causal)
    first, last = (100, 106) if causal else (94, 106)
    moved = (after != before).any(dim=-1).all(dim=0)
    assert moved.nonzero().flatten().tolist() == list(range(first, last + 1))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_derivatives_agree_with_finite_differences(causal):
    inputs = some(5, 7)

    def near(q, k, v):
        return sliding_window_attention(q, k, v, window=3, causal=causal)

    assert gradcheck(near, inputs)


def test_heads_that_broadcast():
    slow = partial(attention, mask=window_mask(70, 83, 11))
    assert_heads_broadcast(partial(sliding_window_attention, window=11), slow)


def test_no_queries_or_no_keys():
    assert_nothing_of_nothing(partial(sliding_window_attention, window=3))


def test_the_second_derivative_is_refused_not_wrong():
    assert_differentiated_once(partial(sliding_window_attention, window=3))


def test_autocast_changes_nothing():
    inputs = [x.detach().float().requires_grad_() for x in some(70, 70)]
    expected = sliding_window_attention(*inputs, window=9, causal=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        near = sliding_window_attention(*inputs, window=9, causal=True)
        assert_same(near, expected, inputs)


@pytest.mark.parametrize("window", [0, -3])
def test_a_window_without_its_own_query_is_refused(window):
    with pytest.raises(ValueError, match=f"at least 1, but window={window}"):
        sliding_window_attention(*some(7, 7), window=window)


@pytest.mark.parametrize("what", ["mask", "bias"])
def test_a_table_is_refused_with_the_reason(what):
    table = torch.ones(7, 7, dtype=torch.bool if what == "mask" else None)
    with pytest.raises(ValueError, match=f"cannot use a {what}: it makes no"):
        sliding_window_attention(*some(7, 7), window=3, **{what: table})


# What it costs


def passes(n, *, causal, d=8):
    """One call with its way back, a window of 32."""
    inputs = torch.randn(3, 1, 2, n, d).requires_grad_().unbind()
    g = torch.randn(1, 2, n, d)

    def run():
        output = sliding_window_attention(*inputs, window=32, causal=causal)
        return torch.autograd.grad(output, inputs, g)

    return run


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_work_and_memory_are_linear_in_n_backwards_too(causal):
    lengths = [256, 512, 1024, 2048, 4096]
    runs = [passes(n, causal=causal) for n in lengths]
    assert log_log_slope(lengths, [flops(run) for run in runs]) < 1.05
    assert log_log_slope(lengths, [peak_bytes(run) for run in runs]) < 1.02
    assert largest_bytes(runs[-1]) < 4096 * 4096


def test_each_block_meets_its_window_and_no_more():
    """64 queries and 64 + 32 keys, in seven products; the first sees 64."""
    n, d = 1024, 8
    keys = 96 * n // 64 - 32
    assert flops(passes(n, causal=True)) == 7 * 2 * 2 * 64 * keys * d
