"""Reformer: the definition with the mask of its buckets; theory's buckets."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from mechanisms import (
    assert_differentiated_once,
    assert_heads_broadcast,
    assert_nothing_of_nothing,
)
from same import assert_same
from torch.autograd import gradcheck
from torch.testing import assert_close

from selfattn.buckets import ROWS
from selfattn.cost import flops, largest_bytes, log_log_slope, peak_bytes
from selfattn.dot_product import attention
from selfattn.efficient import reformer
from selfattn.efficient.reformer import (
    lsh_attention,
    lsh_buckets,
    lsh_mask,
)
from selfattn.masks import causal_mask

LENGTHS = [(1, 1), (1, 9), (7, 11), (131, 131), (70, 197), (197, 70), (2, 300)]


def some(n_q, n_k, *, device="cpu"):
    """Queries, keys and values, every axis another prime if n is."""
    return tuple(
        torch.randn(2, n, d, device=device).double().requires_grad_()
        for n, d in ((n_q, 5), (n_k, 5), (n_k, 3))
    )


def with_mask(q, k, v, *, causal=False, **options):
    """The definition, with the mask it publishes."""
    mask = lsh_mask(q, k, causal=causal, **options)
    return attention(q, k, v, mask=mask, causal=causal)


# The buckets


def test_the_default_type_decides_no_bucket():
    """A seed stands for the same directions in every script."""
    x = torch.randn(2, 41, 5)
    before = lsh_buckets(x, n_buckets=8)
    torch.set_default_dtype(torch.float64)
    try:
        after = lsh_buckets(x, n_buckets=8)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(after, before)


def test_what_fills_up_a_bucket_is_nobodys_token(monkeypatch):
    """Where nobody looks for NaN, as on a GPU: another text's finds no way.

    Short buckets were filled up with the last token of the batch, whose NaN
    came out in every row of every other text.
    """
    monkeypatch.setattr(reformer, "unfelt", lambda f, *x, **_: f(*x))
    x = torch.randn(2, 41, 5)
    spoilt = x.clone()
    spoilt[1, -1] = torch.nan
    found = lsh_attention(x, x, spoilt, n_buckets=4)
    assert found[0].isfinite().all()
    assert found[1].isnan().any()


@pytest.mark.parametrize("angle", [0.3, 1.0, math.pi / 2, 2.5])
def test_two_buckets_are_shared_as_theory_has_it(angle):
    """Probability 1 - θ/π, four standard errors of 20,000 rounds."""
    x = torch.zeros(2, 7).double()
    x[0, 0], x[1, 0], x[1, 1] = 1.0, math.cos(angle), math.sin(angle)
    a, b = lsh_buckets(x, n_buckets=2, n_rounds=20_000).unbind(dim=-1)
    p = 1 - angle / math.pi
    error = 4 * math.sqrt(p * (1 - p) / 20_000)
    assert (a == b).double().mean().item() == pytest.approx(p, abs=error)


def shared(angle, half):
    """The chance that two vectors share one of ``2 half`` buckets.

    Their products with one direction are two normal numbers x and y whose
    correlation is cos θ. They share its bucket, or the opposite one, if both
    are larger than the other directions' in size and alike in sign.
    """
    step, most = 0.02, 6.0
    at = torch.arange(step / 2, most, step, dtype=torch.float64)
    cos, sin = math.cos(angle), math.sin(angle)

    def density(x, y):
        square = (x * x - 2 * cos * x * y + y * y) / sin**2
        return (-square / 2).exp() / (2 * math.pi * sin)

    x, y = at[:, None], at[None, :]
    both = density(x, y)
    # The chance of |x'| < x and |y'| < y, for x and y in each cell's middle.
    square = 2 * (both + density(x, -y)) * step**2
    below = square.cumsum(0).cumsum(1) - square / 2
    return (2 * half * both * below ** (half - 1)).sum().item() * step**2


@pytest.mark.parametrize("n_buckets", [4, 16, 64])
@pytest.mark.parametrize("angle", [0.4, 1.0, 1.8])
def test_more_buckets_are_shared_as_theory_has_it(n_buckets, angle):
    x = torch.zeros(2, 7).double()
    x[0, 0], x[1, 0], x[1, 1] = 1.0, math.cos(angle), math.sin(angle)
    a, b = lsh_buckets(x, n_buckets=n_buckets, n_rounds=5_000).unbind(dim=-1)
    p = shared(angle, n_buckets // 2)
    # Four standard errors, and what the integral's steps leave out.
    error = 4 * math.sqrt(p * (1 - p) / 5_000) + 0.01
    assert (a == b).double().mean().item() == pytest.approx(p, abs=error)


def test_the_integral_of_theory_is_right_where_it_is_known():
    assert shared(1.0, 1) == pytest.approx(1 - 1 / math.pi, abs=1e-3)


def test_buckets_are_filled_alike_and_know_no_length():
    x = torch.randn(20_000, 16)
    buckets = lsh_buckets(x, n_buckets=8, n_rounds=1)[0]
    assert torch.equal(buckets, lsh_buckets(3 * x, n_buckets=8, n_rounds=1)[0])
    # Directions are not orthogonal, so buckets are not quite alike.
    share = buckets.bincount() / 20_000
    assert len(share) == 8
    assert (share - 1 / 8).abs().max() < 0.06


def test_opposite_vectors_are_in_opposite_buckets():
    x = torch.randn(100, 5)
    there = lsh_buckets(x, n_buckets=10)
    back = lsh_buckets(-x, n_buckets=10)
    assert torch.equal((there + 5) % 10, back)


def test_a_seed_is_a_draw_and_leaves_the_global_generator_alone():
    q, k, v = some(131, 131)
    state = torch.get_rng_state()
    first = lsh_attention(q, k, v, n_buckets=8, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(lsh_attention(q, k, v, n_buckets=8, seed=1), first)
    assert not torch.equal(lsh_attention(q, k, v, n_buckets=8, seed=2), first)


# The mask


def test_the_mask_is_any_round_s_bucket():
    q, k = torch.randn(7, 5), torch.randn(11, 5)
    of_q = lsh_buckets(q, n_buckets=6, n_rounds=3, seed=4)
    of_k = lsh_buckets(k, n_buckets=6, n_rounds=3, seed=4)
    mask = lsh_mask(q, k, n_buckets=6, n_rounds=3, seed=4)
    for i in range(7):
        for j in range(11):
            assert mask[i, j] == (of_q[:, i] == of_k[:, j]).any()


@pytest.mark.parametrize("causal", [False, True])
def test_a_token_sees_itself_only_if_it_sees_no_other(causal):
    x = torch.randn(40, 5)
    options = {"n_buckets": 32, "n_rounds": 1, "causal": causal}
    mask = lsh_mask(x, x, see_itself=False, **options)
    every = lsh_mask(x, x, **options)
    alone = every.sum(dim=-1) == 1
    assert alone.any() and not alone.all()
    assert torch.equal(mask.diagonal(), alone)
    off = ~torch.eye(40, dtype=torch.bool)
    assert torch.equal(mask & off, every & off)


# Attention


@pytest.mark.parametrize(("n_q", "n_k"), LENGTHS)
@pytest.mark.parametrize("n_buckets", [None, 2, 64])
@pytest.mark.parametrize("n_rounds", [1, 3])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("see_itself", [False, True])
def test_it_is_the_definition_with_its_mask(
    device, n_q, n_k, n_buckets, n_rounds, causal, see_itself
):
    """In value and gradient, also where some queries see nothing."""
    inputs = some(n_q, n_k, device=device)
    options = {"n_buckets": n_buckets, "n_rounds": n_rounds}
    options |= {"causal": causal, "see_itself": see_itself}
    output = lsh_attention(*inputs, **options)
    assert_same(output, with_mask(*inputs, **options), inputs)


@pytest.mark.parametrize("causal", [False, True])
def test_one_bucket_is_the_definition(causal):
    """Also when its queries are cut, for being too many."""
    inputs = some(2 * ROWS + 7, 300)
    output = lsh_attention(*inputs, n_buckets=1, causal=causal)
    assert_same(output, attention(*inputs, causal=causal), inputs)


def test_a_bucket_that_holds_nearly_all_is_cut_rightly():
    q, k, v = some(700, 700)
    q, k = (
        torch.cat([x[:, :9], x[:, 9:].abs() + 5], dim=1).detach()
        for x in (q, k)
    )
    inputs = q.requires_grad_(), k.requires_grad_(), v
    sizes = lsh_buckets(k, n_buckets=8, n_rounds=1)[0, 0].bincount()
    assert sizes.max() > 2 * ROWS
    options = {"n_buckets": 8, "causal": True}
    assert_same(
        lsh_attention(*inputs, **options),
        with_mask(*inputs, **options),
        inputs,
    )


def test_shared_queries_and_keys_are_reformer_s():
    """Token by token: who shares a bucket, itself last, counted once."""
    x, v = torch.randn(50, 5).double(), torch.randn(50, 3).double()
    options = {"n_buckets": 8, "n_rounds": 3, "seed": 5}
    buckets = lsh_buckets(x, **options)
    keys = F.normalize(x, dim=-1)
    output = lsh_attention(
        x, keys, v, causal=True, see_itself=False, **options
    )
    for i in range(50):
        found = (buckets[:, : i + 1] == buckets[:, i, None]).any(dim=0)
        found[i] = False
        found[i] = not found.any()
        scores = keys[: i + 1][found] @ x[i] / math.sqrt(5)
        assert_close(output[i], scores.softmax(dim=0) @ v[: i + 1][found])


def test_more_rounds_come_nearer_to_the_definition():
    q, k, v = torch.randn(3, 300, 8)
    exact = attention(q, k, v)
    errors = [
        (lsh_attention(q, k, v, n_buckets=8, n_rounds=r) - exact).norm()
        for r in (1, 4, 16, 64)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.05 * errors[0]


def test_the_future_does_not_decide_which_past_is_seen():
    """Elsewhere sorted tokens are cut into equal pieces, and it does."""
    x, v = torch.randn(2, 300, 8)
    options = {"n_buckets": 8, "causal": True, "see_itself": False}
    before = lsh_attention(x, F.normalize(x, dim=-1), v, **options)
    x, v = x.clone(), v.clone()
    x[200:], v[200:] = torch.randn(2, 100, 8)
    after = lsh_attention(x, F.normalize(x, dim=-1), v, **options)
    # Other groups may round otherwise, so nearly: to a few last digits.
    assert_close(after[:200], before[:200], rtol=1e-5, atol=1e-5)
    seen = [
        lsh_mask(y, y, **options)[:200, :200]
        for y in (x, torch.cat([x[:200]]))
    ]
    assert torch.equal(*seen)


def test_rows_sum_to_one():
    q, _, v = some(300, 300)
    ones = lsh_attention(q, q, torch.ones_like(v), n_buckets=16)
    assert_close(ones, torch.ones_like(ones))


def test_scores_far_apart_overflow_nothing():
    q, k, v = some(131, 131)
    k = (k * torch.logspace(0, 5, 131)[:, None]).detach().requires_grad_()
    output = lsh_attention(q, k, v, n_buckets=8)
    assert_close(output, with_mask(q, k, v, n_buckets=8))
    for grad in torch.autograd.grad(output.sum(), (q, k, v)):
        assert grad.isfinite().all()


@pytest.mark.parametrize("see_itself", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_derivatives_agree_with_finite_differences(see_itself):
    options = {"n_buckets": 2, "causal": True, "see_itself": see_itself}
    assert gradcheck(partial(lsh_attention, **options), some(7, 7))


def test_heads_that_broadcast():
    near = partial(lsh_attention, n_buckets=4)
    assert_heads_broadcast(near, partial(with_mask, n_buckets=4))


def test_no_queries_or_no_keys():
    assert_nothing_of_nothing(lsh_attention)


def test_the_second_derivative_is_refused_not_wrong():
    assert_differentiated_once(lsh_attention)


def test_autocast_changes_nothing():
    inputs = [x.detach().float().requires_grad_() for x in some(131, 131)]
    attend = partial(lsh_attention, n_buckets=4)
    expected = attend(*inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(attend(*inputs), expected, inputs)


@pytest.mark.parametrize(("n_buckets", "n_rounds"), [(3, 1), (0, 1), (2, 0)])
def test_no_such_buckets(n_buckets, n_rounds):
    told = f"n_rounds={n_rounds} and n_buckets={n_buckets}"
    options = {"n_buckets": n_buckets, "n_rounds": n_rounds}
    for attempt in (
        lambda: lsh_attention(*some(7, 7), **options),
        lambda: lsh_buckets(torch.randn(7, 5), **options),
    ):
        with pytest.raises(ValueError, match=told):
            attempt()


@pytest.mark.parametrize("what", ["mask", "bias"])
def test_a_table_is_refused_with_the_reason(what):
    table = torch.ones(7, 7, dtype=torch.bool if what == "mask" else None)
    with pytest.raises(ValueError, match=f"cannot use a {what}: it makes no"):
        lsh_attention(*some(7, 7), **{what: table})


# What it costs


def passes(n, *, causal, d=64):
    """One call with its way back; vectors of no particular direction."""
    x, v = torch.randn(2, n, d).requires_grad_().unbind()
    g = torch.randn(n, d)
    attend = partial(lsh_attention, n_rounds=2, causal=causal)
    return lambda: torch.autograd.grad(attend(x, x, v), (x, v), g)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_work_is_nearly_linear_and_memory_linear_backwards_too(causal):
    """Apart from the n/64 directions, half as many as there are buckets."""
    lengths = [1024, 2048, 4096]
    runs = [passes(n, causal=causal) for n in lengths]
    hashing = [2 * 2 * 2 * n * 64 * (n // 64) for n in lengths]
    rest = [flops(run) - h for run, h in zip(runs, hashing, strict=True)]
    # Random directions are the less alike the more there are.
    assert log_log_slope(lengths, rest) < 1.2
    assert log_log_slope(lengths, [peak_bytes(run) for run in runs]) < 1.1
    assert largest_bytes(runs[-1]) < 4096 * 4096


def test_each_query_meets_its_buckets_and_no_more_than_twice_as_many():
    x, v = torch.randn(2, 2048, 8)
    attend = partial(lsh_attention, n_buckets=32, n_rounds=1)
    seen = lsh_mask(x, x, n_buckets=32, n_rounds=1) & causal_mask(2048, 2048)
    pairs = 2 * seen.sum().item()  # causal saves no work here
    hashing = 2 * 2 * 2048 * 8 * 16
    counted = flops(lambda: attend(x, x, v, causal=True))
    assert 4 * pairs * 8 * 0.99 <= counted - hashing <= 2 * 4 * pairs * 8


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        *(("n_rounds", 2.5), ("n_rounds", math.inf), ("n_rounds", "3")),
        *(("n_buckets", 1j), ("n_buckets", ()), ("seed", 2.5)),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_no_number_of_rounds_is_refused_by_name(option, wrong):
    """Two and a half rounds of one bucket were one round."""
    x = torch.randn(9, 5)
    with pytest.raises(TypeError, match=rf"{option} must be a whole number"):
        lsh_attention(x, x, x, **{option: wrong})


def test_what_has_no_features_points_nowhere():
    x = torch.zeros(4, 0)
    with pytest.raises(ValueError, match=r"features, at least 1,.*\(4, 0\)"):
        lsh_buckets(x, n_buckets=2)


def test_without_numbers_nobody_shares_a_bucket():
    """PyTorch said that it cannot count on meta."""
    x = torch.zeros(9, 5, device="meta")
    with pytest.raises(ValueError, match="but q is on meta"):
        lsh_attention(x, x, x)


def test_a_seed_stands_for_one_draw_under_vmap_too():
    """`vmap` refused to draw, or would have drawn for each of them anew."""
    x = torch.randn(3, 40, 5)
    mask = partial(lsh_mask, n_buckets=4)
    assert torch.equal(torch.func.vmap(mask)(x, x), mask(x, x))


@pytest.mark.parametrize(
    ("dtype", "size"), [(torch.float64, -1e60), (torch.float32, -2e38)]
)
def test_scores_far_below_zero_are_shared_all_the_same(dtype, size):
    """They were taken for hidden, and the output was zero."""
    q = torch.ones(4, 1, dtype=dtype)
    k = torch.full((4, 1), size, dtype=dtype)
    v = torch.arange(4.0).to(dtype)[:, None]
    found = lsh_attention(q, k, v, n_buckets=1)
    assert_close(found, torch.full_like(v, 1.5))
