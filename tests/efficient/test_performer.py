"""Performer: unbiased, and better with more features; right at any scale."""

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
from selfattn.efficient.performer import (
    CHUNK,
    performer_attention,
    performer_weights,
)
from selfattn.random_features import log_features, random_directions

LENGTHS = [(1, 1), (1, 9), (7, 11), (13, 5), (CHUNK, CHUNK), (131, 131)]
LENGTHS += [(70, 197), (197, 70), (2, 300), (300, 2)]
M = 17  # features, where their number does not matter


def quadratic(q, k, v, *, causal=False, n_features=M, **options):
    """Its own table of weights, slow; test_contract.py derives it again."""
    options |= {"causal": causal, "n_features": n_features}
    return performer_weights(q, k, **options) @ v


def some(n_q, n_k, gain=1.0, *, device="cpu"):
    """Queries, keys and values, every axis another prime if n is."""
    q, k, v = (
        torch.randn(2, n, d, device=device).double()
        for n, d in ((n_q, 5), (n_k, 5), (n_k, 3))
    )
    return tuple(x.requires_grad_() for x in (q * gain, k * gain, v))


# What it computes


@pytest.mark.parametrize(("n_q", "n_k"), LENGTHS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("gain", [1.0, 6.0])
def test_it_is_its_own_quadratic_form(device, n_q, n_k, causal, gain):
    """In value and gradient, also where some queries see nothing."""
    inputs = some(n_q, n_k, gain, device=device)
    output = performer_attention(*inputs, causal=causal, n_features=M)
    assert_same(output, quadratic(*inputs, causal=causal), inputs)


def test_the_weights_of_a_query_sum_to_one_or_it_sees_nothing():
    q, k, _ = some(9, 5)
    rows = performer_weights(q, k, causal=True).sum(dim=-1)
    assert_close(rows, (torch.arange(9) >= 4).double().expand(2, 9))
    assert performer_weights(q.half(), k.half()).dtype == torch.float32


def weights_of(q, k, n_features, seed, orthogonal=True):
    """The estimates of exp(q·k/√d), not normalised."""
    d = q.shape[-1]
    omega = random_directions(n_features, d, seed=seed, orthogonal=orthogonal)
    of_q, of_k = (log_features(x / d**0.25, omega.to(x)) for x in (q, k))
    return of_q.exp() @ of_k.exp().mT / n_features


@pytest.mark.parametrize("orthogonal", [False, True])
def test_the_estimate_of_the_weights_is_unbiased(orthogonal):
    q, k = torch.randn(2, 5, 7).double() * 0.7
    drawn = torch.stack(
        [weights_of(q, k, 14, seed, orthogonal) for seed in range(1000)]
    )
    exact = (q @ k.mT / 7**0.5).exp()
    standard_error = drawn.std(dim=0) / 1000**0.5
    assert ((drawn.mean(dim=0) - exact).abs() < 4 * standard_error).all()


def relative_error(n_features, *, seeds=20, orthogonal=True, n=64, d=16):
    """Of the output, root mean square over draws."""
    generator = torch.Generator().manual_seed(1)
    q, k, v = torch.randn(3, n, d, generator=generator).double()
    q, k = q / 2, k / 2
    exact = attention(q, k, v)
    errors = [
        performer_attention(
            q, k, v, n_features=n_features, seed=seed, orthogonal=orthogonal
        )
        - exact
        for seed in range(seeds)
    ]
    return (torch.stack(errors).square().mean().sqrt() / exact.std()).item()


def test_the_error_falls_as_the_root_of_the_number_of_features():
    numbers = [16, 64, 256, 1024]
    errors = [relative_error(m) for m in numbers]
    # A tenth to each side of -1/2: 20 draws of each number.
    assert log_log_slope(numbers, errors) == pytest.approx(-0.5, abs=0.1)
    assert errors[-1] < 0.1


def test_orthogonal_directions_err_no_more_than_independent_ones():
    """By a sixth less, over a hundred draws of each."""
    for m in (16, 64):
        orthogonal, independent = (
            relative_error(m, seeds=100, n=16, orthogonal=o)
            for o in (True, False)
        )
        assert orthogonal < independent


def test_directions_are_orthogonal_in_blocks_and_as_long_as_normal_ones():
    omega = random_directions(14, 7, seed=3)
    blocks = omega.view(2, 7, 7)
    products = blocks @ blocks.mT
    off = products - torch.diag_embed(products.diagonal(dim1=-2, dim2=-1))
    assert off.abs().max() < 1e-4
    many = random_directions(7000, 7)
    # The squared length has mean 7 and variance 14; four standard errors.
    mean = many.square().sum(dim=-1).mean()
    assert abs(mean - 7) < 4 * math.sqrt(14 / 7000)
    lengths = many.square().sum(dim=-1).view(-1, 7)
    assert lengths.std(dim=-1).min() > 0.1  # and not all of a block alike


def test_directions_turn_every_way_alike():
    """Each number is as often positive as negative, its variance one."""
    omega = torch.stack([random_directions(5, 5, seed=s) for s in range(800)])
    error = 4 / math.sqrt(800)
    assert omega.mean(dim=0).abs().max() < error
    assert (omega.square().mean(dim=0) - 1).abs().max() < error * math.sqrt(2)


def test_a_seed_is_a_draw_and_leaves_the_global_generator_alone():
    inputs = some(7, 11)
    state = torch.get_rng_state()
    first = performer_attention(*inputs, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(performer_attention(*inputs, seed=1), first)
    assert not torch.equal(performer_attention(*inputs, seed=2), first)


# What other implementations get wrong


@pytest.mark.parametrize("scale", [1.0, 5.0, 30.0])
def test_the_future_changes_no_bit_however_long_its_keys(scale):
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 2, 256, 16)
    before = performer_attention(q, k, v, causal=True)
    k, v = k.clone(), v.clone()
    k[:, 150:], v[:, 150:] = torch.randn(2, 2, 106, 16) * scale
    after = performer_attention(q, k, v, causal=True)
    assert torch.equal(after[:, :150], before[:, :150])
    assert (after[:, 150:] != before[:, 150:]).any(dim=-1).all()


def test_at_unit_variance_it_is_no_plain_mean():
    """64 features a head, as long as they come: nearer than the mean is."""
    q, k, v = torch.randn(3, 1024, 64)
    q, k = q * 0.5, k * 0.5  # where the estimate is worth something
    exact, mean = attention(q, k, v), v.mean(dim=-2)
    estimate = performer_attention(q, k, v, n_features=4096)
    assert (estimate - exact).norm() < 0.75 * (mean - exact).norm()
    q, k = q * 2, k * 2  # and at unit variance, far off but no mean either
    estimate = performer_attention(q, k, v, n_features=266)
    own = quadratic(*(x.double() for x in (q[:9], k, v)), n_features=266)
    assert_close(estimate[:9].double(), own, rtol=1e-4, atol=1e-4)
    assert (estimate - mean).norm() > 0.5 * (exact - mean).norm()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "outliers", [slice(0, 1), slice(0, 40), slice(60, 99)]
)
def test_keys_of_any_length_keep_rows_that_sum_to_one(causal, outliers):
    """exp(-|k|²/2) of a long key is zero in float32, and of all, 0/0."""
    q, k, v = torch.randn(3, 2, 131, 16)
    k[:, outliers] *= 20
    ones = performer_attention(q, k, torch.ones_like(v), causal=causal)
    assert_close(ones, torch.ones_like(ones))
    output = performer_attention(q, k, v, causal=causal, n_features=M)
    exact = quadratic(*(x.double() for x in (q, k, v)), causal=causal)
    # Logarithms near 1600, of a keys' length of 80, have 4 digits of e left.
    assert_close(output.double(), exact, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("causal", [False, True])
def test_shifted_keys_overflow_nothing(causal):
    q, k, v = torch.randn(3, 2, 131, 16)
    for shift in (90.0, -12.0):
        ones = performer_attention(
            q, k + shift, torch.ones_like(v), causal=causal
        )
        assert_close(ones, torch.ones_like(ones))


@pytest.mark.parametrize("causal", [False, True])
def test_saturated_float32_has_finite_gradients(causal):
    inputs = [x.detach().float() for x in some(131, 131)]
    inputs[0] *= 300
    inputs = [x.requires_grad_() for x in inputs]
    output = performer_attention(*inputs, causal=causal)
    assert output.isfinite().all()
    for grad in torch.autograd.grad(output.square().sum(), inputs):
        assert grad.isfinite().all()


@pytest.mark.parametrize("what", ["mask", "bias"])
def test_a_table_is_refused_and_not_half_honoured(what):
    """Masked keys that stay in the denominator halve what comes out."""
    table = torch.ones(7, 7, dtype=torch.bool if what == "mask" else None)
    with pytest.raises(ValueError, match=f"cannot use a {what}: it sums up"):
        performer_attention(*some(7, 7), **{what: table})


# Otherwise like all


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_derivatives_agree_with_finite_differences(causal, monkeypatch):
    monkeypatch.setattr("selfattn.efficient.performer.CHUNK", 2)
    attend = partial(performer_attention, causal=causal, n_features=4)
    assert gradcheck(attend, some(5, 7))


def test_heads_that_broadcast():
    for causal in (False, True):
        near = partial(performer_attention, causal=causal, n_features=M)
        assert_heads_broadcast(near, partial(quadratic, causal=causal))


def test_no_queries_or_no_keys():
    for causal in (False, True):
        assert_nothing_of_nothing(partial(performer_attention, causal=causal))


def test_the_second_derivative_is_refused_not_wrong():
    assert_differentiated_once(performer_attention)


def test_autocast_rounds_no_sum():
    inputs = [x.detach().float().requires_grad_() for x in some(131, 131)]
    expected = performer_attention(*inputs, causal=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = performer_attention(*inputs, causal=True)
        assert_same(output, expected, inputs)


@pytest.mark.parametrize("n_features", [0, -2])
def test_no_features_are_refused(n_features):
    with pytest.raises(ValueError, match=f"n_features={n_features} and d=5"):
        performer_attention(*some(7, 7), n_features=n_features)


# What it costs


def passes(n, *, causal, d=8, m=32):
    """One call with its way back."""
    inputs = torch.randn(3, 1, 2, n, d).requires_grad_().unbind()
    g = torch.randn(1, 2, n, d)
    attend = partial(performer_attention, causal=causal, n_features=m)
    return lambda: torch.autograd.grad(attend(*inputs), inputs, g)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_work_and_memory_are_linear_in_n_backwards_too(causal):
    lengths = [256, 512, 1024, 2048]
    runs = [passes(n, causal=causal) for n in lengths]
    assert log_log_slope(lengths, [flops(run) for run in runs]) < 1.02
    assert log_log_slope(lengths, [peak_bytes(run) for run in runs]) < 1.02
    # Not even the features of all tokens.
    assert largest_bytes(runs[-1]) < 4 * 2 * 2048 * 32


@pytest.mark.parametrize("size", [1e20, -1e20, 1e30])
@pytest.mark.parametrize("causal", [False, True])
def test_keys_whose_squares_overflow_are_averaged_all_the_same(size, causal):
    """In float32 they weighed nothing, and the output was zero."""
    q, k, v = torch.ones(7, 5), torch.full((7, 5), size), torch.randn(7, 3)
    seen = torch.ones(7, 7).tril() if causal else torch.ones(7, 7)
    means = seen / seen.sum(dim=-1, keepdim=True)
    assert_close(performer_weights(q, k, causal=causal), means)
    assert_close(performer_attention(q, k, v, causal=causal), means @ v)


def test_a_sum_of_large_values_does_not_overflow():
    """A feature may be e²⁰, and 1e30 times that is no number."""
    q, k, v = torch.randn(3, 7, 5)
    large = performer_attention(q, k, v * 1e30) / 1e30
    assert_close(large, performer_attention(q, k, v))


def test_directions_are_the_same_for_all_that_vmap_maps():
    """`vmap` refused to draw them."""
    q, k = torch.randn(2, 3, 7, 5)
    assert_close(
        torch.func.vmap(performer_weights)(q, k), performer_weights(q, k)
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("attend_or_weigh", [True, False])
def test_only_who_sees_no_key_gets_zeros(causal, dtype, attend_or_weigh):
    """Long queries, whose features meet none of the keys', got zeros where
    the weights are not.
    """
    q, k, v = 20 * torch.randn(3, 50, 16, dtype=dtype)
    weights = performer_weights(q.double(), k.double(), causal=causal)
    if attend_or_weigh:
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]
        output = performer_attention(*inputs, causal=causal)
        assert output.dtype == dtype
        wanted = weights @ v.double()
        assert_close(output.double(), wanted, atol=1e-3, rtol=1e-3)
        for grad in torch.autograd.grad(output.sum(), inputs):
            assert grad.isfinite().all()
    else:
        sums = performer_weights(q, k, causal=causal).sum(-1)
        assert_close(sums, torch.ones_like(sums))


def test_values_of_zero_are_no_reason_to_compute_it_again(monkeypatch):
    q, k, v = torch.randn(3, 2, 3, 7, 5)
    wanted = performer_attention(q, k[..., :4, :], v[..., :4, :], causal=True)
    assert not wanted[..., :3, :].any()  # these see no key
    assert performer_attention(q, k, 0 * v).eq(0).all()
    assert performer_attention(q, k[..., :0, :], v[..., :0, :]).eq(0).all()


@pytest.mark.parametrize("size", [0.25, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("m", [64, 256, 1024])
@pytest.mark.parametrize("d", [8, 16, 32])
def test_long_keys_cost_more_than_long_queries(d, m, size):
    """No score moves, and query plus key is as long: it is not that length
    that the quotient of two estimates pays for.
    """
    draw = torch.Generator().manual_seed(d + m)
    q, k, v = size * torch.randn(3, 61, d, generator=draw)
    exact = attention(q, k, v)

    def error(r):
        given = (
            performer_attention(r * q, k / r, v, n_features=m, seed=seed)
            for seed in range(21)
        )
        return torch.stack([(one - exact).norm() for one in given]).median()

    assert error(0.5) > max(error(1.0), error(2.0))
