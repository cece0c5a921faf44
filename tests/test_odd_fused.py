"""What PyTorch's kernel does otherwise than the definition, and ours not."""

import math

import pytest
import torch
from torch.testing import assert_close

from selfattn.dot_product import fused_attention


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("as_bias", [False, True])
@pytest.mark.parametrize("n_k", [7, 4])
def test_a_query_that_sees_nothing_gets_zeros_whatever_it_is(
    poison, as_bias, n_k
):
    """A padded query, hidden from and to all: it was NaN, with its gradient,
    and all keys' gradients with it.
    """
    q, k, v = (torch.randn(3, n, 4) for n in (7, n_k, n_k))
    q = q.repeat(2, 1, 1, 1)
    mask = torch.rand(2, 1, 7, n_k) < 0.7
    mask[..., 0] = True
    mask[1, :, 5] = False
    bias = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    tables = {"bias": bias} if as_bias else {"mask": mask}
    found = []
    for bad in (0.0, poison):
        q[1, :, 5] = bad
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]
        output = fused_attention(*inputs, **tables)
        grads = torch.autograd.grad(output.square().sum(), inputs)
        found.append([output, *grads])
    for clean, spoilt in zip(*found, strict=True):
        assert_close(spoilt, clean)
    assert not found[1][0][1, :, 5].any()
    causal = fused_attention(q[..., :n_k, :], k, v, causal=True)
    assert causal[0].isfinite().all()
