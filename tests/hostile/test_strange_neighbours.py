"""What strangers found of what one sequence of a batch makes of another.

Nothing, by definition. But where something was spoilt or large, all sequences
were asked at once, and what was decided then was decided for all.
"""

import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from hostile.test_strange_infinities import ALL_SEE_ALL, BIASED, SUMS
from selfattn.efficient.flash import flash_attention_with_logsumexp
from selfattn.efficient.linear import linear_attention, linear_weights
from selfattn.efficient.performer import (
    performer_attention,
    performer_weights,
)
from selfattn.positions import ShawAttention, TransformerXLAttention
from selfattn.spoilt import projected


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


def overflowing(q, k, v):
    """A score that is a number in no type."""
    q[1] = k[2] = 1e30


def next_to_nan(q, k, v):
    """Of each a token."""
    q[0, 0] = k[1, 1] = v[3, 0] = math.nan


def next_to_infinity(q, k, v):
    """Of both signs."""
    q[1, 0], k[0, 1], k[2, 1], v[3, 0] = (
        math.inf,
        -math.inf,
        math.inf,
        math.inf,
    )


def next_to_the_largest(q, k, v):
    """Keys and values."""
    k[2], v[0], v[4] = 3e38, -3e38, 3e38


def plain(q, k, v):
    """As numbers come."""


def of_large_keys(q, k, v):
    """Short queries, whose scores are ordinary."""
    q *= 1e-20
    k *= 1e20


def of_a_key_without_weight(q, k, v):
    """Its scores are minus infinity."""
    q.abs_().add_(0.1)
    k.abs_().add_(0.1)
    k[2, 1] = -math.inf


def of_a_first_key_without_weight(q, k, v):
    """It is the only one that the first of causal queries sees."""
    q.abs_().add_(0.1)
    k[0, 0] = -math.inf


def of_faint_queries(q, k, v):
    """To which an infinite key weighs nothing, and a far one as any other."""
    q.abs_().mul_(1e-30)
    k[0, 0] = -math.inf


def of_a_query_that_overflows(q, k, v):
    """Of itself it has a score that is no number."""
    q[5] = k[5] = 1e30


def of_a_nan(q, k, v):
    """Which the last ones alone see, if causal."""
    k[4, 0] = math.nan


BESIDE = (overflowing, next_to_nan, next_to_infinity, next_to_the_largest)
STATES = (
    plain,
    of_large_keys,
    of_a_key_without_weight,
    of_a_first_key_without_weight,
    of_faint_queries,
    of_a_query_that_overflows,
    of_a_nan,
)
SHAPE = 2, 6, 4


def with_weights(weigh):
    """A mechanism whose output is its weights."""
    return lambda q, k, v, **options: weigh(q, k, **options)


def with_a_sum(q, k, v, **options):
    """Flash attention, and the sum that goes with it."""
    output, total = flash_attention_with_logsumexp(q, k, v, **options)
    return torch.cat([output, total[..., None]], dim=-1)


torch.manual_seed(0)
EVERY = {
    **ALL_SEE_ALL,
    **SUMS,
    "sum": with_a_sum,
    "linear weights": with_weights(linear_weights),
    "performer weights": with_weights(performer_weights),
    "shaw": ShawAttention(4, max_distance=2),
    "xl": TransformerXLAttention(2, 4),
}


def of_the_last(attend, beside, state, **options):
    """What the last sequence of a batch gets, and what it passes back."""
    torch.manual_seed(3)
    given = torch.randn(3, *SHAPE)
    beside(*given[:, 0])
    state(*given[:, 1])
    asked = torch.randn(*SHAPE[:2], 6)
    given = [x.requires_grad_() for x in given]
    output = attend(*given, **options)[1]
    asked = asked[1, :, : output.shape[-1]]
    back = torch.autograd.grad(output, given, asked, allow_unused=True)
    return output.detach(), *(x[1] for x in back if x is not None)


def assert_alike(found, wanted):
    """Each number, measured by the largest there is."""
    for one, other in zip(found, wanted, strict=True):
        numbers = other[other.isfinite()].abs()
        size = numbers.max().item() if numbers.numel() else 0.0
        assert_close(one, other, atol=1e-4 * size, rtol=1e-4, equal_nan=True)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("causal", [False, True])
