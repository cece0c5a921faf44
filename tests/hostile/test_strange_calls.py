"""What strangers found of functions and blocks that cannot be called as they
are: Python said so, of a call that nobody had written.

As in `test_strangers`, each is a single story.
"""

import json
from functools import partial

import pytest
import torch
from torch import nn

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.layers import FeedForward
from selfattn.models import (
    Decoder,
    Embedding,
    Encoder,
    EncoderDecoder,
    PatchEmbedding,
    beam_search,
    complete,
    keep_top_k,
)
from selfattn.models.config import LLAMA, check_config
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import alibi_bias, sinusoidal


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


TOKENS = torch.tensor([[1, 2]])


def reads():
    return EncoderBlock(8, 2, 8, pre=True)


def writes():
    return DecoderBlock(8, 2, 8, pre=True)


def model():
    return Decoder(Embedding(11, 8), [reads()])


def both(*blocks):
    return EncoderDecoder(
        Encoder(Embedding(11, 8), []), Embedding(11, 8), blocks
    )


def told(tokens, cache):
    return torch.zeros(len(tokens), 3), None


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: complete(model(), TOKENS, 1), "step"),
        (lambda: complete(both(writes()).step, TOKENS, 1), "step"),
        (lambda: beam_search(model(), TOKENS, 1, n_beams=2), "step"),
        (lambda: complete(told, TOKENS, 1, choose=keep_top_k), "choose"),
        (lambda: Embedding(11, 8, positions=sinusoidal), "positions"),
        (lambda: Embedding(11, 8, positions=lambda n: n), "positions"),
        (lambda: MultiHeadAttention(8, 2, rotate=lambda x: x), "rotate"),
        (lambda: Encoder(nn.Identity(), [], relative=alibi_bias), "relative"),
        (
            lambda: Decoder(Embedding(3, 8), [], relative=lambda n: n),
            "relative",
        ),
        (lambda: Encoder(nn.Identity(), [writes()]), "a block"),
        (lambda: Encoder(nn.Identity(), [nn.Linear(8, 8)]), "a block"),
        (lambda: Decoder(Embedding(11, 8), [writes()]), "a block"),
        (lambda: both(reads()), "a block"),
        (lambda: FeedForward(8, 8, activation=lambda: 0), "activation"),
        (lambda: FeedForward(8, 8, activation=nn.ReLU), "activation"),
    ],
)
def test_what_cannot_be_called_as_it_will_be_is_named(call, name):
    with pytest.raises(TypeError, match=f"^{name} must "):
        call()


def test_what_can_be_called_so_is_taken():
    """By name, by place, by any number, or where nobody can tell."""

    class Loose(nn.Module):
        def forward(self, *args, **options):
            return args[0]

    relative = partial(alibi_bias, 2)
    embed = Embedding(11, 8, positions=lambda n, offset: torch.zeros(n, 8))
    encoder = Encoder(embed, [Loose(), reads()], relative=relative)
    assert encoder(TOKENS).shape == (1, 2, 8)
    assert Encoder(embed, [torch.compile(reads(), backend="eager")])
    choose = partial(torch.argmax, dim=-1)
    assert complete(told, TOKENS, 1, choose=choose).shape == (1, 3)
    assert FeedForward(8, 8, activation=torch.relu)  # not in Python


def test_a_class_is_no_function():
    """It makes a module of the tokens, and says nothing of it."""
    with pytest.raises(TypeError, match="must be a function or a module"):
        FeedForward(8, 8, activation=nn.ReLU)


def test_segments_are_for_an_embedding_that_takes_them():
    encoder = Encoder(nn.Identity(), [reads()])
    with pytest.raises(ValueError, match=r"segments .* embed is Identity"):
        encoder(torch.zeros(1, 2, 8), segments=TOKENS)


@pytest.mark.parametrize(
    "attend", [flash_attention, partial(sliding_window_attention, window=2)]
)
def test_a_mechanism_set_later_that_drops_nothing_is_named(attend):
    layer = MultiHeadAttention(8, 2, dropout=0.1)
    layer.attend = attend
    with pytest.raises(ValueError, match="dropout of weights needs a mech"):
        layer(torch.zeros(1, 3, 8))
    layer.eval()
    assert layer(torch.zeros(1, 3, 8)).shape == (1, 3, 8)


@pytest.mark.parametrize("value", [5, "a", []])
@pytest.mark.parametrize(
    ("make", "name", "given"),
    [
        (lambda: MultiHeadAttention(8, 2), "rotate", torch.zeros(1, 2, 8)),
        (lambda: FeedForward(8, 8), "activation", torch.zeros(1, 2, 8)),
        (lambda: Embedding(11, 8), "positions", TOKENS),
        (lambda: model(), "relative", TOKENS),
    ],
)
def test_what_is_set_later_and_is_no_function_is_named(
    make, name, given, value
):
    layer = make()
    setattr(layer, name, value)
    with pytest.raises(TypeError, match=f"{name} must be a function"):
        layer(given)


def test_a_scale_that_float32_has_not_makes_no_embedding():
    """All features were infinite."""
    with pytest.raises(ValueError, match="scale must be a number that float"):
        Embedding(11, 8, scale=1e300)


def test_sizes_in_a_list_are_not_the_callers_list():
    image, patch = [4, 4], [2, 2]
    embed = PatchEmbedding(image, patch, n_channels=1, d_model=3)
    image[0] = patch[0] = 4
    assert embed(torch.zeros(1, 1, 4, 4)).shape == (1, 5, 3)


def test_a_copy_for_pytorch_draws_no_numbers():
    """Those from PyTorch's layer drew none; the way back did."""
    layer, before = MultiHeadAttention(8, 2), torch.get_rng_state()
    copied, x = layer.to_torch(), torch.randn(1, 3, 8)
    torch.set_rng_state(before)
    layer.to_torch()
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(copied(x, x, x)[0], layer(x))


@pytest.mark.parametrize(
    "told",
    [
        {"rope_scaling": "linear"},
        {"rope_scaling": ["linear", 2]},
        {"rope_scaling": {"factor": 2.0}},
        {"rope_scaling": {"rope_type": "default", "type": "linear"}},
        {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}},
    ],
)
def test_a_rotation_told_in_another_form_is_not_passed_over(told, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(told))
    with pytest.raises(ValueError, match="must reckon as ours"):
        check_config(tmp_path / "model.safetensors", LLAMA)
