"""Claims of the sources on FlashAttention: what is so."""

from functools import partial
from itertools import pairwise

import pytest
import torch

from selfattn import flash_attention
from selfattn.cost import flops, peak_bytes

settles = pytest.mark.settles
SMALL = partial(flash_attention, block_q=64, block_k=64)


def naive(q, k, v):
    """Attention as one would write it down."""
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v


@settles("000-065", "holds-with-caveat")
def test_it_does_every_operation():
    for n, d in ((128, 16), (256, 32)):
        inputs = torch.zeros(3, n, d)
        done = flops(lambda inputs=inputs: SMALL(*inputs))
        assert done == flops(lambda inputs=inputs: naive(*inputs))
        assert done == 4 * n**2 * d


@settles("000-127", "holds")
def test_its_memory_is_a_line():
    ns = (256, 512, 768, 1024)
    held = [peak_bytes(lambda n=n: SMALL(*torch.zeros(3, n, 16))) for n in ns]
    steps = {b - a for a, b in pairwise(held)}
    assert len(steps) == 1  # as many bytes for each further token
    assert peak_bytes(lambda: naive(*torch.zeros(3, 1024, 16))) > 10 * held[-1]


@settles("002-111", "wrong")
def test_twice_the_length_is_four_times_the_operations():
    done = [
        flops(lambda n=n: SMALL(*torch.zeros(3, n, 16))) for n in (128, 256)
    ]
    assert done[1] == 4 * done[0]


def traffic(n, d, M):
    """Numbers moved by the paper's algorithm 1, counted visit by visit."""
    B_c = -(-M // (4 * d))
    B_r = min(B_c, d)
    moved = 0
    for first_key in range(0, n, B_c):
        keys = min(B_c, n - first_key)
        moved += 2 * keys * d
        for first_row in range(0, n, B_r):
            rows = min(B_r, n - first_row)
            moved += rows * (d + 2 * (d + 2))
    return moved


@settles("003-075", "holds")
def test_a_larger_fast_memory_is_less_traffic():
    n, d = 512, 32
    naive_way = 4 * n * d + 4 * n**2
    sizes = [2 * d**2, 4 * d**2, 8 * d**2, 16 * d**2]
    moved = [traffic(n, d, M) for M in sizes]
    assert sorted(moved, reverse=True) == moved
    assert moved[0] > naive_way > moved[1]
