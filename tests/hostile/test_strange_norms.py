"""What strangers found of norms of their own, of caches, and of adapters."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.layers import FeedForward, LayerNorm
from selfattn.models import Decoder, Embedding, Encoder, EncoderDecoder
from selfattn.multihead import KeysValues, MultiHeadAttention

X = torch.randn(2, 5, 8)
NUMBERS = torch.tensor([[3, 1, 4], [1, 5, 9]])


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


class Doubling(nn.Module):
    """A norm that works in place."""

    def __init__(self, d):
        super().__init__()

    def forward(self, x):
        return x.mul_(2)


class First(nn.Module):
    """A norm that keeps one of many."""

    def __init__(self, d=8):
        super().__init__()

    def forward(self, x):
        return x[:1]


class InPlace(MultiHeadAttention):
    """A layer that writes into what it is to remember."""

    def keys_values(self, context, past=None):
        return super().keys_values(context.add_(1), past)


# Norms


@pytest.mark.parametrize("block", [EncoderBlock, DecoderBlock])
@pytest.mark.parametrize(
    "parts",
    [
        {"pre": True, "norm": Doubling},
        {"pre": False, "multihead": InPlace},
    ],
)
def test_what_is_remembered_is_left_as_it_was(block, parts):
    """`forward` made a copy, `remember` none: x was the caller's."""
    x = X.clone()
    block(8, 2, 16, **parts).remember(x)
    assert torch.equal(x, X)


@torch.no_grad()
def test_a_step_is_the_model_whatever_its_norms_do():
    """It was off by 0.002, as x had been doubled on the way."""
    block = EncoderBlock(8, 2, 16, pre=True, norm=Doubling)
    model = Decoder(Embedding(11, 8), [block])
    assert_close(model.step(NUMBERS)[0], model(NUMBERS)[:, -1])


def test_what_a_norm_makes_is_looked_at_before_it_is_remembered():
    """Keys of one sequence were kept for two."""
    block = EncoderBlock(8, 2, 16, pre=True, norm=First)
    with pytest.raises(ValueError, match="norm must return the shape"):
        block.remember(X)


def writers():
    """Models with a last norm that keeps one text of many, and their calls."""
    embed = Embedding(11, 8)
    writer = Decoder(embed, [EncoderBlock(8, 2, 16, pre=True)], norm=First())
    reader = Encoder(embed, [EncoderBlock(8, 2, 16, pre=True)])
    both = EncoderDecoder(
        reader, embed, [DecoderBlock(8, 2, 16, pre=True)], norm=First()
    )
    memory = both.read(NUMBERS)
    return {
        "decoder": lambda: writer(NUMBERS),
        "its step": lambda: writer.step(NUMBERS),
        "encoder-decoder": lambda: both(NUMBERS, NUMBERS),
        "a step of that": lambda: both.step(NUMBERS, memory=memory),
    }


@pytest.mark.parametrize("call", list(writers()))
def test_a_last_norm_is_looked_at(call):
    """Of two texts, the logits of one came out."""
    with pytest.raises(ValueError, match="norm must return the shape"):
        writers()[call]()


# Caches


@pytest.mark.parametrize("kept", [torch.complex64, torch.bool, torch.int64])
def test_under_autocast_a_cache_is_of_numbers_all_the_same(kept):
    """Keys that were complex, and values True and False, were answered."""
    layer = MultiHeadAttention(8, 2)
    right = torch.ones(2, 2, 5, 4)
    for k, v in ((right.to(kept), right), (right, right.to(kept))):
        with (
            torch.autocast("cpu", torch.bfloat16),
            pytest.raises(ValueError, match="must be floating-point"),
        ):
            layer(X, KeysValues(k, v))
        with (
            torch.autocast("cpu", torch.bfloat16),
            pytest.raises(ValueError, match="must be floating-point"),
        ):
            layer.keys_values(X, KeysValues(k, v))


# Adapters


class Adapter(nn.Module):
    """Two small matrices in float32, trained beside one that is not."""

    def __init__(self, base):
        super().__init__()
        self.in_features, self.out_features = base.in_features, 8
        self.down = nn.Parameter(torch.randn(2, base.in_features))
        self.up = nn.Parameter(torch.randn(8, 2))
        self.base = base

    def forward(self, x):
        near = x.float() @ self.down.T @ self.up.T
        return self.base(x) + near.to(x.dtype)


class Quantised(nn.Module):
    """Weights in whole numbers, and what they are multiplied by."""

    def __init__(self, base):
        super().__init__()
        self.in_features, self.out_features = base.in_features, 8
        codes = (torch.randn(8, base.in_features) * 100).to(torch.int8)
        self.codes = nn.Parameter(codes, requires_grad=False)

    def forward(self, x):
        return x @ (self.codes.to(x.dtype) / 100).T


def test_an_adapter_in_float32_may_stand_on_what_is_in_half():
    """The layer was said to be of float32, as its first parameter was."""
    layer = MultiHeadAttention(8, 2).bfloat16()
    network = FeedForward(8, 8).bfloat16()
    layer.W_q, network.W_in = Adapter(layer.W_q), Adapter(network.W_in)
    x = X.bfloat16()
    assert layer(x).dtype == network(x).dtype == torch.bfloat16
    with pytest.raises(ValueError, match="must have the type of the layer"):
        layer(X.double())


def test_so_may_weights_in_whole_numbers():
    """x was to be of torch.int8, which nobody can give."""
    layer = MultiHeadAttention(8, 2)
    for name in ("W_q", "W_k", "W_v", "W_o"):
        setattr(layer, name, Quantised(getattr(layer, name)))
    assert layer(X).shape == X.shape
    assert layer.bfloat16()(X.bfloat16()).dtype == torch.bfloat16
    layer.W_k = Adapter(Quantised(layer.W_k))  # the adapter alone is trained
    assert layer(X.bfloat16()).dtype == torch.bfloat16


def test_a_matrix_of_pytorch_is_held_to_its_weight():
    """Whatever type its bias has."""
    layer = MultiHeadAttention(8, 2, projection_bias=True)
    layer.W_q.bias.data = layer.W_q.bias.data.double()
    with pytest.raises(ValueError, match=r"type of the layer, torch\.float32"):
        layer(X.double())
    norm = LayerNorm(8)
    assert norm(X.bfloat16()).dtype == torch.bfloat16  # which is held to none
