"""What strangers found of a step, of autocast, and of callers' functions."""

import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.blocks import EncoderBlock
from selfattn.efficient.linear import (
    linear_attention,
    linear_attention_step,
    linear_weights,
)
from selfattn.efficient.linformer import (
    LinformerAttention,
    MeanPooling,
    linformer_weights,
)
from selfattn.efficient.performer import performer_weights
from selfattn.layers import AddNorm
from selfattn.models import Encoder
from selfattn.random_features import log_features

HALVES = [torch.float16, torch.bfloat16]


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


def in_steps(q, k, v, **options):
    """The outputs of all tokens, one after the other."""
    memory, outputs = None, []
    for token in zip(q, k, v, strict=True):
        output, memory = linear_attention_step(*token, memory, **options)
        outputs.append(output)
    return torch.stack(outputs)


# One token, one step


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("number", [-86.0, -60.0, -40.0, 1e19, 1e37])
def test_steps_find_what_is_too_small_or_too_large_for_float32(number, dtype):
    """All at once did: a step gave 0, or NaN."""
    token = torch.full((3, 4), number, dtype=dtype)
    v = torch.tensor([[1.0], [2.0], [3.0]], dtype=dtype)
    wanted = torch.tensor([[1.0], [1.5], [2.0]], dtype=dtype)
    assert_close(linear_attention(token, token, v, causal=True), wanted)
    found = in_steps(token, token, v)
    assert found.dtype == dtype
    assert_close(found, wanted)


@pytest.mark.parametrize("feature_map", [torch.exp, nn.Identity()])
def test_so_do_steps_of_other_features(feature_map):
    """Those are not made anew, but what they add up to is."""
    number = -40.0 if feature_map is torch.exp else 1e25
    q, v = torch.full((2, 4), number), torch.tensor([[1.0], [2.0]])
    found = in_steps(q, q, v, feature_map=feature_map)
    assert_close(found, torch.tensor([[1.0], [1.5]]))


def test_a_query_without_features_in_float32_is_answered():
    """Nobody need remember it; of a key, nothing is left in a memory."""
    near, far = torch.zeros(1, 4), torch.full((1, 4), -200.0)
    v = torch.full((1, 1), 3.0)
    assert in_steps(far, near, v).item() == 3.0
    assert in_steps(near, far, v).item() == 0.0
    assert linear_attention(near, far, v).item() == 3.0


def test_an_output_is_finite_whose_sums_are_not():
    """Its weights were."""
    q, k, v = (torch.full((1, 4), x) for x in (1e15, 1e5, 1e25))
    assert_close(in_steps(q, k, v), v)


def test_what_is_summed_in_float64_is_learned_from():
    """As all at once, whose way back is another."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 5, 4) - 40
    inputs = [x.requires_grad_() for x in (q, k, torch.randn(5, 3))]
    found, wanted = (
        torch.autograd.grad(f(*inputs).square().sum(), inputs)
        for f in (in_steps, partial(linear_attention, causal=True))
    )
    assert wanted[0].abs().max() > 0.1
    assert_close(found, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("feature_map", [None, torch.sigmoid, torch.exp])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1.0])
@pytest.mark.parametrize("of", ["", "q", "k", "v", "qk", "kv"])
@pytest.mark.parametrize(
    ("dtype", "size"),
    [(torch.float32, 3e38), (torch.bfloat16, 3e38), (torch.float64, 1e307)],
)
def test_a_step_that_nobody_asks_passes_nothing_back(
    feature_map, bad, of, dtype, size
):
    """What it finds in a memory of garbage is no number, and zero times that
    was NaN: to other sequences' matrices, and to the steps before.
    """
    options = {} if feature_map is None else {"feature_map": feature_map}
    for seed in range(3):
        torch.manual_seed(seed)
        q, k, v = torch.randn(3, 5, 2, 2).to(dtype)
        plain = [x.clone().requires_grad_() for x in (q, k, v)]
        for name in of:
            {"q": q, "k": k, "v": v}[name][3:, 1] = size
        {"q": q}.get(of, k)[2, 1] = bad
        given = [x.requires_grad_() for x in (q, k, v)]
        wanted, found = (
            torch.autograd.grad(in_steps(*x, **options)[:2].square().sum(), x)
            for x in (plain, given)
        )
        assert_close(found, wanted)
        total = in_steps(*given, **options)[:, 0].sum()
        for back in torch.autograd.grad(total, given):
            assert back[:, 1].eq(0).all()


# Autocast


@pytest.mark.parametrize("dtype", HALVES)
def test_autocast_leaves_a_step_as_it_is(dtype):
    """In float16 it was infinite, from features and values of 300 on."""
    torch.manual_seed(0)
    for q in (torch.full((3, 4), 300.0), torch.randn(3, 4)):
        with torch.autocast("cpu", dtype=dtype):
            found = in_steps(q, q, q)
            assert (q @ q.mT).dtype == dtype  # and is on all the same
        assert_close(found, in_steps(q, q, q))


@pytest.mark.parametrize("dtype", HALVES)
def test_autocast_leaves_random_features_as_they_are(dtype):
    """Weights were off by 0.06, where softmax's were by 0.003."""
    torch.manual_seed(0)
    q, k = 4 * torch.randn(2, 20, 16)
    wanted = performer_weights(q, k), log_features(q, k)
    with torch.autocast("cpu", dtype=dtype):
        found = performer_weights(q, k), log_features(q, k)
    assert_close(found, wanted, atol=1e-6, rtol=1e-6)