def test_no_sequence_feels_another(name, state, causal):
    """It lost its gradients where scores overflowed in another, or a bias was
    NaN there; and got the value of a key that weighs nothing, where values
    were large in another.
    """
    if causal and name == "linformer":
        return
    attend = partial(EVERY[name], causal=causal)
    wanted = of_the_last(attend, plain, state)
    for beside in BESIDE:
        assert_alike(of_the_last(attend, beside, state), wanted)
    if name in BIASED:
        bias = torch.zeros(2, 6, 6)
        bias[0, 2, 1] = math.nan
        attend = partial(attend, bias=bias)
        assert_alike(of_the_last(attend, plain, state), wanted)


@pytest.mark.parametrize("name", ["flash", "fused", "window", "lsh", "linear"])
def test_it_gets_with_a_gradient_what_it_gets_without(name):
    """The far key that took an infinite one's place was handed out."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, *SHAPE)
    of_a_first_key_without_weight(q[1], k[1], v[1])
    v[0] *= 1e5
    attend = partial(ALL_SEE_ALL.get(name, linear_attention), causal=True)
    served = attend(q, k, v)[1]
    assert_close(attend(q.requires_grad_(), k, v)[1], served)


@pytest.mark.parametrize("name", sorted({*ALL_SEE_ALL} - {"linformer"}))
def test_who_overflows_beside_a_key_without_weight_passes_nothing_back(name):
    """Its row of the result without that key is that of a query of zeros."""
    torch.manual_seed(0)
    given = torch.randn(3, *SHAPE).unbind()
    of_a_key_without_weight(*(x[1] for x in given))
    given[0][1, 4] = given[1][1, 4] = 1e30
    given = [x.requires_grad_() for x in given]
    output = ALL_SEE_ALL[name](*given)[1, 4]
    assert output.isnan().all()
    assert not any(x.any() for x in torch.autograd.grad(output.sum(), given))


# Sums that the type is too narrow for


def far_apart(q, k):
    """Features so small that their products vanish in float32."""
    q -= 60
    k -= 60


def of_a_far_query(q, k):
    """One factor of them alone."""
    q -= 100


def of_huge_ones(q, k):
    """Their products overflow."""
    q += 1e19
    k += 1e19


NARROW = {
    "linear": linear_attention,
    "performer": partial(performer_attention, n_features=16),
    "linear weights": with_weights(linear_weights),
}


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("size", [far_apart, of_a_far_query, of_huge_ones])
@pytest.mark.parametrize("other", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_narrow_type_is_no_worse_beside_nan(
    name, size, other, causal, dtype
):
    """Sums were computed in float64 only if all that was given was finite:
    beside a NaN a sequence got zeros for its average.
    """
    if (name, size) == ("performer", of_huge_ones):
        return  # whose weights are none in any type
    torch.manual_seed(1)
    q, k, v = torch.randn(3, *SHAPE)
    size(q[1], k[1])
    q, k, v = (x.to(dtype) for x in (q, k, v))
    wanted, found = [], []
    for number, kept in ((1.0, wanted), (other, found)):
        k[0, 0, 0] = v[0, 0, 1] = number
        given = [x.clone().requires_grad_() for x in (q, k, v)]
        output = NARROW[name](*given, causal=causal)[1]
        back = torch.autograd.grad(
            output.square().sum(), given, allow_unused=True
        )
        kept += [output, *(x[1] for x in back if x is not None)]
    assert wanted[0].any() and wanted[0].isfinite().all()
    room = 1e-4 if dtype == torch.float32 else 1e-2
    assert_close(found, wanted, rtol=room, atol=room)


def test_small_values_keep_their_digits_beside_a_sum_that_overflows():
    """Made smaller with the others, they had none left in float32."""
    torch.manual_seed(0)
    q, k, v = torch.rand(3, *SHAPE)
    v[0] *= 1e-6
    wanted = linear_attention(q, k, v)[0]
    q[1], k[1], v[1] = 1e17 * q[1], 1e17 * k[1], 3e38 * v[1]
    output = linear_attention(q, k, v)
    assert output.isfinite().all()
    assert_close(output[0], wanted, atol=0, rtol=1e-5)


def test_small_features_keep_their_digits_beside_the_largest_numbers():
    """Values made smaller with another sequence's vanished, times features
    that are small.
    """
    torch.manual_seed(0)
    q, k, v = torch.randn(3, *SHAPE, dtype=torch.float64)
    q[0], k[0] = q[0] - 100, k[0] - 100
    wanted = linear_attention(q, k, v)[0]
    q[1, 0] = k[1, 0] = v[1, 0] = 1.7e308
    assert_close(linear_attention(q, k, v)[0], wanted)


def test_a_nan_alone_makes_nothing_large():
    """Beside one, another sequence was computed in float64."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, *SHAPE)
    wanted = performer_attention(q, k, v)[1]
    v[0, 0] = math.nan
    assert torch.equal(performer_attention(q, k, v)[1], wanted)


