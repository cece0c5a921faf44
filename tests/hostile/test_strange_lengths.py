"""What very long texts, tokens and reaches do to sums, products and rows."""

import pytest
import torch
from torch.testing import assert_close

from selfattn import attention, swin_attention
from selfattn.efficient.linformer import LinformerAttention, MeanPooling
from selfattn.efficient.performer import (
    performer_attention,
    performer_weights,
)
from selfattn.origins import Convolution

MOST = torch.finfo(torch.float32).max
HIDING = {
    "causal": {"causal": True},
    "a bias": {"relative_bias": torch.tensor([[-torch.inf] * 2 + [0.0] * 3])},
}


@pytest.mark.parametrize("hiding", HIDING.values(), ids=[*HIDING])
def test_a_hidden_key_takes_no_gradient_from_who_does_not_see_it(hiding):
    """On the way back its score was infinite, and hidden by minus infinity:
    the sum is no number, and the whole row of weights was set to zero.
    """
    q, k = torch.zeros(2, 3, 3)
    q[1, -1], q[2, -1], k[2, -1] = 1.5, 0.5, MOST
    v = torch.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    output = swin_attention(q, k, v, grid=(1, 3), window=(1, 3), **hiding)
    assert_close(output, attention(q, k, v, causal=True))
    [found] = torch.autograd.grad(output[:2].sum(), v)
    assert found.flatten().tolist() == [1.5, 0.5, 0.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_key_that_outweighs_all_by_its_length_is_not_lost(dtype):
    """Its product with the query's features rounds to zero, before the
    length is given back: the other keys shared its weight.
    """
    q, k = torch.tensor([[37.0, 23]]), torch.tensor([[-40.0, -12], [43, 39]])
    far = 1 if dtype == torch.float32 else 5
    q, k = q.to(dtype) * far, k.to(dtype)
    weights = performer_weights(q, k, n_features=2)
    expected = performer_attention(
        q, k, torch.eye(2, dtype=dtype), n_features=2
    )
    assert_close(weights, expected)
    assert weights[0, 0] > 0.99


def test_weights_of_long_tokens_are_those_of_the_outputs():
    torch.manual_seed(0)
    q, k = 25 * torch.randn(2, 13, 16).requires_grad_()
    weights = performer_weights(q, k, n_features=64)
    whole = torch.eye(13)
    assert_close(
        weights,
        performer_attention(q, k, whole, n_features=64),
        atol=1e-3,
        rtol=0,
    )
    [found] = torch.autograd.grad(weights[:, 0].sum(), k)
    assert found.isfinite().all()


def test_means_of_very_many_do_not_drift():
    """A constant was off by a third of a per cent at a million tokens."""
    x = torch.full((100_003, 1), 0.1, requires_grad=True)
    means = MeanPooling(2)(x)
    assert means.dtype == torch.float32
    assert_close(means, torch.full((2, 1), 0.1), rtol=1e-6, atol=0)
    [found] = torch.autograd.grad(means.sum(), x)
    assert_close(found.sum(), torch.tensor(2.0))
    output = LinformerAttention(MeanPooling(2))(x[:1], x, x)
    assert_close(output, torch.tensor([[0.1]]), rtol=1e-6, atol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
def test_a_convolution_pads_no_farther_than_its_text(kernel, causal):
    """Four tokens, and a reach of 3^45, took more memory than there is."""
    torch.manual_seed(0)
    deep = Convolution(
        2, kernel=kernel, n_layers=30, dilated=True, causal=causal
    )
    x = torch.randn(3, 5, 2)
    found = deep(x)
    for layer in deep.layers:  # by hand, tap by tap
        taps, dilation = layer.kernel_size[0], layer.dilation[0]
        span = (taps - 1) * dilation
        before = span if causal else span - span // 2
        made = layer.bias.expand(3, 5, 2).clone()
        for tap in range(taps):
            far = tap * dilation - before
            for at in range(5):
                if 0 <= at + far < 5:
                    made[:, at] += x[:, at + far] @ layer.weight[..., tap].T
        x = x + made.relu()
    assert_close(found, x)
    found.sum().backward()
    assert deep.layers[-1].bias.grad is not None