# What callers' functions answer


def of_two_types():
    """A feature map of float64 at first, and of float32 then."""
    types = iter([torch.float64, torch.float32])
    return lambda x: x.exp().to(next(types))


NO_FEATURES = {
    "at least 1, but": lambda: lambda x: x[..., :0],
    "must be where q is, on cpu, but it is on meta": (
        lambda: lambda x: x.to("meta")
    ),
    "of one type of q and k, but it made torch.float64 and": of_two_types,
}


@pytest.mark.parametrize("told", NO_FEATURES)
def test_a_feature_map_makes_features_where_the_tokens_are(told):
    """Of none zeros were made, of those on meta nothing at all, and PyTorch
    spoke of batch1 and batch2.
    """
    q = torch.randn(5, 4)
    for call in (
        partial(linear_attention, q, q, q),
        partial(linear_weights, q, q),
        partial(linear_attention_step, q, q, q),
    ):
        with pytest.raises(ValueError, match=told):
            call(feature_map=NO_FEATURES[told]())


@pytest.mark.parametrize(
    ("project", "told"),
    [
        (lambda x: x[..., :0, :], "m at least 1, but"),
        (lambda x: x.to("meta"), "must be where x is, on cpu, but it is on"),
    ],
)
def test_a_projection_makes_mixtures_where_the_tokens_are(project, told):
    """Of none, every query got zeros."""
    q = torch.randn(5, 4)
    for name, call in {
        "project": LinformerAttention(project),
        "project_values": LinformerAttention(MeanPooling(2), project),
    }.items():
        with pytest.raises(ValueError, match=f"{name} .*{told}"):
            call(q, q, q)
    with pytest.raises(ValueError, match=f"project .*{told}"):
        linformer_weights(q, q, project)


def test_of_no_tokens_there_are_no_mixtures():
    q, none = torch.randn(5, 4), torch.zeros(0, 4)
    assert linformer_weights(q, none, MeanPooling(2)).shape == (5, 0)
    assert not LinformerAttention(MeanPooling(2))(q, none, none).any()


@pytest.mark.parametrize("pre", [True, False])
def test_a_sublayer_does_not_change_the_type_of_the_path(pre):
    """All layers behind one that made float64 got that."""
    x = torch.randn(2, 3, 4)
    path = AddNorm(4, pre=pre)
    told = "sublayer must return .*float32, but it returned torch.float64"
    with pytest.raises(ValueError, match=told):
        path(x, torch.Tensor.double)
    with pytest.raises(ValueError, match="sublayer makes must be where x is"):
        path(x, lambda x: x.to("meta"))
    assert path(x, torch.Tensor.bfloat16).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert path(x, nn.Linear(4, 4)).dtype == torch.float32
        assert path(x.bfloat16(), torch.Tensor.float).shape == x.shape


def test_nor_does_the_norm_of_an_encoder():
    """What it made was handed on as the last layer's tokens."""
    norm = nn.Identity()
    norm.forward = torch.Tensor.double
    block = EncoderBlock(4, 2, 8, pre=True)
    encoder = Encoder(nn.Identity(), [block], norm=norm)
    with pytest.raises(ValueError, match=r"norm must return .*float64"):
        encoder(torch.randn(2, 3, 4))


# Derivatives


def test_a_linformer_says_how_often_it_is_differentiated():
    """PyTorch's kernel told it, in words of its own."""
    assert "once, not twice" in " ".join(
        LinformerAttention.forward.__doc__.split()
    )
    x = torch.randn(3, 4, requires_grad=True)
    output = LinformerAttention(MeanPooling(2))(x, x, x)
    (grad,) = torch.autograd.grad(output.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="derivative for"):
        torch.autograd.grad(grad.sum(), x)