@pytest.mark.parametrize("causal", [False, True])
def test_a_number_that_overflows_is_found_beside_a_feature_of_nan(causal):
    """Of the same query's value, whose other features are numbers."""
    q, v = torch.full((2, 5, 3), 1e18), torch.ones(2, 5, 2)
    v[..., 1] = 3e38
    v[:, 2, 0] = math.nan
    output = linear_attention(q, q, v, causal=causal)
    assert_close(output[..., 1], v[..., 1])
    felt = torch.arange(5) >= 2 if causal else torch.ones(5).bool()
    assert torch.equal(output[..., 0].isnan(), felt.expand(2, 5))


@pytest.mark.parametrize("name", ["linear", "linear weights"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("of", ["keys", "queries"])
@pytest.mark.parametrize("other", [0.0, math.nan, -math.inf])
@pytest.mark.parametrize(
    "few", [(-100.0, -102.0), (-103.0, -104.0), (-87.0, -88.0)]
)
def test_a_feature_of_few_digits_is_felt_as_it_is(name, dtype, of, other, few):
    """Below -87, float32 has some or none; and one that is large makes the
    sum of weights something to divide by.
    """
    far = torch.tensor([[few], [few[::-1]]]).mT
    far = torch.cat([far.expand(2, 2, 2), torch.full((2, 1, 2), -99.0)], 1)
    near = torch.full((2, 1, 2), 1e14)
    near[..., 1] = 1e13
    far[1, 2], v = other, torch.randn(2, 3, 2)
    q, k = (near, far) if of == "keys" else (far, near)
    v = v[:, : k.shape[1]]
    given = [x.to(dtype).requires_grad_() for x in (q, k, v)]
    exact = [x.double().detach().requires_grad_() for x in given]
    wanted, found = (
        (output, *back_to(output[..., 0].sum(), x))
        for x in (exact, given)
        for output in [NARROW[name](*x)[0]]
    )
    room = 1e-5 if dtype == torch.float32 else 1e-2
    for x, y in zip(found, wanted, strict=True):
        size = y.abs().max() + 1e-300
        assert_close(x.double() / size, y / size, atol=room, rtol=room)


def garbage_that_overflows(bad, size, *of):
    """What is put behind a token that is none: numbers without a sum."""

    def put(q, k, v):
        k[0] = bad
        for x in of:
            {"q": q, "k": k, "v": v}[x][1:] = size

    return put


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("of", ["q", "k", "v", "qk", "kv", "qkv"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1.0])
@pytest.mark.parametrize(
    ("dtype", "size"),
    [(torch.float32, 3e38), (torch.bfloat16, 3e38), (torch.float64, 1.7e308)],
)
def test_a_nan_excuses_no_sum_that_overflows(name, of, bad, dtype, size):
    """Beside it nothing was taken to float64, where they have one: what came
    before passed nothing back, and another sequence passed back NaN, though
    nothing was asked of it.
    """
    for seed in range(2):
        torch.manual_seed(seed)
        q, k, v = torch.randn(3, 2, 8, 3).to(dtype)
        plain = [x.clone().requires_grad_() for x in (q, k, v)]
        put = garbage_that_overflows(bad, size, *of)
        put(*(x[0, 3:] for x in (q, k, v)))
        put(*(x[1] for x in (q, k, v)))
        given = [x.requires_grad_() for x in (q, k, v)]
        wanted, found = [], []
        for inputs, kept in ((plain, wanted), (given, found)):
            output = NARROW[name](*inputs, causal=True)[0, :3]
            total = output.square().sum()
            kept += [output, *back_to(total, inputs)]
        assert_close(found, wanted)


def back_to(total, inputs):
    """What comes back to those that it depends on."""
    back = torch.autograd.grad(total, inputs, allow_unused=True)
    return [x for x in back if x is not None]


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1.0])
@pytest.mark.parametrize(
    ("dtype", "size"),
    [(torch.float32, 3e38), (torch.bfloat16, 3e38), (torch.float64, 1.7e308)],
)
def test_who_is_asked_nothing_passes_nothing_back_whatever_it_sums_up(
    name, bad, dtype, size
):
    """Zero times a sum of keys that was infinite was NaN."""
    for seed in range(8):
        torch.manual_seed(seed)
        q, k, v = torch.randn(3, 2, 3, 1).to(dtype)
        garbage_that_overflows(bad, size, "k")(q[1], k[1], v[1])
        given = [x.requires_grad_() for x in (q, k, v)]
        for back in back_to(NARROW[name](*given)[0].sum(), given):
            assert back[1].eq(0).all()


