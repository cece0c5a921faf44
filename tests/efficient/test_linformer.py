"""Linformer: the definition on mixtures, and itself where nothing is mixed."""

import inspect
import math

import pytest
import torch
from same import assert_same
from torch import nn
from torch.testing import assert_close

from selfattn.cost import flops, largest_bytes, log_log_slope, peak_bytes
from selfattn.dot_product import attention
from selfattn.efficient.linformer import (
    LearnedProjection,
    LinformerAttention,
    MeanPooling,
    linformer_weights,
)
from selfattn.multihead import MultiHeadAttention


def some(n_q, n_k, *, device="cpu"):
    """Queries, keys and values, every axis another prime."""
    return tuple(
        torch.randn(2, 3, n, d, device=device).double().requires_grad_()
        for n, d in ((n_q, 5), (n_k, 5), (n_k, 7))
    )


@pytest.mark.parametrize(("n_q", "n_k"), [(1, 1), (11, 11), (7, 13), (13, 7)])
def test_the_identity_is_the_definition(device, n_q, n_k):
    """As a module, as weights, and as means of one token each."""
    inputs = some(n_q, n_k, device=device)
    learned = LearnedProjection(n_k, n_k).double().to(device)
    with torch.no_grad():
        learned.weight.copy_(torch.eye(n_k))
    for project in (nn.Identity(), learned, MeanPooling(n_k), MeanPooling(99)):
        output = LinformerAttention(project)(*inputs)
        assert_same(output, attention(*inputs), inputs)


@pytest.mark.parametrize("n_k", [1, 9, 13])
def test_learned_mixtures_are_attended_to_like_keys(device, n_k):
    """Equation 7, written with the weights; and they are trained."""
    q, k, v = some(7, n_k, device=device)
    of_keys = LearnedProjection(13, 5).double().to(device)
    of_values = LearnedProjection(13, 5).double().to(device)
    attend = LinformerAttention(of_keys, of_values)
    E, F = of_keys.weight, of_values.weight
    assert [*attend.parameters()] == [E, F]
    output = attend(q, k, v)
    expected = attention(q, E[:, :n_k] @ k, F[:, :n_k] @ v)
    assert_same(output, expected, (q, k, v, E, F))


def test_keys_and_values_may_share_their_weights():
    q, k, v = some(7, 13)
    shared = LearnedProjection(13, 5).double()
    attend = LinformerAttention(shared)
    assert [*attend.parameters()] == [shared.weight]
    expected = attention(q, shared.weight @ k, shared.weight @ v)
    assert_same(attend(q, k, v), expected, (q, k, v, shared.weight))


@pytest.mark.parametrize("n_k", [10, 13, 3])
def test_means_are_of_neighbours(n_k):
    q, k, v = some(7, n_k)
    m = min(5, n_k)
    # Mixture t reaches from the key at ⌊t n/m⌋ to the one before ⌈(t+1) n/m⌉.
    weights = torch.zeros(m, n_k).double()
    for t in range(m):
        start, stop = t * n_k // m, -((t + 1) * n_k // -m)
        weights[t, start:stop] = 1 / (stop - start)
    output = LinformerAttention(MeanPooling(5))(q, k, v)
    assert_same(output, attention(q, weights @ k, weights @ v), (q, k, v))


@pytest.mark.parametrize("n_k", [1, 4, 13])
def test_weights_on_the_tokens_make_the_output(device, n_k):
    q, k, v = some(7, n_k, device=device)
    for project in (
        LearnedProjection(13, 5).double().to(device),
        MeanPooling(5),
        nn.Identity(),
    ):
        weights = linformer_weights(q, k, project)
        assert weights.shape == (2, 3, 7, n_k)
        output = LinformerAttention(project)(q, k, v)
        assert_same(output, weights @ v, (q, k, v))


def test_a_projection_of_no_layers_is_one_all_the_same():
    """An empty Sequential counts as false, and the keys' was taken."""
    q, k, v = some(7, 5)
    last_first = LinformerAttention(lambda x: x.flip(-2), nn.Sequential())
    assert_close(last_first(q, k, v), attention(q, k.flip(-2), v))


