"""Claims of the sources on models and what they are used for.

Each test says which claims of the ledger it settles, and how.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from selfattn import attention
from selfattn.blocks import EncoderBlock
from selfattn.masks import padding_mask
from selfattn.models import (
    ClassHead,
    Decoder,
    Embedding,
    Encoder,
    PatchEmbedding,
    VisionTransformer,
    complete,
)
from selfattn.positions import LearnedPositions

settles = pytest.mark.settles
N, D = 7, 12


def blocks(count=2):
    """So many pre-norm blocks of three heads."""
    return [EncoderBlock(D, 3, 4 * D, pre=True) for _ in range(count)]


def decoder():
    """A small one, in double precision."""
    positions = LearnedPositions(40, D)
    return Decoder(Embedding(11, D, positions=positions), blocks()).double()


@settles("000-004", "holds-with-caveat")
@torch.no_grad()
def test_training_is_one_pass_and_writing_one_a_token():
    model, text = decoder(), torch.randint(11, (2, N))
    passes = []
    model.blocks[0].register_forward_hook(lambda *_: passes.append(1))
    logits = model(text)[:, :-1]
    losses = F.cross_entropy(logits.mT, text[:, 1:], reduction="none")
    assert losses.shape == (2, N - 1) and len(passes) == 1
    for cached in (True, False):
        passes.clear()
        complete(model.step, text, 5, cached=cached)
        assert len(passes) == 5


@settles("000-114", "holds-with-caveat")
def test_attention_takes_vectors_of_patches_and_no_image():
    layer = nn.MultiheadAttention(D, 3, batch_first=True)
    images = torch.randn(2, 1, 6, 6)
    with pytest.raises(AssertionError, match="4-D"):
        layer(images, images, images)
    patches = PatchEmbedding((6, 6), (2, 2), n_channels=1, d_model=D)(images)
    assert layer(patches, patches, patches)[0].shape == (2, 10, D)


@settles("000-115", "holds-with-caveat")
@torch.no_grad()
def test_the_listing_norms_behind_where_vit_norms_before():
    layer, norm = (
        nn.MultiheadAttention(D, 3, batch_first=True),
        nn.LayerNorm(D),
    )
    x = 5 + 3 * torch.randn(2, N, D)
    listing = norm(x + layer(x, x, x)[0])
    assert listing.mean(dim=-1).abs().max() < 1e-5
    (block,) = blocks(1)
    assert block(x).mean(dim=-1).abs().max() > 1  # the path is clear
    assert block.feed_forward is not None


@settles("000-116", "holds-with-caveat")
@settles("002-088", "holds-with-caveat")
def test_a_picture_of_196_patches_is_197_tokens():
    with torch.device("meta"):
        embed = PatchEmbedding((224, 224), (16, 16), n_channels=3, d_model=768)
        assert embed(torch.zeros(1, 3, 224, 224)).shape == (1, 197, 768)


@settles("000-117", "holds-with-caveat")
def test_the_weights_returned_are_a_mean_over_heads():
    layer, x = (
        nn.MultiheadAttention(D, 3, batch_first=True),
        torch.randn(2, N, D),
    )
    mean = layer(x, x, x)[1]
    each = layer(x, x, x, average_attn_weights=False)[1]
    assert mean.shape == (2, N, N) and each.shape == (2, 3, N, N)
    assert_close(each.mean(dim=1), mean)


@settles("000-118", "holds")
@settles("000-120", "holds")
@torch.no_grad()
def test_a_class_is_read_off_the_first_token_which_hears_all():
    x, head = torch.randn(2, N, D), ClassHead(D, 4)
    other = torch.cat((x[:, :1], torch.randn(2, N - 1, D)), dim=1)
    assert torch.equal(head(x), head(other))
    embed = PatchEmbedding((6, 6), (2, 2), n_channels=1, d_model=D)
    vision = VisionTransformer(embed, blocks(), 4)
    images = torch.randn(1, 1, 6, 6)
    for row in range(3):
        for column in range(3):
            nudged = images.clone()
            nudged[0, 0, 2 * row, 2 * column] += 1
            moved = (vision(nudged) - vision(images)).abs().max()
            assert moved > 1e-5


@settles("000-119", "holds")
@settles("001-106", "holds")
@torch.no_grad()
def test_a_decoder_hears_no_later_token():
    model, text = decoder(), torch.randint(11, (2, N))
    for place in range(N):
        other = text.clone()
        other[:, place] = (other[:, place] + 1) % 11
        moved = (model(other) - model(text)).abs().amax(dim=(0, -1)) > 1e-9
        assert moved.tolist() == [i >= place for i in range(N)]


@settles("001-105", "holds-with-caveat")
@torch.no_grad()
def test_an_encoder_without_a_mask_hears_its_padding():
    positions = LearnedPositions(N, D)
    reader = Encoder(Embedding(11, D, positions=positions), blocks())
    nn.init.normal_(reader.embed.tokens.weight)
    text = torch.randint(1, 11, (1, 4))
    padded = F.pad(text, (0, 3))
    real = reader(text)
    assert (reader(padded)[:, :4] - real).abs().max() > 1e-2
    masked = reader(padded, mask=padding_mask(torch.tensor([4]), N))
    assert_close(masked[:, :4], real)


@settles("001-107", "holds-with-caveat")
def test_a_scale_can_be_moved_into_the_queries_matrix():
    x, W_q, W_k = torch.randn(N, D), torch.randn(D, D), torch.randn(D, D)
    divided = attention(x @ W_q, x @ W_k, x)
    smaller = W_q / D**0.5
    assert_close(attention(x @ smaller, x @ W_k, x, scale=1.0), divided)


@settles("003-088", "holds")
@torch.no_grad()
def test_one_encoder_reads_pictures_graphs_and_series():
    near = torch.eye(6, dtype=torch.bool)
    near[0, 1] = near[1, 0] = True
    q, k, v = torch.randn(3, 6, 4).double()
    rows = [attention(q[i : i + 1], k[near[i]], v[near[i]]) for i in range(6)]
    assert_close(attention(q, k, v, mask=near), torch.cat(rows))
    images = PatchEmbedding((6, 6), (2, 2), n_channels=1, d_model=D)
    for embed, given, n, mask in (
        (images, torch.randn(2, 1, 6, 6), 10, None),
        (nn.Identity(), torch.randn(2, 6, D), 6, near),
        (nn.Linear(1, D), torch.randn(2, 5, 1), 5, None),
    ):
        made = Encoder(embed, blocks())(given, mask=mask)
        assert made.shape == (2, n, D)
