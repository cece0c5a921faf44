"""Patches, against slices of the image."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.blocks import EncoderBlock
from selfattn.layers import LayerNorm
from selfattn.models import PatchEmbedding, VisionTransformer

SIZE, PATCH, CHANNELS, D = (15, 14), (5, 7), 2, 12


def embedding():
    embed = PatchEmbedding(SIZE, PATCH, n_channels=CHANNELS, d_model=D)
    for parameter in embed.parameters():
        nn.init.normal_(parameter)
    return embed.double()


def images():
    return torch.randn(3, CHANNELS, *SIZE, dtype=torch.float64)


def test_a_token_is_a_patch_a_row_after_a_row(device):
    embed, x = embedding().to(device), images().to(device)
    made = embed(x)
    assert made.shape == (3, 1 + 3 * 2, D)
    places = embed.positions.table
    assert_close(made[:, 0], (embed.first + places[0]).expand(3, -1))
    for row in range(3):
        for column in range(2):
            patch = x[:, :, 5 * row : 5 * row + 5, 7 * column : 7 * column + 7]
            i = 1 + 2 * row + column
            expected = embed.project(patch.flatten(1)) + places[i]
            assert_close(made[:, i], expected)


def test_every_pixel_counts_and_the_class_is_read_in_front():
    blocks = [EncoderBlock(D, 3, 17, pre=True) for _ in range(2)]
    model = VisionTransformer(embedding(), blocks, 11, norm=LayerNorm(D))
    model, x = model.double(), images().requires_grad_()
    logits = model(x)
    assert logits.shape == (3, 11)
    expected = model.head(model.encoder(x)[:, 0])
    assert torch.equal(logits, expected)
    up = torch.randn_like(logits)
    assert torch.autograd.grad(logits, x, up)[0].all()


def test_where_a_patch_lies_matters():
    """Without its positions it would be the same: a bag of patches."""
    model = VisionTransformer(
        embedding(), [EncoderBlock(D, 3, 17, pre=True)], 11
    ).double()
    x = images()
    swapped = x.flip(2)  # rows of patches change places, and turn over
    upright = swapped.unflatten(2, (3, 5)).flip(3).flatten(2, 3)
    assert not torch.allclose(model(upright), model(x))
    model.encoder.embed.positions.table.data.zero_()
    assert_close(model(upright), model(x))


def test_dropout_is_for_training():
    embed = PatchEmbedding(
        (4, 4), (1, 1), n_channels=1, d_model=300, dropout=0.5
    )
    x = torch.randn(1, 1, 4, 4)
    share = (embed(x) == 0).float().mean().item()
    assert share == pytest.approx(0.5, abs=0.06)  # of 5,100: 8 deviations
    assert embed.eval()(x).all()


@pytest.mark.parametrize("patch", [(4, 7), (5, 4), (0, 7), (5, -7)])
def test_patches_that_do_not_cover_are_refused(patch):
    with pytest.raises(ValueError, match=r"exactly, but images .*\(15, 14\)"):
        PatchEmbedding(SIZE, patch, n_channels=2, d_model=D)


def test_images_of_another_size_are_refused():
    """Turned by a right angle they have as many patches, but not the same."""
    with pytest.raises(ValueError, match=r"2, 15, 14\), .*\(3, 2, 14, 15\)"):
        embedding()(images().mT)


def test_images_of_another_type_are_refused():
    """PyTorch named two matrices, none of which the caller knows."""
    with pytest.raises(ValueError, match=r"images.* type of the layer, torch"):
        embedding()(images().float())
