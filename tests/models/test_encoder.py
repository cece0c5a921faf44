"""The encoder: what it computes, and what it can be put together to be."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.blocks import EncoderBlock
from selfattn.layers import LayerNorm
from selfattn.masks import padding_mask
from selfattn.models import Embedding, Encoder
from selfattn.positions import LearnedPositions, T5Bias, alibi_bias

BATCH, N, D, HEADS, D_FF = 2, 7, 15, 3, 11
TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]])


def stirred(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.double()


def encoder(n_blocks=2, embed=None, **options):
    if embed is None:
        embed = Embedding(11, D, positions=LearnedPositions(N, D))
    blocks = [EncoderBlock(D, HEADS, D_FF, pre=True) for _ in range(n_blocks)]
    return stirred(Encoder(embed, blocks, **options))


def test_it_is_its_parts_one_after_another():
    relative = T5Bias(HEADS)
    model = encoder(norm=LayerNorm(D), relative=relative)
    mask = padding_mask(torch.tensor([N, 4]), N)
    bias = relative(N, N)[None]
    x = model.embed(TOKENS)
    for block in model.blocks:
        x = block(x, mask=mask, bias=bias)
    assert_close(model(TOKENS, mask=mask), model.norm(x))
    assert len(model.blocks) == 2
    assert any(p is relative.table for p in model.parameters())


def test_all_tokens_are_seen_but_the_padding():
    model, mask = encoder(), padding_mask(torch.tensor([N, 4]), N)
    before = model(TOKENS, mask=mask)
    changed = TOKENS.clone()
    changed[:, -1] = 10
    after = model(changed, mask=mask)
    assert (after[0] != before[0]).any(dim=-1).all()
    assert torch.equal(after[1, :4], before[1, :4])


def test_a_bias_may_be_computed():
    """ALiBi, which has nothing to learn and comes in float32."""
    relative = partial(alibi_bias, HEADS)
    model = encoder(relative=relative, embed=Embedding(11, D))
    x, bias = model.embed(TOKENS), relative(N, N)[None].double()
    for block in model.blocks:
        x = block(x, bias=bias)
    assert_close(model(TOKENS), x)


def test_segments_reach_the_embedding():
    model = encoder(embed=Embedding(11, D, n_segments=2))
    segments = (TOKENS > 4).long()
    plain = encoder(0, embed=model.embed)
    expected = model.embed(TOKENS, segments=segments)
    assert torch.equal(plain(TOKENS, segments=segments), expected)
    told = model(TOKENS, segments=segments)
    assert (told != model(TOKENS)).any(dim=-1).all()


def test_vectors_can_go_in_as_they_are():
    """Frames of audio, readings of a sensor: a map in place of a table."""
    frames = torch.randn(BATCH, N, 5, dtype=torch.float64)
    model = encoder(embed=nn.Linear(5, D))
    x = model.embed(frames)
    for block in model.blocks:
        x = block(x)
    assert torch.equal(model(frames), x)
    assert encoder(embed=nn.Identity())(x).shape == (BATCH, N, D)


def test_a_graph_is_a_mask():
    """Each node attends to its neighbours: the same, node by node."""
    model = encoder(1, embed=nn.Identity())
    x = torch.randn(1, N, D, dtype=torch.float64)
    edges = torch.rand(N, N) < 0.4
    edges = edges | edges.T | torch.eye(N, dtype=torch.bool)
    whole = model(x, mask=edges)
    for i in range(N):
        neighbours = edges[i].nonzero().flatten()
        near = model(x[:, neighbours])
        me = (neighbours == i).nonzero().item()
        assert_close(whole[:, i], near[:, me])


@pytest.mark.parametrize("n_blocks", [1, 2, 3])
def test_a_path_of_k_edges_takes_k_blocks(n_blocks):
    """On a chain of nodes news travels one edge a block."""
    model = encoder(n_blocks, embed=nn.Identity())
    i = torch.arange(N)
    chain = (i[:, None] - i).abs() <= 1
    x = torch.randn(1, N, D, dtype=torch.float64, requires_grad=True)
    grad = torch.autograd.grad(model(x, mask=chain)[0, 0].sum(), x)[0]
    heard = grad[0].abs().sum(dim=-1) > 0
    assert heard.tolist() == [j <= n_blocks for j in range(N)]


def test_a_bias_beyond_half_precision_is_the_largest_there(unchecked):
    """It was infinite there, and all was NaN."""
    blocks = [EncoderBlock(8, 2, 16, pre=True)]

    def near(n_q, n_k):
        return torch.full((2, n_q, n_k), 1e5)

    model = Encoder(nn.Identity(), blocks, relative=near).half()
    x = torch.randn(2, 5, 8).half()
    assert_close(model(x), blocks[0](x), atol=2e-2, rtol=0.0)