def test_rows_sum_to_one_where_mixtures_do():
    q, k, v = some(7, 13)
    output = LinformerAttention(MeanPooling(5))(q, k, torch.ones_like(v))
    assert_close(output, torch.ones_like(output))


def test_random_mixtures_keep_dot_products_on_average():
    """Theorem 2's weights: the mean of (E k)·(E k') is k·k', per feature."""
    k = torch.randn(11, 2).double()
    products = []
    for _ in range(2000):
        mixed = LearnedProjection(11, 7).double()(k)
        products.append(mixed.mT @ mixed)
    found = torch.stack(products).detach()
    standard_error = found.std(dim=0) / 2000**0.5
    assert ((found.mean(dim=0) - k.mT @ k).abs() < 4 * standard_error).all()


def test_causal_is_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"cannot be causal: .* the future"):
        LinformerAttention(nn.Identity())(*some(7, 7), causal=True)


def test_a_layer_that_asks_for_the_past_alone_is_told_so():
    layer = MultiHeadAttention(6, 2, attend=LinformerAttention(MeanPooling(3)))
    x = torch.randn(2, 5, 6)
    assert layer(x).shape == x.shape
    with pytest.raises(ValueError, match="cannot be causal"):
        layer(x, causal=True)


@pytest.mark.parametrize("what", ["mask", "bias"])
def test_a_table_is_refused_and_not_swallowed(what):
    table = torch.ones(7, 7, dtype=torch.bool if what == "mask" else None)
    with pytest.raises(ValueError, match=f"cannot use a {what}: each key"):
        LinformerAttention(nn.Identity())(*some(7, 7), **{what: table})


def test_nothing_else_is_swallowed_either():
    kinds = inspect.signature(LinformerAttention.forward).parameters.values()
    assert all(p.kind is not p.VAR_KEYWORD for p in kinds)


def test_more_tokens_than_weights_are_refused():
    attend = LinformerAttention(LearnedProjection(5, 3).double())
    with pytest.raises(
        ValueError, match="there are 7 tokens and weights for 5"
    ):
        attend(*some(7, 7))


@pytest.mark.parametrize(
    "make", [lambda: MeanPooling(0), lambda: LearnedProjection(0, 3)]
)
def test_no_mixtures_or_no_tokens_are_refused(make):
    with pytest.raises(ValueError, match="at least 1 token and 1 mixture"):
        make()


def test_no_queries_or_no_keys():
    q, k, v = some(7, 11)
    for project in (MeanPooling(3), LearnedProjection(11, 3).double()):
        attend = LinformerAttention(project)
        assert attend(q[..., :0, :], k, v).shape == (2, 3, 0, 7)
        nothing = attend(q, k[..., :0, :], v[..., :0, :])
        assert torch.equal(nothing, torch.zeros(2, 3, 7, 7).double())


def test_half_precision_stays_near():
    """What each mixture sums up is rounded once, not once a token."""
    q, k, v = (x.detach().float() for x in some(7, 1009))
    attend = LinformerAttention(LearnedProjection(1009, 5))
    exact = attend.double()(q.double(), k.double(), v.double())
    half = attend.half()(q.half(), k.half(), v.half())
    # Ten times the rounding of inputs: scores of some tens are sums of 1009.
    assert (
        half.double() - exact
    ).abs().max() < 10 * 2**-11 * exact.abs().max()


# What it costs


def passes(n, *, d=8):
    """One call with its way back, 32 mixtures."""
    project = LearnedProjection(n, 32)
    inputs = torch.randn(3, 1, 2, n, d).requires_grad_().unbind()
    inputs = (*inputs, project.weight)
    g = torch.randn(1, 2, n, d)
    attend = LinformerAttention(project)
    return lambda: torch.autograd.grad(attend(*inputs[:3]), inputs, g)


