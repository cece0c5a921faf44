"""Longformer: the definition with its mask, at a linear cost."""

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
from selfattn.efficient.longformer import (
    BLOCK,
    longformer_attention,
    longformer_mask,
)
from selfattn.efficient.window import sliding_window_attention

LENGTHS = [(1, 1), (1, 9), (7, 11), (13, 5), (BLOCK, BLOCK), (131, 131)]
LENGTHS += [(70, 197), (197, 70), (2, 300), (300, 2)]


def some(n_q, n_k, *, device="cpu"):
    """Queries, keys and values, every axis another prime if n is."""
    return tuple(
        torch.randn(2, n, d, device=device).double().requires_grad_()
        for n, d in ((n_q, 5), (n_k, 5), (n_k, 3))
    )


@pytest.mark.parametrize(("n_q", "n_k"), [(13, 13), (5, 11), (11, 5)])
def test_the_mask_is_that_of_the_paper(n_q, n_k):
    mask = longformer_mask(n_q, n_k, 3, global_at=(4, 1))
    first = n_k - n_q
    for i in range(n_q):
        for j in range(n_k):
            near = abs(i + first - j) < 3
            assert mask[i, j] == (near or j in (1, 4) or i + first in (1, 4))


@pytest.mark.parametrize(("n_q", "n_k"), LENGTHS)
@pytest.mark.parametrize("window", [1, 5, 64, 150])
@pytest.mark.parametrize("where", [(), (0,), (4, 1), (130, 5, 64)])
@pytest.mark.parametrize("causal", [False, True])
def test_any_window_at_any_length(device, n_q, n_k, window, where, causal):
    """In value and gradient, also where some queries see nothing."""
    where = tuple(at for at in where if at < n_k)
    inputs = some(n_q, n_k, device=device)
    options = {"window": window, "global_at": where}
    mask = longformer_mask(n_q, n_k, device=device, **options)
    output = longformer_attention(*inputs, causal=causal, **options)
    assert_same(output, attention(*inputs, mask=mask, causal=causal), inputs)


@pytest.mark.parametrize("causal", [False, True])
def test_without_global_tokens_it_is_the_window(causal):
    inputs = some(131, 131)
    options = {"window": 7, "causal": causal}
    ours = longformer_attention(*inputs, global_at=(), **options)
    assert_same(ours, sliding_window_attention(*inputs, **options), inputs)


@pytest.mark.parametrize("causal", [False, True])
def test_all_tokens_global_is_the_definition(causal):
    inputs = some(67, 67)
    options = {"window": 1, "global_at": range(67), "causal": causal}
    ours = longformer_attention(*inputs, **options)
    assert_same(ours, attention(*inputs, causal=causal), inputs)


def test_a_global_token_moves_all_and_is_moved_by_all():
    q, k, v = (x.detach() for x in some(197, 197))
    attend = partial(longformer_attention, window=3, global_at=(0, 100))
    before = attend(q, k, v)
    for at, moved in ((100, range(197)), (50, [0, *range(48, 53), 100])):
        changed = v.clone()
        changed[:, at] += 1.0
        after = attend(q, k, changed)
        found = (after != before).any(dim=-1).all(dim=0).nonzero()
        assert found.flatten().tolist() == list(moved)


def test_token_by_token_with_a_cache_is_the_whole_at_once():
    q, k, v = some(151, 151)
    options = {"window": 70, "global_at": (0, 3), "causal": True}
    whole = longformer_attention(q, k, v, **options)
    for n in (4, 70, 71, 151):
        step = longformer_attention(
            q[:, n - 1 : n], k[:, :n], v[:, :n], **options
        )
        assert_close(step, whole[:, n - 1 : n])


@pytest.mark.usefixtures("unchecked")
def test_derivatives_agree_with_finite_differences():
    near = partial(longformer_attention, window=2, global_at=(1,))
    assert gradcheck(near, some(5, 7))


