"""More of what strangers found: in models, in their masks, as a text goes on.

As in `test_strangers`, each is a single story.
"""

import copy
import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.models import Decoder, Embedding, Encoder, EncoderDecoder
from selfattn.models.beams import beam_search
from selfattn.models.generate import complete
from selfattn.models.heads import SpanHead
from selfattn.multihead import KeysValues
from selfattn.origins import AdditiveAttention

D = 4
NO_HEADS = [
    KeysValues(None, None),
    KeysValues([1], [2]),
    KeysValues(torch.ones(()), torch.ones(())),
    KeysValues(torch.ones(3), torch.ones(3)),
]


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


# What a model is made of


class Told(nn.Module):
    """A number for each head, whatever the distance."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(2))

    def forward(self, n_q, n_k, *, times=1.0):
        return times * self.gain[:, None, None].expand(-1, n_q, n_k)


@pytest.mark.parametrize("model", [Encoder, Decoder, EncoderDecoder])
def test_a_bias_with_options_is_the_models_own(model):
    """`functools.partial` kept its parameters: neither moved nor trained."""
    embed, relative = Embedding(11, 8), partial(Told(), times=2.0)
    blocks = [EncoderBlock(8, 2, 16, pre=True)]
    parts = (embed, blocks)
    if model is EncoderDecoder:
        parts = (
            Encoder(embed, blocks),
            embed,
            [DecoderBlock(8, 2, 16, pre=True)],
        )
    made = model(*parts, relative=relative)
    gain = relative.func.gain
    assert any(gain is x for x in made.parameters())
    tokens = torch.arange(6).view(2, 3)
    given = (tokens,) * (2 if model is EncoderDecoder else 1)
    made.double()(*given).square().sum().backward()
    assert gain.dtype == torch.float64
    assert gain.grad is not None


@pytest.mark.parametrize(
    "shape", [(2, 5, 5, 5), (2, 2, 1, 5), (2, 1, 5, 5), (3, 1, 1, 5)]
)
def test_who_looks_at_whom_is_no_padding(shape):
    """Of a mask for the heads, the first row of the first was taken."""
    head, x = SpanHead(8), torch.randn(2, 5, 8)
    with pytest.raises(ValueError, match="mask must be padding alone"):
        head(x, mask=torch.ones(shape, dtype=torch.bool))
    real = torch.tensor([True, True, True, False, False])
    for padding in (real.view(1, 1, 1, 5), real.expand(2, 1, 1, 5)):
        start, end = head(x, mask=padding)
        assert start[:, 3:].isneginf().all() and end[:, 3:].isneginf().all()
        assert start[:, :3].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_bias_of_more_digits_than_the_values(dtype):
    """As `alibi_bias` makes it, in float32, for a layer in half precision."""
    layer = AdditiveAttention(D, D, 5).to(dtype)
    q, k, v = torch.randn(3, 2, 7, D).to(dtype)
    bias = torch.randn(7, 7, dtype=torch.float64, requires_grad=True)
    wide = bias if dtype == torch.float32 else bias.float()
    output = layer(q, k, v, bias=wide)
    assert output.dtype == dtype
    exact = copy.deepcopy(layer).double()
    wanted = exact(q.double(), k.double(), v.double(), bias=bias)
    digits = 4 * torch.finfo(dtype).eps  # of four roundings, one by one
    assert_close(output.double(), wanted, atol=digits, rtol=digits)
    assert torch.autograd.grad(output.sum(), bias)[0].any()


# How a text goes on


@pytest.mark.parametrize("kept", NO_HEADS)
def test_beams_name_keys_that_are_none(kept):
    def step(tokens, cache):
        return torch.eye(5)[tokens[:, -1]], [kept]

    with pytest.raises((TypeError, ValueError), match=r"cache\[0\]\.k must"):
        beam_search(step, torch.tensor([[1, 2]]), 2, n_beams=2)


def test_a_token_may_be_a_small_number_and_the_last_one_large():
    """200 is no number of int8, in which a chooser may answer."""

    def step(tokens, cache):
        return torch.eye(300)[tokens[:, -1] + 1], None

    def choose(logits):
        return logits.argmax(-1).to(torch.int8)

    prompt = torch.tensor([[3], [7]])
    text = complete(step, prompt, 2, choose=choose, stop=200)
    assert text.tolist() == [[3, 4, 5], [7, 8, 9]]


# What a model steps with, and what its source is masked by


class Forgetful(nn.Module):
    """An attention that keeps nothing; or a block, that is no other."""

    def __init__(self, d_model, n_heads=2):
        super().__init__()
        self.map = nn.Linear(d_model, d_model)

    def forward(self, x, context=None, **options):
        return self.map(x)


def translator(*blocks):
    embed = Embedding(11, D)
    encoder = Encoder(embed, [EncoderBlock(D, 2, 8, pre=True)])
    return EncoderDecoder(encoder, embed, blocks)


IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])


def test_a_source_is_read_by_what_keeps_keys_and_values():
    """AttributeError, where a decoder's step had words for it."""
    block = DecoderBlock(D, 2, 8, pre=True, multihead=Forgetful)
    for blocks in ([block], [DecoderBlock(D, 2, 8, pre=True), Forgetful(D)]):
        with pytest.raises(ValueError, match=r"have keys_values.*Forgetful"):
            translator(*blocks).read(IDS)


def test_a_block_that_cannot_remember_is_told():
    """AttributeError: no attribute 'remember'."""
    told = "a block must have remember, .* but it is Forgetful"
    model = Decoder(Embedding(11, D), [Forgetful(D)])
    with pytest.raises(ValueError, match=told):
        model.step(IDS)
    block = Forgetful(D)
    block.cross = DecoderBlock(D, 2, 8, pre=True).cross
    model = translator(block)
    with pytest.raises(ValueError, match=told):
        model.step(IDS, memory=model.read(IDS))


def test_a_model_without_blocks_takes_no_step():
    """It refused the cache that it had returned: nobody keeps how long."""
    model = Decoder(Embedding(11, D), [])
    assert model(IDS).shape == (2, 3, 11)
    with pytest.raises(ValueError, match="a step needs at least 1 block"):
        complete(model.step, IDS, 3)
    model = translator()
    with pytest.raises(ValueError, match="a step needs at least 1 block"):
        model.step(IDS, memory=model.read(IDS))


def test_the_mask_of_a_source_has_one_row_for_both_who_look():
    """Who looks at whom in the source hid it from the target, likewise."""
    model = translator(DecoderBlock(D, 2, 8, pre=True))
    square = torch.ones(3, 3, dtype=torch.bool).tril()
    for mask in (square, square[None, None]):
        for call in (partial(model, IDS, IDS), partial(model.read, IDS)):
            with pytest.raises(ValueError, match="mask must be the source's"):
                call(mask=mask)
    wanted = model(IDS[:, :2], IDS)
    real = torch.tensor([True, True, False])
    for mask in (real, real[None], real[None, None, None]):
        assert_close(model(IDS, IDS, mask=mask), wanted)
        assert model.read(IDS, mask=mask).mask is mask


@pytest.mark.parametrize("scale", [math.inf, -math.inf])
def test_an_embedding_is_not_scaled_by_infinity(scale):
    """It was, and all of its vectors were infinite, or NaN."""
    with pytest.raises(ValueError, match="scale must be a finite number"):
        Embedding(11, D, scale=scale)