@pytest.mark.usefixtures("unchecked")
def test_work_and_memory_are_linear_in_n_backwards_too():
    lengths = [256, 512, 1024, 2048, 4096]
    runs = [passes(n) for n in lengths]
    counted = [flops(run) for run in runs]
    assert log_log_slope(lengths, counted) == pytest.approx(1, abs=1e-6)
    assert log_log_slope(lengths, [peak_bytes(run) for run in runs]) < 1.02
    # The scores of a head would be 32 numbers a token, the weights' gradient
    # is: no head makes one of its own.
    assert largest_bytes(runs[-1]) == 4 * 32 * 4096


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_weights_of_halves_are_published_too(dtype):
    """Weights in float32 met mixtures in half precision."""
    q, k = torch.randn(2, 7, 5, dtype=dtype)
    found = linformer_weights(q, k, MeanPooling(3))
    expected = linformer_weights(q.double(), k.double(), MeanPooling(3))
    assert_close(found.double(), expected, atol=1e-3, rtol=1e-2)


@pytest.mark.parametrize("shape", [(0, 5), (7, 0), (2, 0, 5), (0, 7, 5)])
def test_means_of_nothing_are_nothing(shape):
    """PyTorch makes none, neither there nor on the way back."""
    x = torch.zeros(shape, requires_grad=True)
    means = MeanPooling(3)(x)
    assert means.shape == (*shape[:-2], min(3, shape[-2]), shape[-1])
    assert torch.autograd.grad(means.sum(), x)[0].shape == shape


def test_a_projection_that_is_shared_has_one_name():
    """Under two, `functional_call` did not put its parameter back."""
    project = LearnedProjection(9, 3)
    attend = LinformerAttention(project, project)
    assert [*attend.state_dict()] == ["project.weight"]
    attend = LinformerAttention(project)
    assert [*attend.state_dict()] == ["project.weight"]
    own, x = attend.project.weight, torch.randn(3, 5, 4)
    other = {"project.weight": torch.zeros(3, 9)}
    output = torch.func.functional_call(attend, other, tuple(x))
    assert_close(output, x[2].mean(0, keepdim=True).expand(5, 4) * 0)
    assert attend.project.weight is own
    assert LinformerAttention(nn.Identity(), nn.Identity()).project_values


@pytest.mark.parametrize("project", [LearnedProjection(9, 3), MeanPooling(3)])
def test_under_autocast_it_is_of_the_type_that_went_in(project):
    """The product came out in bfloat16, and was refused as a key."""
    q, k, v = torch.randn(3, 2, 5, 4)
    wanted = LinformerAttention(project)(q, k, v)
    with torch.autocast("cpu", torch.bfloat16):
        output = LinformerAttention(project)(q, k, v)
    assert output.dtype == torch.float32 or output.dtype == torch.bfloat16
    assert_close(output.float(), wanted, atol=0.05, rtol=0.05)


def test_its_weights_may_be_asked_for_under_autocast():
    """The mixtures of the keys were half precision, the queries were not, and
    both were refused together.
    """
    q, k = torch.randn(5, 4), torch.randn(11, 4)
    project = LearnedProjection(11, 3)
    wanted = linformer_weights(q, k, project)
    with torch.autocast("cpu", torch.bfloat16):
        found = linformer_weights(q, k, project)
    assert_close(found.float(), wanted, atol=0.05, rtol=0.05)
    with pytest.raises(ValueError, match="must have one type"):
        linformer_weights(q.double(), k, project)


@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("shared", [False, True])
def test_a_spoilt_sequence_leaves_the_weights_of_mixtures_sound(
    poison, shared
):
    """They were NaN: 0 times its token, though the loss asks for others."""
    one, other = (LearnedProjection(6, 3) for _ in "ab")
    attend = LinformerAttention(one, None if shared else other)
    inputs, grads = torch.randn(3, 2, 6, 4), []
    for number in (0.5, poison):
        inputs[1:, 0, 2, 1] = number
        total = attend(*inputs)[1].square().sum()
        grads.append(torch.autograd.grad(total, [*attend.parameters()]))
    for found, wanted in zip(*grads, strict=True):
        assert_close(found, wanted)


@pytest.mark.parametrize("name", ["project", "project_values"])
@pytest.mark.usefixtures("unchecked")
def test_a_class_is_no_projection(name):
    """It was taken, and called: ``m must be a whole number``."""
    wrong = {"project": nn.Identity(), name: MeanPooling}
    with pytest.raises(TypeError, match=rf"{name} must be a function or a"):
        LinformerAttention(**wrong)
    x = torch.randn(5, 3)
    with pytest.raises(TypeError, match="project must be a function or a"):
        linformer_weights(x, x, MeanPooling)
