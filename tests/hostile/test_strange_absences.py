"""What strangers found where something is absent: numbers, above all.

On meta, in PyTorch's fake mode, within `torch.func` and while a model is
exported a tensor has a shape and nothing to look at. What asks it all the same
falls in PyTorch's words.
"""

from functools import partial

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close
from torch.testing._internal.two_tensor import TwoTensor

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.linear import linear_attention
from selfattn.efficient.linformer import LearnedProjection
from selfattn.efficient.longformer import longformer_attention
from selfattn.efficient.performer import performer_attention
from selfattn.efficient.reformer import lsh_attention
from selfattn.efficient.sparse import strided_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.layers import FeedForward, LayerNorm, RMSNorm, SwiGLU
from selfattn.looking_inside import entropy, fewest_keys, spread, weight_on
from selfattn.masks import causal_mask, draw, padding_mask
from selfattn.models import (
    ClassHead,
    Decoder,
    Embedding,
    Encoder,
    EncoderDecoder,
    LabelHead,
    PatchEmbedding,
    SpanHead,
    VisionTransformer,
    WordHead,
    complete,
)
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import (
    AdditiveAttention,
    Convolution,
    Recurrent,
    Translator,
)
from selfattn.positions import (
    LearnedPositions,
    ShawAttention,
    TransformerXLAttention,
)


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


class Called(nn.Module):
    """A function as a module, as an export wants one."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *given):
        return self.f(*given)


def first_key(weights):
    at = torch.zeros(1, dtype=torch.long, device=weights.device)
    return weight_on(weights, at, at[None])


@pytest.mark.parametrize("read", [entropy, spread, first_key])
def test_weights_without_numbers_are_read_all_the_same(read):
    weights = torch.rand(1, 2, 3, 3).softmax(dim=-1)
    wanted = read(weights)
    exported = torch.export.export(Called(read), (weights,)).module()
    assert_close(exported(weights), wanted)
    with FakeTensorMode():
        assert read(torch.ones(1, 2, 3, 3)).shape == wanted.shape
    assert read(weights.to("meta")).shape == wanted.shape


def after(tokens, cache):
    """The next number, of ten."""
    return torch.eye(10, device=tokens.device)[(tokens[:, -1] + 1) % 10], None


def test_a_text_without_numbers_never_ends_early():
    """Whether all texts have ended was asked of numbers that are not there."""

    def go_on(prompt):
        return complete(after, prompt, 4, stop=9)

    prompt = torch.tensor([[3, 4], [8, 7]])
    wanted = torch.tensor([[3, 4, 5, 6, 7, 8], [8, 7, 8, 9, 9, 9]])
    assert torch.equal(go_on(prompt), wanted)
    exported = torch.export.export(Called(go_on), (prompt,)).module()
    assert torch.equal(exported(prompt), wanted)
    mapped = torch.func.vmap(go_on)(prompt[:, None])
    assert torch.equal(mapped[:, 0], wanted)
    assert go_on(prompt.to("meta")).shape == (2, 6)


def own_network(d_model, d_ff):
    """A feed-forward network of PyTorch's layers, without a bias."""
    wide = nn.Linear(d_model, d_ff, bias=False)
    return nn.Sequential(wide, nn.ReLU(), nn.Linear(d_ff, d_model, bias=False))


class OwnBlock(nn.Linear):
    """A block that is a matrix, and mixes nothing."""

    def forward(self, x, **told):
        return super().forward(x)


def small(cls, *blocks):
    """A model of 11 tokens, with positions."""
    positions = LearnedPositions(9, 8)
    embed = Embedding(11, 8, positions=positions, n_segments=2)
    return cls(embed, blocks, norm=LayerNorm(8))


def translates():
    """A small model of two texts."""
    encoder = small(Encoder, EncoderBlock(8, 2, 12, pre=True))
    block = DecoderBlock(8, 2, 12, pre=False)
    return small(partial(EncoderDecoder, encoder), block)


def sees():
    """A small model of images."""
    embed = PatchEmbedding((6, 8), (3, 2), n_channels=1, d_model=8)
    return VisionTransformer(embed, [EncoderBlock(8, 2, 12, pre=True)], 3)


