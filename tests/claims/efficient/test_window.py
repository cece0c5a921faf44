"""Claims of the sources on windows: what is so."""

from functools import partial

import pytest
import torch

from selfattn import longformer_attention, performer_attention
from selfattn.cost import flops, log_log_slope
from selfattn.efficient.swin import swin_mask
from selfattn.masks import causal_mask, window_mask

settles = pytest.mark.settles


def pairs(n, w):
    """How many pairs a causal window of w leaves of n tokens."""
    return int((window_mask(n, n, w) & causal_mask(n, n)).sum())


@settles("000-128", "holds")
def test_there_are_at_most_n_w_pairs():
    assert pairs(64, 8) == 484
    for n, w in ((64, 8), (200, 16), (7, 9)):
        assert pairs(n, w) <= n * w
    assert pairs(512, 8) > 0.98 * 512 * 8
    assert int(window_mask(512, 512, 8).sum()) <= 512 * (2 * 8 - 1)


@settles("002-101", "contradicts-another-source")
def test_of_squares_the_side_counts_twice():
    N, W = 32 * 32, 8
    squares = int(swin_mask((32, 32), (W, W)).sum())
    assert squares == N * W**2 == 65_536
    assert pairs(N, W) < N * W  # of W tokens in a row


@settles("003-053", "wrong")
def test_a_performer_hears_every_key_and_a_longformer_does_not():
    q, k, v = torch.randn(3, 60, 8, dtype=torch.float64)
    louder = v.clone()
    louder[30] += 1.0
    near = partial(longformer_attention, window=4)
    for attend, heard in ((performer_attention, 60), (near, 8)):
        apart = (attend(q, k, louder) - attend(q, k, v)).abs().amax(dim=-1)
        assert (apart > 1e-9).sum() == heard  # 7 near ones, and the global


@settles("003-054", "holds-with-caveat")
def test_linear_in_n_times_the_window_or_the_features():
    def done(attend, n, **options):
        x = torch.zeros(3, n, 16)
        return flops(lambda: attend(*x, **options))

    ns = [1024, 2048, 4096]
    near = [done(longformer_attention, n, window=64) for n in ns]
    spread = [done(performer_attention, n, n_features=64) for n in ns]
    assert log_log_slope(ns, near) < 1.05 and log_log_slope(ns, spread) < 1.05
    assert done(longformer_attention, 2048, window=256) > 2.5 * near[1]
    assert done(performer_attention, 2048, n_features=256) > 2.5 * spread[1]
