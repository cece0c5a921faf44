"""Claims of the sources on blocks.

Each test says which claims of the ledger it settles, and how.
"""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn import MultiHeadAttention
from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.looking_inside import record_weights

settles = pytest.mark.settles
N, M, D = 5, 7, 12


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


@settles("000-041", "holds")
@settles("001-031", "holds")
@settles("001-096", "holds")
def test_who_is_what_in_self_and_cross_attention():
    block = DecoderBlock(D, 3, 4 * D, pre=True).double()
    target, source = draw(2, N, D), draw(2, M, D)
    with record_weights(block) as weights:
        block(target, source)
    assert weights[0].shape == (2, 3, N, N)
    assert weights[1].shape == (2, 3, N, M)
    q, k, v = block.cross.heads(target, source)
    for changed in (draw(2, N, D), target):
        other = source if changed is not target else draw(2, M, D)
        q_2, k_2, v_2 = block.cross.heads(changed, other)
        assert torch.equal(q, q_2) == (changed is target)
        assert torch.equal(k, k_2) == (other is source)
        assert torch.equal(v, v_2) == (other is source)
    own = block.attention.heads(target), block.attention.heads(draw(2, N, D))
    assert not any(map(torch.equal, *own))


@settles("000-107", "holds")
@settles("001-085", "holds")
def test_attention_add_norm_network_add_norm_is_post_norm():
    theirs = nn.TransformerEncoderLayer(
        D, 3, 17, dropout=0.0, batch_first=True
    ).double()
    assert not theirs.norm_first
    x = draw(2, N, D)
    h = theirs.norm1(x + theirs.self_attn(x, x, x)[0])
    y = theirs.norm2(h + theirs.linear2(theirs.linear1(h).relu()))
    assert_close(y, theirs(x))
    large = nn.TransformerEncoderLayer(512, 8, 2048, device="meta")
    assert sum(p.numel() for p in large.parameters()) == 3_152_384


@settles("001-087", "holds-with-caveat")
def test_a_block_returns_tokens_and_its_layer_the_weights_too():
    theirs = nn.TransformerEncoderLayer(D, 3, 17, batch_first=True).double()
    x = draw(2, N, D)
    tokens, weights = theirs.self_attn(x, x, x)
    assert tokens.shape == x.shape and weights.shape == (2, N, N)
    assert isinstance(theirs(x), torch.Tensor) and theirs(x).shape == x.shape


@settles("004-050", "holds-with-caveat")
def test_without_cross_attention_no_second_sentence_arrives():
    target = draw(2, N, D)
    alone = EncoderBlock(D, 3, 4 * D, pre=True).double()
    whole = DecoderBlock(D, 3, 4 * D, pre=True).double()
    with pytest.raises(TypeError):
        alone(target, draw(2, M, D))
    first, second = (whole(target, draw(2, M, D)) for _ in range(2))
    assert (first - second).abs().amax(dim=-1).min() > 0
    layers = [m for m in whole.modules() if isinstance(m, MultiHeadAttention)]
    assert len(layers) == 2
