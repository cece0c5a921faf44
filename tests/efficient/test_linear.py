"""Linear attention is its own quadratic form, and its recurrence."""

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
from torch import nn
from torch.autograd import gradcheck
from torch.testing import assert_close

from selfattn.cost import flops, largest_bytes, log_log_slope, peak_bytes
from selfattn.efficient.linear import (
    CHUNK,
    Memory,
    elu_plus_one,
    linear_attention,
    linear_attention_step,
    linear_weights,
)

ROUNDED = {"atol": 2**-8, "rtol": 0}  # one rounding of a number near 0.5
LENGTHS = [(1, 1), (1, 9), (7, 11), (13, 5), (CHUNK, CHUNK), (131, 131)]
LENGTHS += [(70, 197), (197, 70), (2, 300), (300, 2), (129, 128)]


def quadratic(q, k, v, *, causal=False, phi=lambda x: F.elu(x) + 1):
    """Its own table of weights, slow; test_contract.py derives it again."""
    return linear_weights(q, k, causal=causal, feature_map=phi) @ v


def some(n_q, n_k, axes=(2,)):
    """Queries, keys and values, every axis another prime if n is."""
    return tuple(
        torch.randn(*axes, n, d).double().requires_grad_()
        for n, d in ((n_q, 5), (n_k, 5), (n_k, 3))
    )


@pytest.mark.parametrize(("n_q", "n_k"), LENGTHS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "phi", [elu_plus_one, lambda x: F.elu(x) + 1, torch.exp, F.softplus]
)
def test_any_features_at_any_length(n_q, n_k, causal, phi):
    """In value and gradient, also where some queries see nothing."""
    inputs = some(n_q, n_k)
    output = linear_attention(*inputs, causal=causal, feature_map=phi)
    assert_same(output, quadratic(*inputs, causal=causal, phi=phi), inputs)


def test_the_weights_of_a_query_sum_to_one_or_it_sees_nothing():
    q, k, _ = some(9, 5)
    rows = linear_weights(q, k, causal=True).sum(dim=-1)
    assert_close(rows, (torch.arange(9) >= 4).double().expand(2, 9))
    assert linear_weights(q.half(), k.half()).dtype == torch.float32


@pytest.mark.parametrize("causal", [False, True])
def test_features_may_be_more_or_fewer_and_may_be_trained(causal):
    features = nn.Sequential(nn.Linear(5, 17), nn.Softplus()).double()
    inputs = some(131, 131)
    learned = (*inputs, *features.parameters())
    output = linear_attention(*inputs, causal=causal, feature_map=features)
    expected = quadratic(*inputs, causal=causal, phi=features)
    assert_same(output, expected, learned)


@pytest.mark.parametrize("phi", [elu_plus_one, F.softplus])
def test_step_by_step_is_the_whole_at_once(phi):
    """In value and gradient; and the memory stays as large as it was."""
    q, k, v = some(131, 131, axes=(2, 3))
    memory, outputs, sizes = None, [], set()
    for token in zip(*(x.unbind(dim=-2) for x in (q, k, v)), strict=True):
        output, memory = linear_attention_step(*token, memory, feature_map=phi)
        outputs.append(output)
        sizes.add((memory.pairs.shape, memory.total.shape))
    assert sizes == {((2, 3, 5, 3), (2, 3, 1, 5))}
    whole = linear_attention(q, k, v, causal=True, feature_map=phi)
    assert_same(torch.stack(outputs, dim=-2), whole, (q, k, v))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_memory_in_half_precision_goes_on_counting(dtype):
    """Half of 5,000 values are 1. In float16 the sum of features stalled at
    4,096, and the average came out as 1.
    """
    token = torch.zeros(1, dtype=dtype)
    memory, ones = None, torch.ones(1, dtype=dtype)
    for t in range(5000):
        v = ones if t % 2 else token
        output, memory = linear_attention_step(token, token, v, memory)
    assert output.dtype == dtype
    assert_close(output.double(), torch.tensor([0.5]).double(), **ROUNDED)


def test_a_step_leaves_the_memory_it_was_given_as_it_was():
    q, k, v = (x[:, 0].detach() for x in some(1, 1))
    _, memory = linear_attention_step(q, k, v)
    before = Memory(*(x.clone() for x in memory))
    again, _ = linear_attention_step(q, k, v, memory)
    once_more, _ = linear_attention_step(q, k, v, memory)
    assert torch.equal(again, once_more)
    assert all(map(torch.equal, memory, before))


