"""Claims of the sources on Linformer: what is so."""

from functools import partial

import pytest
import torch

from selfattn import LinformerAttention, attention
from selfattn.cost import flops, log_log_slope
from selfattn.efficient.linformer import LearnedProjection

settles = pytest.mark.settles


def mixed(n, m):
    """Linformer with learned mixtures of its own for keys and values."""
    return LinformerAttention(LearnedProjection(n, m), LearnedProjection(n, m))


@settles("000-124", "holds-with-caveat")
def test_linear_in_n_as_long_as_the_mixtures_stay():
    def done(n, m, d=16):
        return flops(partial(mixed(n, m), *torch.zeros(3, n, d)))

    ns = [256, 512, 1024]
    assert [done(n, 32) for n in ns] == [8 * n * 32 * 16 for n in ns]
    grown = [done(n, n // 4) for n in ns]
    assert log_log_slope(ns, grown) == pytest.approx(2)
    shapes = [x.shape for x in mixed(64, 8).parameters()]
    assert shapes == [(8, 64)] * 2  # the length, and no feature
    for seed in range(5):
        torch.manual_seed(seed)
        q, k, v = torch.randn(3, 128, 16)
        whole = attention(q, k, v)
        off = mixed(128, 32)(q, k, v) - whole
        assert off.norm() > whole.norm()
    with pytest.raises(ValueError, match="cannot be causal"):
        mixed(8, 4)(*torch.randn(3, 8, 2), causal=True)
