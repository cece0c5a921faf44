"""Token numbers to vectors, against the sum written out."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.layers import LayerNorm
from selfattn.models import Embedding
from selfattn.positions import LearnedPositions, sinusoidal

TOKENS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]])


def stirred(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


@pytest.mark.parametrize("offset", [0, 2])
def test_it_is_a_sum_of_look_ups(offset):
    embed = stirred(
        Embedding(
            11,
            7,
            positions=LearnedPositions(13, 7),
            n_segments=2,
            scale=3.0,
            norm=LayerNorm,
        )
    )
    made = embed(TOKENS, segments=SEGMENTS, offset=offset)
    for b in range(2):
        for i in range(5):
            x = 3 * embed.tokens.weight[TOKENS[b, i]]
            x = x + embed.positions.table[offset + i]
            x = x + embed.segments.weight[SEGMENTS[b, i]]
            assert_close(made[b, i], embed.norm(x))


def test_without_segments_all_are_of_the_first():
    embed = stirred(Embedding(11, 7, n_segments=2))
    expected = embed(TOKENS, segments=torch.zeros_like(TOKENS))
    assert torch.equal(embed(TOKENS), expected)
    assert not torch.equal(embed(TOKENS, segments=SEGMENTS), expected)


def test_positions_may_be_computed_and_need_not_be_there():
    told = Embedding(11, 7, positions=partial(sinusoidal, d_model=7)).double()
    made = told(TOKENS, offset=4)
    assert made.dtype == torch.float64
    waves = sinusoidal(5, 7, offset=4).double()
    assert_close(made, told.tokens(TOKENS) + waves)
    untold = Embedding(11, 7)
    assert torch.equal(untold(TOKENS, offset=4), untold.tokens(TOKENS))


def test_dropout_is_for_training():
    embed = Embedding(11, 700, dropout=0.5)
    share = (embed(TOKENS) == 0).float().mean().item()
    assert share == pytest.approx(0.5, abs=0.05)  # of 7,000: 8 deviations
    assert embed.eval()(TOKENS).all()


def test_what_has_no_vector_is_refused():
    with pytest.raises(ValueError, match=r"n_segments=0 and .*\(2, 5\)"):
        Embedding(11, 7)(TOKENS, segments=SEGMENTS)
    short = Embedding(11, 7, positions=LearnedPositions(4, 7))
    with pytest.raises(ValueError, match="positions 0 to 3"):
        short(TOKENS)