def test_heads_that_broadcast():
    slow = partial(attention, mask=longformer_mask(70, 83, 11))
    assert_heads_broadcast(partial(longformer_attention, window=11), slow)


def test_no_queries_or_no_keys():
    assert_nothing_of_nothing(partial(longformer_attention, window=3))


def test_the_second_derivative_is_refused_not_wrong():
    assert_differentiated_once(partial(longformer_attention, window=3))


def test_autocast_changes_nothing():
    inputs = [x.detach().float().requires_grad_() for x in some(70, 70)]
    attend = partial(longformer_attention, window=9)
    expected = attend(*inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(attend(*inputs), expected, inputs)


@pytest.mark.parametrize("window", [0, -3])
def test_a_window_without_its_own_query_is_refused(window):
    with pytest.raises(ValueError, match=f"at least 1, but window={window}"):
        longformer_attention(*some(7, 7), window=window)


@pytest.mark.parametrize("where", [(7,), (-1,), (2, 2)])
def test_a_global_token_must_be_there_and_once(where):
    for attempt in (
        lambda: longformer_attention(*some(7, 7), window=2, global_at=where),
        lambda: longformer_mask(7, 7, 2, global_at=where),
    ):
        with pytest.raises(ValueError, match="at a key of its own, but"):
            attempt()


@pytest.mark.parametrize("what", ["mask", "bias"])
def test_a_table_is_refused_with_the_reason(what):
    table = torch.ones(7, 7, dtype=torch.bool if what == "mask" else None)
    with pytest.raises(ValueError, match=f"cannot use a {what}: it makes no"):
        longformer_attention(*some(7, 7), window=3, **{what: table})


# What it costs


def passes(n, *, causal, d=8):
    """One call with its way back, a window of 32 and 2 global tokens."""
    inputs = torch.randn(3, 1, 2, n, d).requires_grad_().unbind()
    g = torch.randn(1, 2, n, d)
    attend = partial(longformer_attention, window=32, global_at=(0, 9))
    return lambda: torch.autograd.grad(
        attend(*inputs, causal=causal), inputs, g
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_work_and_memory_are_linear_in_n_backwards_too(causal):
    lengths = [256, 512, 1024, 2048]
    runs = [passes(n, causal=causal) for n in lengths]
    assert log_log_slope(lengths, [flops(run) for run in runs]) < 1.06
    assert log_log_slope(lengths, [peak_bytes(run) for run in runs]) < 1.02
    assert largest_bytes(runs[-1]) < 2048 * 2048


def test_each_block_meets_its_window_and_the_global_tokens_and_no_more():
    """64 queries and 64 + 2 * 31 + 2 keys, in seven products."""
    n, d = 1024, 8
    keys = (64 + 2 * 31 + 2) * n // 64 - 2 * 31
    everyone = 2 * (n + 2)  # for the two global queries
    counted = flops(passes(n, causal=False))
    assert counted == 7 * 2 * 2 * d * (64 * keys + everyone)


def test_which_tokens_are_global_is_known_without_their_numbers():
    """It looked for them in a tensor, which on meta holds nothing."""
    x = torch.zeros(2, 9, 5, device="meta", requires_grad=True)
    output = longformer_attention(x, x, x, window=2, global_at=(0, 4))
    assert output.shape == (2, 9, 5)
    assert torch.autograd.grad(output.sum(), x)[0].is_meta


@pytest.mark.parametrize("wrong", [[1.7], [0, 0.5], [True], [None], "01"])
def test_a_global_token_is_at_a_whole_number(unchecked, wrong):
    """1.7 was taken as 1, and 0 beside 0.5 as 0 twice."""
    with pytest.raises(TypeError, match="global_at must be a whole number"):
        longformer_mask(4, 4, 1, global_at=wrong)
    with pytest.raises(TypeError, match="global_at must be a whole number"):
        longformer_attention(*torch.randn(3, 4, 5), window=1, global_at=wrong)
