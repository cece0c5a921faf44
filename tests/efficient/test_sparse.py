"""Strided and fixed patterns: the definition with their masks, at n√n."""

import math
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
from selfattn.efficient.sparse import (
    fixed_attention,
    fixed_mask,
    strided_attention,
    strided_mask,
)
from selfattn.masks import causal_mask

LENGTHS = [(1, 1), (1, 9), (7, 11), (13, 5), (131, 131), (70, 197), (197, 70)]
LENGTHS += [(2, 300), (300, 2)]
PATTERNS = [
    (strided_attention, strided_mask),
    (fixed_attention, fixed_mask),
    (
        partial(fixed_attention, n_summaries=2),
        partial(fixed_mask, n_summaries=2),
    ),
]
each = pytest.mark.parametrize(
    ("attend", "mask_of"), PATTERNS, ids=["strided", "fixed", "fixed-2"]
)


def some(n_q, n_k, *, device="cpu"):
    """Queries, keys and values, every axis another prime if n is."""
    return tuple(
        torch.randn(2, n, d, device=device).double().requires_grad_()
        for n, d in ((n_q, 5), (n_k, 5), (n_k, 3))
    )


def by_hand(n_q, n_k, allowed):
    """A mask, asked of each pair by itself."""
    first = n_k - n_q
    return torch.tensor(
        [[allowed(i + first, j) for j in range(n_k)] for i in range(n_q)]
    )


@pytest.mark.parametrize(("n_q", "n_k"), [(17, 17), (7, 19), (19, 7)])
@pytest.mark.parametrize("stride", [2, 5])
def test_the_masks_are_those_of_the_paper(n_q, n_k, stride):
    """Its index sets, in words of one pair; causal, as it has them."""
    past = causal_mask(n_q, n_k)

    def strided(i, j):
        return j <= i and (j > i - stride or (i - j) % stride == 0)

    def fixed(i, j, c=2):
        own = math.floor(j / stride) == math.floor(i / stride)
        return j <= i and (own or j % stride in range(stride - c, stride))

    ours = strided_mask(n_q, n_k, stride) & past
    assert torch.equal(ours, by_hand(n_q, n_k, strided))
    ours = fixed_mask(n_q, n_k, stride, n_summaries=2) & past
    assert torch.equal(ours, by_hand(n_q, n_k, fixed))


@pytest.mark.parametrize("mask_of", [strided_mask, fixed_mask])
def test_two_steps_reach_all_of_the_past(mask_of):
    past = causal_mask(49, 49)
    seen = (mask_of(49, 49, 7) & past).float()
    assert torch.equal(seen @ seen > 0, past)


def test_pairs_grow_as_n_root_n():
    """1.44, 1.47, 1.48 for the strided: near 3/2, the triangles taken off."""
    for mask_of in (strided_mask, fixed_mask):
        ratios = []
        for n in (256, 1024, 4096):
            mask = mask_of(n, n, math.isqrt(n)) & causal_mask(n, n)
            ratios.append(mask.sum().item() / n**1.5)
        assert max(ratios) - min(ratios) < 0.05
        assert max(ratios) < 1.5


@each
@pytest.mark.parametrize(("n_q", "n_k"), LENGTHS)
@pytest.mark.parametrize("stride", [2, 5, 64, 1000])
@pytest.mark.parametrize("causal", [False, True])
def test_any_stride_at_any_length(
    device, attend, mask_of, n_q, n_k, stride, causal
):
    """In value and gradient, also where some queries see nothing."""
    inputs = some(n_q, n_k, device=device)
    mask = mask_of(n_q, n_k, stride, device=device)
    output = attend(*inputs, stride=stride, causal=causal)
    assert_same(output, attention(*inputs, mask=mask, causal=causal), inputs)


@pytest.mark.parametrize(("attend", "mask_of"), PATTERNS[:2])
@pytest.mark.parametrize("causal", [False, True])
def test_a_stride_of_one_sees_everything(attend, mask_of, causal):
    inputs = some(150, 150)
    output = attend(*inputs, stride=1, causal=causal)
    assert_same(output, attention(*inputs, causal=causal), inputs)


@each
def test_the_stride_is_the_root_of_the_length_if_none_is_given(
    attend, mask_of
):
    q, k, v = some(150, 150)
    mask = mask_of(150, 150, 12)
    assert_close(attend(q, k, v), attention(q, k, v, mask=mask))


@each
@pytest.mark.parametrize("causal", [False, True])
def test_what_the_mask_hides_changes_no_bit(attend, mask_of, causal):
    q, k, v = (x.detach() for x in some(197, 197))
    before = attend(q, k, v, stride=7, causal=causal)
    k[:, 100], v[:, 100] = 30.0, 1e6
    after = attend(q, k, v, stride=7, causal=causal)
    seen = mask_of(197, 197, 7)
    seen = seen & causal_mask(197, 197) if causal else seen
    assert torch.equal((after == before).all(-1).all(0), ~seen[:, 100])


@each
@pytest.mark.parametrize("causal", [False, True])
def test_scores_far_apart_overflow_nothing(attend, mask_of, causal):
    """A later piece with far larger scores, or far smaller ones."""
    q, k, v = some(131, 131)
    k = torch.cat([k[:, :50] * 1e4, k[:, 50:90], k[:, 90:] * 1e5], dim=1)
    k = k.detach().requires_grad_()
    mask = mask_of(131, 131, 11)
    output = attend(q, k, v, stride=11, causal=causal)
    expected = attention(q, k, v, mask=mask, causal=causal)
    assert_close(output, expected)
    for grad in torch.autograd.grad(output.sum(), (q, k, v)):
        assert grad.isfinite().all()


