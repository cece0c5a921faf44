"""Claims of the sources on Performer: what is so."""

from functools import partial

import pytest
import torch

from selfattn import attention
from selfattn.cost import flops, log_log_slope
from selfattn.efficient.performer import performer_attention

settles = pytest.mark.settles


def distance(scale, m):
    """Of the output to softmax attention's, over its size; the median."""
    found = []
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        q, k, v = torch.randn(3, 64, 16, generator=generator).double()
        exact = attention(scale * q, scale * k, v)
        estimate = performer_attention(
            scale * q, scale * k, v, n_features=m, seed=1000 + seed
        )
        found.append(((estimate - exact).norm() / exact.norm()).item())
    return sorted(found)[2]


@settles("000-125", "holds-with-caveat")
def test_linear_in_n_and_close_for_short_vectors_only():
    def done(n, m):
        x = torch.zeros(3, n, 16)
        return flops(partial(performer_attention, *x, n_features=m))

    ns = [256, 512, 1024]
    assert log_log_slope(ns, [done(n, 64) for n in ns]) < 1.02
    assert done(512, 128) > 1.9 * done(512, 64)
    numbers = [64, 256, 1024, 4096]
    short = [distance(0.5, m) for m in numbers]
    assert -0.6 < log_log_slope(numbers, short) < -0.35
    assert short[-1] < 0.1
    assert distance(1.0, 4096) > 0.5
