"""Tiles, whatever their size, add up to the definition; backwards as well."""

import math

import pytest
import torch
from same import assert_same
from torch.autograd import gradcheck
from torch.testing import assert_close

from selfattn.cost import flops, largest_bytes, log_log_slope, peak_bytes
from selfattn.dot_product import attention, attention_steps, fused_attention
from selfattn.efficient.flash import (
    Inputs,
    flash_attention,
    flash_attention_with_logsumexp,
)
from selfattn.masks import causal_mask, padding_mask
from selfattn.tiles import hide_future

TILES = [(1, 1), (3, 2), (2, 5), (7, 11), (4, 512), (512, 4), (512, 512)]
TABLES = [  # every way to broadcast to (2, 3, 7, 11)
    (),
    (1,),
    (11,),
    (7, 1),
    (1, 11),
    (7, 11),
    (3, 1, 1),
    (3, 7, 11),
    (2, 1, 1, 11),
    (2, 1, 7, 1),
    (2, 3, 7, 11),
]


@pytest.mark.parametrize("n_q", [1, 63, 64, 65, 130])
@pytest.mark.parametrize("n_k", [1, 64, 129])
def test_the_future_is_hidden_wherever_the_tile_lies(n_q, n_k):
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    scores = torch.randn(2, n_q, n_k)
    for here in range(-n_q - 2, n_k + 2):
        later = j > i + here
        given = scores.masked_fill(later, math.nan)
        hide_future(given, here)
        assert torch.equal(given, scores.masked_fill(later, -math.inf))