def test_a_sum_that_overflows_is_no_zero_beside_a_nan():
    """The average of one feature was taken by an infinite sum of weights, as
    the other feature had NaN to show for it.
    """
    q, k, v = torch.zeros(1, 1), torch.full((10, 1), 1e38), torch.ones(10, 2)
    v[:, 1] *= 1e-3
    v[0, 0] = math.nan
    output = linear_attention(q, k, v)
    assert_close(output[:, 1], torch.tensor([1e-3]))


def test_values_of_zero_are_taught_where_keys_have_no_sum():
    """Their average is nothing in any type, but not their gradient."""
    q, k, v = torch.zeros(2, 1), torch.full((4, 1), 3e38), torch.zeros(4, 2)
    given = [x.requires_grad_() for x in (q, k, v)]
    output = linear_attention(*given).sum()
    for x, wanted in zip(
        torch.autograd.grad(output, given), (0.0, 0.0, 0.5), strict=True
    ):
        assert_close(x, torch.full_like(x, wanted))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("features", [1, 8, 16, 64])
@pytest.mark.parametrize("stretch", [1.0, 1e6, 1e100])
@pytest.mark.parametrize("poison", [1.0, math.nan])
def test_a_sum_of_features_averages_the_largest_values(
    causal, features, stretch, poison
):
    """In float64, weights that are more than 1 made it infinite; and what
    nobody asked for was passed back as NaN.
    """
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 7, features, dtype=torch.float64)
    q[1], k[1] = q[1] * stretch, k[1] * stretch
    v[1, ::2] = 1.797e308
    k[0, 0, 0] = poison
    small = [q[1].clone(), k[1].clone(), v[1] * 2.0**-1000]
    small = [x.requires_grad_() for x in small]
    wanted = linear_attention(*small, causal=causal)
    given = [x.requires_grad_() for x in (q, k, v)]
    output = linear_attention(*given, causal=causal)
    assert_close(output[1] * 2.0**-1000, wanted)
    asked = torch.full_like(wanted, 2.0**-1000)
    asked[:, 0] = 0
    expected = torch.autograd.grad(wanted, small, asked * 2.0**1000)
    asked = torch.stack([torch.zeros_like(asked), asked])
    found = torch.autograd.grad(output, given, asked)
    assert_close([x[1] for x in found[:2]], [*expected[:2]])
    assert_close(found[2][1] * 2.0**1000, expected[2])
    assert not any(x[0].any() for x in found)


@pytest.mark.parametrize("causal", [False, True])
def test_a_query_without_a_number_passes_nothing_back(causal):
    """Zero was asked of it; but its average was infinite, and zero times
    that is NaN, to all keys.
    """
    q, k, v = torch.ones(3, 5, 3, dtype=torch.float64)
    k[2:] = 1.7e308  # of which even a query of zeros has no sum
    given = [x.requires_grad_() for x in (q, k, v)]
    output = linear_attention(*given, causal=causal)
    asked = (torch.arange(5) < 2).double()[:, None].expand(5, 3)
    for back in torch.autograd.grad(output, given, asked):
        assert back.isfinite().all()
    if causal:
        assert_close(output[:2], v[:2])


def test_numbers_whose_sum_is_none_call_a_layer_once():
    """They were taken for spoilt: its hooks ran twice."""
    layer, calls = torch.nn.Sequential(torch.nn.Linear(3, 3)), []
    layer.register_forward_pre_hook(lambda *_: calls.append(None))
    projected(layer, torch.full((2, 3), 1e38))
    assert len(calls) == 1
