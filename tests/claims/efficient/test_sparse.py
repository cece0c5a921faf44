"""Claims of the sources on sparse patterns: what is so."""

import math

import pytest
import torch

from selfattn.cost import log_log_slope
from selfattn.efficient.sparse import fixed_mask, strided_mask
from selfattn.masks import causal_mask

settles = pytest.mark.settles


def pairs(pattern, n, stride):
    """How many pairs a pattern leaves of n tokens in causal order."""
    return int((pattern(n, n, stride) & causal_mask(n, n)).sum())


@settles("000-123", "holds")
def test_there_are_less_than_one_and_a_half_n_root_n_pairs():
    ns = [256, 1024, 4096]
    many = [pairs(strided_mask, n, math.isqrt(n)) for n in ns]
    ratios = [x / n**1.5 for x, n in zip(many, ns, strict=True)]
    assert [round(ratio, 2) for ratio in ratios] == [1.44, 1.47, 1.48]
    assert ratios == sorted(ratios) and ratios[-1] < 1.5
    assert abs(log_log_slope(ns, many) - 1.5) < 0.02
    blocks = [pairs(fixed_mask, n, math.isqrt(n)) for n in ns]
    assert all(x < y for x, y in zip(blocks, many, strict=True))
    stays = [pairs(strided_mask, n, 8) for n in ns]  # a stride that stays
    assert log_log_slope(ns[1:], stays[1:]) > 1.8


@settles("003-084", "holds")
def test_with_more_steps_it_is_n_log_n():
    """Distances of 0, 1, 2, 4, ...: everybody hears all in log n steps."""
    for n in (64, 256, 1024):
        i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]
        powers = torch.tensor([0] + [2**p for p in range(int(math.log2(n)))])
        sees = torch.isin(i - j, powers)
        assert sees.sum() < n * (math.log2(n) + 1)
        heard = sees.float()
        for _ in range(int(math.log2(n)) - 1):
            heard = ((heard @ sees.float()) > 0).float()
        assert torch.equal(heard > 0, causal_mask(n, n))
    assert pairs(strided_mask, 1024, 32) > 2 * 1024 * (math.log2(1024) + 1)