def test_the_features_are_those_of_elu_and_stay_positive():
    x = torch.linspace(-8, 8, 1001).double().requires_grad_()
    assert_same(elu_plus_one(x), F.elu(x) + 1, [x])
    low = torch.tensor([-20.0, -60.0])
    assert not (F.elu(low) + 1).any()
    assert_close(elu_plus_one(low), low.exp())
    assert_close(elu_plus_one(torch.tensor([1e4])), torch.tensor([10001.0]))


def test_the_slope_at_zero_is_one():
    x = torch.zeros(3, requires_grad=True)
    [slope] = torch.autograd.grad(elu_plus_one(x).sum(), x)
    assert_close(slope, torch.ones(3))


@pytest.mark.parametrize("causal", [False, True])
def test_keys_that_are_all_far_below_zero_still_weigh(causal):
    """F.elu(x) + 1 is zero there, and zero by zero is NaN."""
    q, k, v = torch.randn(3, 131, 5)
    output = linear_attention(q, k - 25, v, causal=causal)
    expected = quadratic(
        q.double(), k.double() - 25, v.double(), causal=causal
    )
    assert_close(output.double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_no_weight_at_all_gives_zeros_and_finite_gradients(causal):
    q, k, v = some(70, 70)
    output = linear_attention(
        -q.abs(), k, v, causal=causal, feature_map=F.relu
    )
    assert not output.any()
    for grad in torch.autograd.grad(output.square().sum(), (q, k, v)):
        assert grad.isfinite().all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_derivatives_agree_with_finite_differences(causal, monkeypatch):
    monkeypatch.setattr("selfattn.efficient.linear.CHUNK", 2)

    def attend(q, k, v):
        return linear_attention(q, k, v, causal=causal)

    assert gradcheck(attend, some(5, 7))


def test_heads_that_broadcast():
    for causal in (False, True):
        near = partial(linear_attention, causal=causal)
        assert_heads_broadcast(near, partial(quadratic, causal=causal))


def test_no_queries_or_no_keys():
    for causal in (False, True):
        assert_nothing_of_nothing(partial(linear_attention, causal=causal))


def test_the_second_derivative_is_refused_not_wrong():
    assert_differentiated_once(linear_attention)


@pytest.mark.parametrize("phi", [elu_plus_one, F.softplus])
def test_autocast_rounds_no_sum(phi):
    inputs = [x.detach().float().requires_grad_() for x in some(131, 131)]
    options = {"causal": True, "feature_map": phi}
    expected = linear_attention(*inputs, **options)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = linear_attention(*inputs, **options)
        assert_same(output, expected, inputs)


@pytest.mark.parametrize("what", ["mask", "bias"])
def test_a_table_is_refused_with_the_reason(what):
    table = torch.ones(7, 7, dtype=torch.bool if what == "mask" else None)
    with pytest.raises(ValueError, match=f"cannot use a {what}: it sums up"):
        linear_attention(*some(7, 7), **{what: table})


# What it costs


def passes(n, *, causal, d=8):
    """One call with its way back."""
    inputs = torch.randn(3, 1, 2, n, d).requires_grad_().unbind()
    g = torch.randn(1, 2, n, d)

    def run():
        output = linear_attention(*inputs, causal=causal)
        return torch.autograd.grad(output, inputs, g)

    return run


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_work_and_memory_are_linear_in_n_backwards_too(causal):
    lengths = [256, 512, 1024, 2048, 4096]
    runs = [passes(n, causal=causal) for n in lengths]
    counted = [flops(run) for run in runs]
    assert log_log_slope(lengths, counted) == pytest.approx(1, abs=1e-6)
    assert log_log_slope(lengths, [peak_bytes(run) for run in runs]) < 1.02
    assert largest_bytes(runs[-1]) < 4096 * 4096


def test_causal_work_is_that_of_the_chunks_and_of_the_memory():
    n, d = 1024, 8
    run = passes(n, causal=True, d=d)
    with torch.no_grad():
        among = 2 * CHUNK * d  # both products within a chunk, a token each
        memory = 2 * d * d  # to write to it, and to read from it
        q, k, v = torch.randn(3, n, d)
        forward = flops(lambda: linear_attention(q, k, v, causal=True))
    assert forward == 2 * n * (among + memory)
    assert math.isclose(flops(run) / forward, 2 * 3.5, rel_tol=0.15)


@pytest.mark.parametrize(
    "x", ["text", 2.5, torch.eye(3).long(), torch.eye(3).cfloat()]
)
@pytest.mark.usefixtures("unchecked")
def test_features_of_what_is_no_number_are_refused_by_name(x):
    with pytest.raises((TypeError, ValueError), match=r"x must be a tensor"):
        elu_plus_one(x)


@pytest.mark.parametrize("attend", [linear_attention, linear_weights])
@pytest.mark.usefixtures("unchecked")
def test_features_that_cannot_be_made_are_refused_by_name(attend):
    x = [torch.randn(7, 5)] * (3 if attend is linear_attention else 2)
    with pytest.raises(TypeError, match="feature_map must be a function"):
        attend(*x, feature_map="elu")


@pytest.mark.parametrize(
    "odd",
    [
        *(lambda x: x.sum(-1), lambda x: None, lambda x: x > 0),
        *(lambda x: x[:2], lambda x: x.long(), lambda x: (x, x)),
    ],
)
def test_a_map_that_makes_no_features_is_named(odd):
    """It was trusted: half the tokens came out, or PyTorch's own words."""
    q, k, v = torch.randn(3, 4, 5)
    for call in (
        lambda: linear_attention(q, k, v, feature_map=odd),
        lambda: linear_weights(q, k, feature_map=odd),
        lambda: linear_attention_step(q, k, v, feature_map=odd),
    ):
        with pytest.raises((TypeError, ValueError), match="feature_map"):
            call()


@pytest.mark.parametrize("causal", [False, True])
def test_a_map_to_another_type_leaves_the_type_of_what_comes_out(causal):
    x = torch.randn(3, 4, 5).bfloat16()
    output = linear_attention(
        *x, causal=causal, feature_map=lambda x: x.float().exp()
    )
    assert output.dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_features_in_half_precision_are_rounded_once(dtype):
    """Of log₂e in bfloat16 the exponential was off by 4.6 per cent."""
    x = torch.linspace(-8, 2, 501).to(dtype)
    exact = F.elu(x.double()) + 1
    off = (elu_plus_one(x).double() / exact - 1).abs().max()
    assert off <= torch.finfo(dtype).eps


def test_a_memory_of_nothing_is_named():
    with pytest.raises(TypeError, match=r"memory.pairs must be a tensor"):
        linear_attention_step(*torch.randn(3, 4), Memory(None, None))


def test_elu_plus_one_can_give_all_its_weight_to_one_key():
    """The page said that this kernel cannot be sharp. On random queries and
    keys it is not, where softmax is; but long keys along the axes it tells
    apart as softmax does.
    """
    axes = 40 * torch.eye(8) - 20
    assert linear_weights(axes, axes).diagonal().min() > 0.999
    generator = torch.Generator().manual_seed(0)
    q, k = 4 * torch.randn(2, 64, 16, generator=generator)
    assert (q @ k.mT / 4).softmax(dim=-1).amax(dim=-1).mean() > 0.8
    assert linear_weights(q, k).amax(dim=-1).mean() < 0.1


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("call", [linear_attention, linear_weights])
def test_features_that_are_trained_do_not_feel_a_hidden_token(
    causal, poison, call
):
    """Their gradients were NaN, of a key that nobody sees whom the loss asks,
    or of another sequence.
    """
    torch.manual_seed(0)
    features = nn.Sequential(nn.Linear(5, 7), nn.Softplus(), nn.Dropout(0.5))
    grads = []
    for number in (0.5, poison):
        x = torch.randn(2, 9, 5, generator=torch.Generator().manual_seed(0))
        x[0, 8, 2] = number
        given = (x, x) if call is linear_weights else (x, x, x)
        torch.manual_seed(1)
        made = call(*given, causal=causal, feature_map=features)
        asked = made[:, :8, :8] if causal else made[1]
        total = asked.square().sum()
        grads.append(torch.autograd.grad(total, [*features.parameters()]))
    for found, wanted in zip(*grads, strict=True):
        assert_close(found, wanted)


def test_features_that_mix_tokens_are_as_they_were():
    """Of softmax over the tokens, a key of minus infinity is no key: zero in
    its place would be one.
    """
    scale = torch.ones((), requires_grad=True)
    q, k, v = torch.rand(3, 2, 9, 5)
    k[:, 4], v[1, 2, 0] = -math.inf, math.nan
    seen = torch.arange(9) != 4
    wanted = linear_attention(
        q, k[:, seen], v[:, seen], feature_map=partial(over_tokens, scale)
    )
    found = linear_attention(q, k, v, feature_map=partial(over_tokens, scale))
    assert_close(found, wanted, equal_nan=True)


def over_tokens(scale, x):
    return (scale * x).softmax(dim=-2)
