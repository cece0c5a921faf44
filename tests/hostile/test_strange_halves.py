"""What strangers found of digits: those that a gradient lost on its way."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from selfattn.devices.ring import ring_attention
from selfattn.devices.world import on_ranks
from selfattn.dot_product import attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import (
    linear_attention,
    linear_attention_step,
    linear_weights,
)
from selfattn.efficient.reformer import lsh_attention, lsh_mask
from selfattn.efficient.sparse import strided_attention, strided_mask

N = 30
BUCKETS = {"n_buckets": 4, "n_rounds": 2}
WAYS = {
    "flash": (flash_attention, lambda q, k: None),
    "strided": (
        partial(strided_attention, stride=3),
        lambda q, k: strided_mask(N, N, 3),
    ),
    "lsh": (
        partial(lsh_attention, **BUCKETS),
        lambda q, k: lsh_mask(q, k, **BUCKETS),
    ),
}


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


def passed_back(attend, dtype, inputs, **options):
    q, k, v = (x.detach().to(dtype).requires_grad_() for x in inputs)
    output = attend(q, k, v, **options)
    wave = torch.arange(output.numel()).sin().view(output.shape)
    return torch.autograd.grad(output, (q, k, v), wave.to(dtype))


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_peaked_weights_pass_back_what_they_should(name, dtype, causal):
    """Gradients of q and k were off by 8 % in bfloat16, in float16 by more
    than half: two terms nearly cancel, and one was made of an output that
    had been rounded.
    """
    attend, published = WAYS[name]
    torch.manual_seed(0)
    scales = (30.0, 30.0, 1.0)
    inputs = [(torch.randn(2, N, 8) * s).to(dtype) for s in scales]
    mask = published(*inputs[:2])
    found = passed_back(attend, dtype, inputs, causal=causal)
    options = {"mask": mask, "causal": causal}
    ours = passed_back(attention, dtype, inputs, **options)
    exact = passed_back(attention, torch.float64, inputs, **options)
    for x, rounded, wanted in zip(found, ours, exact, strict=True):
        # And what float32 rounds of terms of 30, added up.
        least = 2 * (rounded.double() - wanted).abs().max() + 1e-4
        assert (x.double() - wanted).abs().max() <= least


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shift", [-15.0, -30.0])
def test_small_weights_of_large_values_pass_back_no_nan(dtype, causal, shift):
    """Divided by the sum of weights, 1e-12, a gradient of 1e30 overflowed on
    its way to the weights, which would have made it small again.
    """
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 9, 4)
    inputs = [x.to(dtype) for x in (q + shift, k + shift, 1e15 * v)]
    ways = {
        dtype: partial(linear_attention, causal=causal),
        torch.float64: lambda q, k, v: linear_weights(q, k, causal=causal) @ v,
    }
    grads = []
    for kind, attend in ways.items():
        q, k, v = (x.to(kind).requires_grad_() for x in inputs)
        total = attend(q, k, v).square().sum()
        grads.append(torch.autograd.grad(total, (q, k, v)))
    close = torch.finfo(dtype).eps * 64
    for found, wanted in zip(*grads, strict=True):
        size = wanted.abs().max().item()
        assert_close(found.double() / size, wanted / size, atol=close, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_feature_map_of_halves_serves_step_by_step_and_as_weights(dtype):
    """It was called with float32, in which its own weights are not."""
    torch.manual_seed(0)
    by = nn.Sequential(nn.Linear(4, 6), nn.Softplus()).to(dtype)
    q, k, v = torch.randn(3, 5, 4).to(dtype)
    options = {"feature_map": by}
    wanted = linear_attention(q, k, v, causal=True, **options)
    weights = linear_weights(q, k, causal=True, **options)
    assert weights.dtype == torch.float32
    exact = (by(q).double() @ by(k).double().mT).tril()
    assert_close(weights.double(), exact / exact.sum(-1, keepdim=True))
    memory, steps = None, []
    for token in zip(q, k, v, strict=True):
        output, memory = linear_attention_step(*token, memory, **options)
        steps.append(output)
    assert memory.total.dtype == torch.float32
    close = {"atol": 0.02, "rtol": 0.02}
    assert_close((weights @ v.float()).to(dtype), wanted, **close)
    assert_close(torch.stack(steps), wanted, **close)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_ring_rounds_once_what_all_its_blocks_add_up_to(dtype):
    """What each block brought was rounded before it was joined, on both ways,
    and the way back began from a rounded output: gradients were off by up to
    ten times what PyTorch's own are.
    """
    torch.manual_seed(0)
    q, k, v, wave = torch.randn(4, 1, 64, 16)
    # What the ranks pass back to a key nearly cancels, too.
    q[:, 32:], wave[:, 32:] = q[:, :32] * 1.05, -wave[:, :32]
    whole = [x.to(dtype) for x in (q, k, v + 5, wave)]

    def by(attend, given, kind=dtype):
        *inputs, grad = (x.to(kind) for x in given)
        for x in inputs:
            x.requires_grad_()
        output = attend(*inputs)
        grads = torch.autograd.grad(output, inputs, grad)
        return [x.detach().double() for x in (output, *grads)]

    def on_rank(rank, n_ranks):
        parts = (x.chunk(n_ranks, -2)[rank].clone() for x in whole)
        return by(ring_attention, parts)

    found = [torch.cat(x, -2) for x in zip(*on_ranks(on_rank, 2), strict=True)]
    theirs = by(F.scaled_dot_product_attention, whole)
    exact = by(attention, whole, torch.float64)
    for x, rounded, wanted in zip(found, theirs, exact, strict=True):
        most = 2 * (rounded - wanted).abs().max()
        assert (x - wanted).abs().max() <= most
