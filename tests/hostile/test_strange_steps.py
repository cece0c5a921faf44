"""What strangers found of a step, of autocast, and of callers' functions."""

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
