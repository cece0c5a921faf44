"""Ranks that return what cannot be sent, or that do not agree."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from selfattn.devices.ring import ring_attention
from selfattn.devices.ulysses import ulysses_attention
from selfattn.devices.world import on_ranks
from selfattn.dot_product import attention
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import rope, rope_halves


def keeps_a_function(rank, ranks):
    """Of one rank, the result is no matter of bytes."""
    return (lambda: rank) if rank == 1 else rank


def test_a_result_that_cannot_be_sent_is_no_death_without_a_word():
    with pytest.raises(RuntimeError, match=r"rank 1: \w+: Can't \w+ local"):
        on_ranks(keeps_a_function, 2, timeout=20.0)


@pytest.mark.parametrize("attend", [ring_attention, ulysses_attention])
def test_ranks_agree_about_the_future(attend):
    """Each went on by its own flag, and half of the heads saw the future."""

    def differs(rank, ranks):
        x = torch.ones(1, 2, 3, 4)
        return attend(x, x, x, causal=rank == 1)

    told = r"(?s)rank 0: ValueError: ranks may differ.*causal=False.*=True"
    with pytest.raises(RuntimeError, match=told):
        on_ranks(differs, 2, timeout=20.0)


@pytest.mark.parametrize("rotate", [rope, partial(rope_halves, base=500.0)])
@pytest.mark.parametrize(
    "attend", [ring_attention, partial(ulysses_attention, attend=attention)]
)
def test_a_rotation_does_not_begin_anew_on_each_rank(attend, rotate):
    """It did, from position 0, and nothing was said: outputs were others."""
    layer = MultiHeadAttention(8, 2, attend=attend, rotate=rotate)
    x = torch.randn(1, 6, 8)

    def begins(rank, ranks):
        mine = x.chunk(ranks, dim=1)[rank]
        if rank == 0:
            layer.keys_values(mine)
        layer(mine, causal=True)

    told = r"(?s)rank 0: ValueError: rotate must add the position.* 2 ranks"
    with pytest.raises(RuntimeError, match=told):
        on_ranks(begins, 2, timeout=20.0)
    alone = on_ranks(lambda *_: layer(x, causal=True).detach(), 1)
    layer.attend = attention
    assert_close(alone[0], layer(x, causal=True).detach())


@pytest.mark.parametrize("attend", [ring_attention, ulysses_attention])
def test_a_rotation_that_knows_its_rank_is_asked(attend):
    """As the layer tells each rank to do."""
    layer = MultiHeadAttention(8, 2, attend=attend)
    x = torch.randn(1, 6, 8)

    def parts(rank, ranks):
        mine = x.chunk(ranks, dim=1)[rank]
        first = rank * mine.shape[1]
        layer.rotate = lambda x, offset: rope(x, offset=first + offset)
        return layer(mine, causal=True).detach()

    found = torch.cat(on_ranks(parts, 2, timeout=20.0), dim=1)
    layer.attend, layer.rotate = attention, rope
    assert_close(found, layer(x, causal=True).detach())