@each
@pytest.mark.usefixtures("unchecked")
def test_derivatives_agree_with_finite_differences(attend, mask_of):
    assert gradcheck(partial(attend, stride=3, causal=True), some(5, 7))


@each
def test_heads_that_broadcast(attend, mask_of):
    slow = partial(attention, mask=mask_of(70, 83, 11))
    assert_heads_broadcast(partial(attend, stride=11), slow)


@each
def test_no_queries_or_no_keys(attend, mask_of):
    assert_nothing_of_nothing(partial(attend, stride=3))


@each
def test_the_second_derivative_is_refused_not_wrong(attend, mask_of):
    assert_differentiated_once(attend)


@each
def test_autocast_changes_nothing(attend, mask_of):
    inputs = [x.detach().float().requires_grad_() for x in some(70, 70)]
    expected = attend(*inputs, stride=9, causal=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = attend(*inputs, stride=9, causal=True)
        assert_same(output, expected, inputs)


@pytest.mark.parametrize("stride", [0, -3])
def test_a_stride_of_nothing_is_refused(stride):
    for attend, mask_of in PATTERNS[:2]:
        with pytest.raises(
            ValueError, match=f"at least 1, but stride={stride}"
        ):
            attend(*some(7, 7), stride=stride)
        with pytest.raises(
            ValueError, match=f"at least 1, but stride={stride}"
        ):
            mask_of(7, 7, stride)


@pytest.mark.parametrize("n_summaries", [0, 4])
def test_summaries_that_a_block_cannot_hold_are_refused(n_summaries):
    for attempt in (
        lambda: fixed_attention(
            *some(7, 7), stride=3, n_summaries=n_summaries
        ),
        lambda: fixed_mask(7, 7, 3, n_summaries=n_summaries),
    ):
        with pytest.raises(ValueError, match=f"n_summaries={n_summaries} and"):
            attempt()


@each
@pytest.mark.parametrize("what", ["mask", "bias"])
def test_a_table_is_refused_with_the_reason(attend, mask_of, what):
    table = torch.ones(7, 7, dtype=torch.bool if what == "mask" else None)
    with pytest.raises(ValueError, match=f"cannot use a {what}: it makes no"):
        attend(*some(7, 7), **{what: table})


# What it costs


def passes(attend, n, *, causal, d=8):
    """One call with its way back, the stride being the root of n."""
    inputs = torch.randn(3, 1, n, d).requires_grad_().unbind()
    g = torch.randn(1, n, d)
    return lambda: torch.autograd.grad(
        attend(*inputs, causal=causal), inputs, g
    )


@pytest.mark.parametrize("attend", [strided_attention, fixed_attention])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_work_is_n_root_n_and_memory_linear_backwards_too(attend, causal):
    lengths = [4096, 6400]
    runs = [passes(attend, n, causal=causal) for n in lengths]
    # A twentieth: tiles reach a little beyond what the mask allows.
    slope = log_log_slope(lengths, [flops(run) for run in runs])
    assert slope == pytest.approx(1.5, abs=0.05)
    assert log_log_slope(lengths, [peak_bytes(run) for run in runs]) < 1.1
    assert largest_bytes(runs[-1]) < 6400 * 6400


def test_each_pair_is_met_once_and_few_besides():
    """Band and classes of a stride of 64, counted by hand, seven products."""
    n, d, stride = 4096, 8, 64
    band = 64 * (64 + 2 * 63) * n // 64 - 2 * 63 * 64
    classes = stride * (n // stride) ** 2
    counted = flops(passes(strided_attention, n, causal=False))
    assert counted == 7 * 2 * d * (band + classes)


@pytest.mark.parametrize("stride", [12, 10**6, 2**62])
@pytest.mark.parametrize("lengths", [(11, 11), (4, 11), (11, 4)])
@pytest.mark.parametrize("causal", [False, True])
def test_a_stride_past_all_tokens_is_one_that_reaches_them(
    stride, lengths, causal
):
    """Its time grew with the stride: of 2**63, without end."""
    n_q, n_k = lengths
    q, k, v = torch.randn(n_q, 5), torch.randn(n_k, 5), torch.randn(n_k, 3)
    seen = torch.arange(n_k - n_q, n_k)[:, None] >= 0
    for attend, mask_of, mask in (
        (strided_attention, strided_mask, torch.ones(n_q, n_k)),
        (fixed_attention, fixed_mask, seen.expand(n_q, n_k)),
    ):
        mask = mask.bool()
        assert torch.equal(mask_of(n_q, n_k, stride), mask)
        wanted = attention(q, k, v, mask=mask, causal=causal)
        assert_close(attend(q, k, v, stride=stride, causal=causal), wanted)


def test_summaries_past_all_tokens_are_seen_by_nobody():
    """And those that are not, by all."""
    wanted = torch.arange(11)[None, :] >= 7
    late = torch.arange(-3, 11)[:, None] >= 0
    for stride, n_summaries in ((15, 8), (10**6, 10**6 - 7)):
        mask = fixed_mask(14, 11, stride, n_summaries=n_summaries)
        assert torch.equal(mask, late | wanted)
        q, k, v = torch.randn(14, 5), torch.randn(11, 5), torch.randn(11, 3)
        options = {"stride": stride, "n_summaries": n_summaries}
        wanted_output = attention(q, k, v, mask=mask)
        assert_close(fixed_attention(q, k, v, **options), wanted_output)
