"""Where the conclusions of the chapter on blocks hold."""

from functools import partial

import torch
from torch import nn

from selfattn.blocks import EncoderBlock
from selfattn.layers import FeedForward, SwiGLU, gelu
from selfattn.masks import padding_mask

N, D = 5, 8
NETWORKS = {
    "relu": FeedForward,
    "gelu": partial(FeedForward, activation=gelu),
    "swiglu": SwiGLU,
}


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def stack(blocks, network="relu"):
    """So many fresh pre-norm blocks."""
    make = partial(EncoderBlock, D, 2, 4 * D, pre=True)
    made = [make(feed_forward=NETWORKS[network]) for _ in range(blocks)]
    return [block.double() for block in made]


def run(stacked, x, **options):
    """All blocks, one after the other."""
    for block in stacked:
        x = block(x, **options)
    return x


def test_the_causal_mask_hides_padding_that_trails_and_no_other():
    stacked, x = stack(3), draw(1, N, D)
    for real in (range(3), range(2, N)):  # padding behind, and in front
        padded = torch.ones(N, dtype=torch.bool)
        padded[list(real)] = False
        other = torch.where(padded[None, :, None], draw(1, N, D), x)
        with torch.no_grad():
            a, b = (run(stacked, y, causal=True) for y in (x, other))
        same = torch.equal(a[:, list(real)], b[:, list(real)])
        assert same == (real == range(3))
    hidden = padding_mask(torch.tensor([3]), N)
    with_mask = run(stacked, x, causal=True, mask=hidden)
    assert torch.equal(with_mask[:, :3], run(stacked, x, causal=True)[:, :3])


def test_under_a_causal_mask_the_past_of_a_stack_stays():
    stacked, x = stack(3), draw(2, N, D)
    longer = torch.cat((x, draw(2, 2, D)), dim=1)
    for causal in (True, False):
        before, after = (run(stacked, y, causal=causal) for y in (x, longer))
        moved = (after[:, :N] - before).abs().max()
        assert (moved < 1e-12) == causal


@torch.no_grad()
def test_a_large_input_leaves_a_pre_norm_stack_as_large():
    """Sublayers see normed tokens: large ones are added to as small ones."""
    x = draw(2, N, D)
    for network in NETWORKS:
        stacked = stack(3, network)
        added = [run(stacked, c * x) - c * x for c in (1e4, 1e8)]
        assert (added[0] - added[1]).abs().max() < 1e-3
        last = nn.LayerNorm(D).double()(run(stacked, 1e4 * x))
        assert abs(last.std() - 1) < 0.05
        for blocks in (3, 12, 48):  # a small one grows
            stacked = stack(blocks, network)
            small, large = (
                run(stacked, c * x).std() / (c * x).std() for c in (0.01, 1e4)
            )
            assert small > 10 and abs(large - 1) < 0.05