@pytest.mark.parametrize(("block_q", "block_k"), TILES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n_q", [1, 7, 11, 13])
def test_any_tile_gives_the_definition(qkv, block_q, block_k, causal, n_q):
    _, k, v = qkv
    q = torch.randn(2, 3, n_q, 5).to(k).requires_grad_()
    tiled = flash_attention(
        q, k, v, causal=causal, block_q=block_q, block_k=block_k
    )
    assert_same(tiled, attention(q, k, v, causal=causal), (q, k, v))


@pytest.mark.parametrize("shape", TABLES)
@pytest.mark.parametrize("block", [3, 512])
@pytest.mark.parametrize("causal", [False, True])
def test_masks_and_biases_of_any_shape(qkv, shape, block, causal):
    device = qkv[0].device
    mask = torch.rand(shape, device=device) < 0.7
    bias = torch.randn(shape, device=device).double().requires_grad_()
    options = {"mask": mask, "bias": bias, "causal": causal}
    tiled = flash_attention(*qkv, **options, block_q=block, block_k=block)
    assert_same(tiled, attention(*qkv, **options), (*qkv, bias))


@pytest.mark.parametrize("block", [3, 512])
def test_heads_that_broadcast(block):
    q = torch.randn(2, 1, 7, 5).double().requires_grad_()
    k = torch.randn(3, 11, 5).double().requires_grad_()
    v = torch.randn(1, 1, 11, 13).double().requires_grad_()
    tiled = flash_attention(q, k, v, block_q=block, block_k=block)
    assert_same(tiled, attention(q, k, v), (q, k, v))


@pytest.mark.parametrize("block", [2, 512])
@pytest.mark.usefixtures("unchecked")
def test_derivatives_agree_with_finite_differences(block):
    q, k, v = (
        torch.randn(2, n, d).double().requires_grad_()
        for n, d in ((3, 2), (5, 2), (5, 3))
    )
    bias = torch.randn(3, 5).double().requires_grad_()
    mask = torch.rand(3, 5) < 0.7

    def both(q, k, v, bias):
        return flash_attention_with_logsumexp(
            q, k, v, mask=mask, bias=bias, block_q=block, block_k=block
        )

    assert mask.any(dim=-1).all()
    assert gradcheck(both, (q, k, v, bias))


def test_the_second_derivative_is_refused_not_wrong(qkv):
    """Even where PyTorch's `once_differentiable` would answer zero."""
    [slope] = torch.autograd.grad(
        attention(*qkv).sum(), qkv[0], create_graph=True
    )
    assert torch.autograd.grad(slope.square().sum(), qkv[1])[0].any()
    with pytest.raises(
        RuntimeError, match="flash_attention can be differentiated once"
    ):
        torch.autograd.grad(
            flash_attention(*qkv).sum(), qkv[0], create_graph=True
        )


@pytest.mark.parametrize("block", [3, 512])
def test_the_logarithm_is_that_of_the_softmax(qkv, block):
    mask = padding_mask(torch.tensor([11, 0], device=qkv[0].device), 11)
    output, total = flash_attention_with_logsumexp(
        *qkv, mask=mask, block_q=block, block_k=block
    )
    scaled = attention_steps(*qkv).scaled
    expected = scaled.masked_fill(~mask, -math.inf).logsumexp(dim=-1)
    assert_close(total, expected)
    assert (total[1] == -math.inf).all()
    assert_close(output, attention(*qkv, mask=mask))


def test_attentions_over_different_keys_can_be_joined(qkv):
    """In value and in gradient, through the logarithms as well."""
    q, k, v = qkv
    parts = [
        flash_attention_with_logsumexp(q, k[..., keys, :], v[..., keys, :])
        for keys in (slice(0, 4), slice(4, 11))
    ]
    outputs, totals = zip(*parts, strict=True)
    shares = torch.stack(totals).softmax(dim=0)[..., None]
    joined = (shares * torch.stack(outputs)).sum(dim=0)
    assert_same(joined, attention(q, k, v), qkv)


@pytest.mark.parametrize("infinite", ["mask", "bias"])
@pytest.mark.parametrize("block", [2, 3, 512])
def test_empty_rows_give_zeros_and_finite_gradients(qkv, infinite, block):
    keep = torch.rand(7, 11, device=qkv[0].device) < 0.5
    keep[[0, 4]] = False
    keep[1, :6] = False  # empty in the first tiles only
    keep[1, 6] = True
    hidden = torch.zeros(7, 11).to(qkv[0]).masked_fill(~keep, -math.inf)
    table = {"mask": keep} if infinite == "mask" else {"bias": hidden}
    tiled = flash_attention(*qkv, **table, block_q=block, block_k=block)
    assert not tiled[..., [0, 4], :].any()
    assert_same(tiled, attention(*qkv, mask=keep), qkv)


def test_a_bias_far_below_all_others_is_not_taken_for_an_empty_row(qkv):
    bias = torch.full((7, 11), -1e30).to(qkv[0])
    tiled = flash_attention(*qkv, bias=bias, block_k=3)
    assert_close(tiled, attention(*qkv, bias=bias))


def test_the_lowest_bias_there_is_is_still_a_number(qkv):
    """Libraries hide keys with it; a row of nothing else is their mean."""
    q, k, v = qkv
    bias = torch.zeros(7, 11, dtype=q.dtype)
    bias[1], bias[2, 3:] = torch.finfo(q.dtype).min, torch.finfo(q.dtype).min
    expected = attention(q, k, v, bias=bias)
    assert expected[..., 1, :].abs().min() > 0
    assert_close(flash_attention(q, k, v, bias=bias, block_k=4), expected)


@pytest.mark.parametrize("gain", [1.0, 30.0])
def test_in_float32_it_errs_no_more_than_twice_the_fused_kernel(device, gain):
    """In value and gradient; a gain of 30 makes rows of one weight each."""
    q, k, v = torch.randn(3, 1, 2, 1031, 64, device=device)
    given = [(gain * q), k, v]
    g = torch.randn(1, 2, 1031, 64, device=device)

    def all_of(attend, dtype):
        inputs = [x.to(dtype).requires_grad_() for x in given]
        output = attend(*inputs, causal=True)
        return [output, *torch.autograd.grad(output, inputs, g.to(dtype))]

    exact = all_of(attention, torch.float64)
    for ours, theirs, truth in zip(
        all_of(flash_attention, torch.float32),
        all_of(fused_attention, torch.float32),
        exact,
        strict=True,
    ):
        error = (ours - truth).abs().max()
        assert error <= 2 * (theirs - truth).abs().max()


def test_all_heads_at_once_compute_the_same(qkv, monkeypatch):
    """As on a GPU, where many small products would leave it idle."""
    bias = torch.randn(3, 7, 11).to(qkv[0]).requires_grad_()
    mask = torch.rand(2, 1, 7, 11, device=qkv[0].device) < 0.8
    options = {"bias": bias, "mask": mask, "block_q": 3, "block_k": 4}
    monkeypatch.setattr(Inputs, "heads", lambda self, block_q: [...])
    together = flash_attention(*qkv, **options)
    expected = attention(*qkv, bias=bias, mask=mask)
    assert_same(together, expected, (*qkv, bias))


def test_small_heads_go_together_and_large_ones_one_by_one():
    q, k, v = torch.randn(3, 2, 3, 7, 5)
    inputs = Inputs(q, k, v, None, None, False, 20)
    assert inputs.heads(20) == [...]
    one_by_one = [(i, j) for i in range(2) for j in range(3)]
    assert list(inputs.heads(14)) == one_by_one


def test_autocast_changes_nothing(qkv):
    inputs = [x.detach().float().requires_grad_() for x in qkv]
    expected = flash_attention(*inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = flash_attention(*inputs)
        assert_same(output, expected, inputs)


@pytest.mark.parametrize(("block_q", "block_k"), [(0, 3), (3, 0), (-1, 5)])
def test_an_empty_tile_is_refused(qkv, block_q, block_k):
    with pytest.raises(ValueError, match=r"at least one query and one key"):
        flash_attention(*qkv, block_q=block_q, block_k=block_k)


def test_no_queries_or_no_keys(qkv):
    q, k, v = qkv
    assert flash_attention(q[..., :0, :], k, v).shape == (2, 3, 0, 13)
    nothing = flash_attention(q, k[..., :0, :], v[..., :0, :])
    assert torch.equal(nothing, torch.zeros(2, 3, 7, 13).to(q))


# What it costs


def passes(attend, n, d=16, **options):
    """One call with its way back."""
    q, k, v = torch.randn(3, 1, 2, n, d).requires_grad_().unbind()
    g = torch.randn(1, 2, n, d)
    return lambda: torch.autograd.grad(
        attend(q, k, v, **options), (q, k, v), g
    )


def test_memory_is_linear_in_n_backwards_too():
    lengths = [128, 256, 512, 1024, 2048]
    tile = {"block_q": 256, "block_k": 256}
    held = [peak_bytes(passes(flash_attention, n, **tile)) for n in lengths]
    assert log_log_slope(lengths, held) < 1.02
    # Once the tile has its size, every token costs the same, to the byte.
    assert held[4] - held[3] == 2 * (held[3] - held[2])
    dense = [peak_bytes(passes(attention, n)) for n in lengths]
    assert log_log_slope(lengths, dense) > 1.7


def test_training_needs_less_memory_than_the_fused_kernel_plus_a_tenth():
    """Output, log-sum-exp and three gradients, and two tiles of one head."""
    n, d, tile = 2048, 16, 128
    options = {"block_q": tile, "block_k": tile}
    held = peak_bytes(passes(flash_attention, n, d, **options))
    least = 4 * 2 * n * (4 * d + 1)
    assert least < held < 1.1 * least + 2 * 4 * tile * tile


def test_a_trained_bias_costs_its_own_gradient_and_no_square():
    q, k, v = torch.randn(3, 1, 2, 1024, 16).unbind()
    bias = torch.randn(1, 1024, requires_grad=True)  # of each key

    def run():
        output = flash_attention(q, k, v, bias=bias, block_q=128, block_k=128)
        return torch.autograd.grad(output.sum(), bias)

    assert largest_bytes(run) < 1024 * 1024


def test_work_is_counted_in_full_and_causally_a_little_over_half():
    """Two products forwards, five backwards; tiles of the future are left."""
    n, d = 2048, 16
    product = 2 * 2 * n * n * d  # of two heads
    tile = {"block_q": 128, "block_k": 128}
    assert flops(passes(flash_attention, n, d, **tile)) == 7 * product
    causal = flops(passes(flash_attention, n, d, causal=True, **tile))
    tiles = n // 128
    assert causal == 7 * product * (tiles + 1) // (2 * tiles)


def test_a_causal_tile_is_never_larger_than_what_may_be_seen():
    """With a cache: five new queries at the end of a thousand keys."""
    q, k, v = torch.randn(5, 16), *torch.randn(2, 1000, 16)
    expected = attention(q, k, v, mask=causal_mask(5, 1000))
    assert_close(flash_attention(q, k, v, causal=True), expected)
    assert flops(lambda: flash_attention(q, k, v, causal=True)) == (
        2 * 2 * 5 * 1000 * 16
    )


def test_the_largest_bias_is_a_number():
    """log₂e times it is infinite."""
    most = torch.finfo(torch.float32).max
    x = torch.eye(2)
    for bias in ([most, 0.0], [-most, 0.0], [-most, -most], [most, most]):
        found = flash_attention(x, x, x, bias=torch.tensor(bias))
        assert_close(found, attention(x, x, x, bias=torch.tensor(bias)))
