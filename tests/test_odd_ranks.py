"""Ranks that return what cannot be sent, or that do not agree."""

import pytest
import torch

from selfattn.devices.ring import ring_attention
from selfattn.devices.ulysses import ulysses_attention
from selfattn.devices.world import on_ranks


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
