"""Claims of the sources on linear attention: what is so."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from selfattn import attention
from selfattn.cost import flops
from selfattn.efficient.linear import linear_attention, linear_weights
from selfattn.efficient.linformer import LearnedProjection, LinformerAttention
from selfattn.efficient.performer import performer_attention

settles = pytest.mark.settles


@settles("000-126", "contradicts-another-source")
@settles("002-104", "contradicts-another-source")
def test_another_kernel_which_nothing_brings_nearer_to_softmax():
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        q, k, v = torch.randn(3, 64, 16, generator=generator).double()
        exact, linear = attention(q, k, v), linear_attention(q, k, v)
        assert_close(linear, linear_weights(q, k) @ v)
        assert (linear - exact).norm() > 0.6 * exact.norm()
        few, many = (
            performer_attention(q / 2, k / 2, v, n_features=m)
            for m in (64, 2048)
        )
        exact = attention(q / 2, k / 2, v)
        assert (many - exact).norm() < 0.5 * (few - exact).norm()


@settles("002-103", "wrong")
def test_twice_the_width_is_four_times_the_operations():
    def counted(n, d):
        x = torch.zeros(3, n, d)
        return flops(lambda: linear_attention(*x))

    assert counted(256, 32) == 1_048_576
    assert counted(512, 32) == 2 * counted(256, 32)
    assert counted(256, 64) == 4 * counted(256, 32)


@settles("003-085", "holds-with-caveat")
def test_three_ideas_are_linear_as_long_as_their_size_is_fixed():
    def counted(f, n):
        x = torch.zeros(3, n, 16)
        return flops(lambda: f(*x))

    for f in (
        linear_attention,
        partial(performer_attention, n_features=32),
        LinformerAttention(LearnedProjection(1024, 32)),
    ):
        assert counted(f, 1024) == pytest.approx(4 * counted(f, 256), rel=0.01)
    few, many = (
        counted(LinformerAttention(LearnedProjection(1024, m)), 1024)
        for m in (32, 64)
    )
    assert many == pytest.approx(2 * few, rel=0.01)