X = torch.ones(2, 5, 8)
IDS = torch.ones(2, 5).long()
HEADS = torch.ones(2, 2, 5, 4)
LAYERS = {
    "block": (partial(EncoderBlock, 8, 2, 12, pre=True), X),
    "post, gated": (
        partial(EncoderBlock, 8, 2, 12, pre=False, feed_forward=SwiGLU),
        X,
    ),
    "norms of PyTorch's": (
        partial(EncoderBlock, 8, 2, 12, pre=True, norm=nn.LayerNorm),
        X,
    ),
    "own network": (
        partial(EncoderBlock, 8, 2, 12, pre=True, feed_forward=own_network),
        X,
    ),
    "block of a decoder": (partial(DecoderBlock, 8, 2, 12, pre=True), X, X),
    "attention": (
        partial(MultiHeadAttention, 8, 2, projection_bias=True),
        X,
    ),
    "feed-forward": (partial(FeedForward, 8, 12), X),
    "gated, with a bias": (partial(SwiGLU, 8, 12, bias=True), X),
    "norm": (partial(LayerNorm, 8), X),
    "root mean square": (partial(RMSNorm, 8), X),
    "encoder": (
        lambda: small(
            Encoder, EncoderBlock(8, 2, 12, pre=True), OwnBlock(8, 8)
        ),
        IDS,
    ),
    "decoder": (lambda: small(Decoder, OwnBlock(8, 8)), IDS),
    "both": (translates, IDS, IDS),
    "images": (sees, torch.ones(2, 1, 6, 8)),
    "class": (partial(ClassHead, 8, 3), X),
    "labels": (partial(LabelHead, 8, 3), X),
    "spans": (partial(SpanHead, 8), X),
    "words": (lambda: WordHead(Embedding(11, 8)), X),
    "recurrent": (lambda: Recurrent(nn.GRU(8, 8, batch_first=True)), X),
    "convolution": (partial(Convolution, 8, kernel=3, n_layers=2), X),
    "translator": (
        lambda: Translator(5, 5, 8, attend=AdditiveAttention(8, 8, 4)),
        IDS,
        IDS,
    ),
    "distances": (partial(ShawAttention, 4, max_distance=2), *[HEADS] * 3),
    "Transformer-XL": (partial(TransformerXLAttention, 2, 4), *[HEADS] * 3),
    "mixtures": (partial(LearnedProjection, 6, 3), X),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_weight_without_numbers_is_told_of(name):
    """Of a matrix that a file lacked, and that stayed on meta, PyTorch made
    whatever lay in memory; of a bias it said no more than that it is there.
    """
    make, *given = LAYERS[name]
    for weight, number in make().named_parameters():
        layer = make()
        layer(*given)
        owner, _, own = weight.rpartition(".")
        empty = nn.Parameter(number.to("meta"))
        setattr(layer.get_submodule(owner), own, empty)
        with pytest.raises(ValueError, match=r"on meta") as raised:
            layer(*given)
        of_all = "must be where the layer is, on meta"
        assert own in str(raised.value) or of_all in str(raised.value)


def test_a_weight_that_a_file_lacks_is_named():
    """It is known by its own name wherever there is one."""
    block = EncoderBlock(8, 2, 16, pre=True)
    saved = block.state_dict()
    del saved["attention.W_v.weight"]
    with torch.device("meta"):
        made = EncoderBlock(8, 2, 16, pre=True)
    made.load_state_dict(saved, strict=False, assign=True)
    its = "W_v must be where x is, on cpu, but its weight is on meta"
    for asked in (made, made.remember, made.attention.heads):
        with pytest.raises(ValueError, match=its):
            asked(X)
    norm = LayerNorm(8)
    norm.shift = nn.Parameter(norm.shift.to("meta"))
    with pytest.raises(ValueError, match=r"^shift .* cpu, but it is on m"):
        norm(X)
    made, x = made.to("meta"), X.to("meta")
    assert made(x).shape == x.shape  # where nothing has numbers, nothing lacks
    with torch.device("meta"):
        scaled = nn.BatchNorm1d(8)
    scaled.weight, scaled.bias = norm.gain, LayerNorm(8).shift
    its = "add_norm_1.norm must be .* but its running_mean is on meta"
    block.add_norm_1.norm = scaled
    with pytest.raises(ValueError, match=its):
        block(X)


IN_FAKE_MODE = {
    "attention": partial(attention, causal=True),
    "fused": partial(fused_attention, causal=True),
    "window": partial(sliding_window_attention, window=2),
    "strided": partial(strided_attention, stride=2),
    "longformer": partial(longformer_attention, window=2),
    "linear": linear_attention,
    "performer": performer_attention,
    "Shaw": ShawAttention(4, max_distance=2),
}


@pytest.mark.parametrize("name", IN_FAKE_MODE)
def test_what_has_numbers_is_not_asked_where_shapes_are_worked_out(name):
    """What a fake mode makes of them has none: weights of a model that was
    there before stood among tokens that were not.
    """
    attend = IN_FAKE_MODE[name]
    given = [torch.ones(2, 5, 4, requires_grad=True) for _ in range(3)]
    attend(*given).sum().backward()
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert attend(*given).shape == (2, 5, 4)
        if name == "Shaw":
            q, k = torch.ones(2, 2, 5, 4)
            assert attend.weights(q, k).shape == (2, 5, 5)


def test_no_number_is_at_hand_where_shapes_are_worked_out():
    lengths, logits = torch.tensor([2, 3]), torch.ones(1, 4)
    layer, x = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    x.requires_grad_()
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert padding_mask(lengths, 4).shape == (2, 1, 1, 4)
        assert entropy(logits / 4).shape == (1,)
        assert layer(x, mask=padding_mask(lengths, 5)).shape == x.shape
        with pytest.raises(ValueError, match="buckets are of numbers, but q"):
            lsh_attention(x, x, x)


@pytest.mark.parametrize("of", [0, 1, 2])
def test_buckets_are_not_of_a_class_with_ways_of_its_own(of):
    """PyTorch said that it makes no list of it; and of such values alone the
    output was no longer of their class, and half of it lost.
    """
    given = [*torch.randn(3, 1, 40, 4)]
    given[of] = TwoTensor(given[of].clone(), given[of].clone())
    with pytest.raises(ValueError, match=f"at hand, .* {'qkv'[of]} is a Two"):
        lsh_attention(*given)
    given[of] = given[of].a
    wanted = lsh_attention(*given)
    given[of] = nn.Parameter(given[of])  # a class, but with no such ways
    assert_close(lsh_attention(*given), wanted)


def test_a_mask_without_numbers_cannot_be_drawn():
    with pytest.raises(ValueError, match=r"that is at hand.*on meta"):
        draw(causal_mask(2, 3, device="meta"))
    mask = causal_mask(2, 3)
    with pytest.raises(ValueError, match=r"at hand.* is a TwoTensor"):
        draw(TwoTensor(mask, mask.clone()))


def test_lengths_without_numbers_are_refused():
    """The reader counts its steps by them."""
    model = Translator(5, 5, 4, attend=AdditiveAttention(4, 4, 4))
    given = torch.ones(2, 3).long(), torch.ones(2, 2).long()
    lengths = torch.tensor([3, 1])
    with pytest.raises(ValueError, match=r"lengths must be .*at hand"):
        torch.export.export(model, (*given, lengths))
    elsewhere = [x.to("meta") for x in (*given, lengths)]
    with pytest.raises(ValueError, match=r"lengths must be .*on meta"):
        model.to("meta")(*elsewhere)


def test_values_without_features_leave_one_key():
    """The sum of the weights has to stay, and nothing else."""
    found = fewest_keys(torch.tensor([0.25, 0.5, 0.25]), torch.zeros(3, 0))
    assert found.sum() == 1 and found.count_nonzero() == 1


@pytest.mark.parametrize("n", [1, 5, 12])
@pytest.mark.parametrize("options", [{"bias": False}, {"groups": 2}])
def test_another_convolution_is_as_good_for_a_short_text(n, options):
    """Taps beyond it were left out, and with them what the layer is like."""
    model = Convolution(4, kernel=2, n_layers=1)
    layer = nn.Conv1d(4, 4, 2, dilation=9, **options)
    model.layers[0] = layer
    x = torch.randn(2, n, 4)
    padded = torch.nn.functional.pad(x.mT, (5, 4))
    assert_close(model(x), x + layer(padded).mT.relu())
