"""What a caller's own functions make, and where nobody had asked for numbers.

As in `test_strangers`, each is a single story: a wrong answer, nonsense that
was taken, or an obscure error.
"""

import copy
import math
from functools import partial

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close

from hostile.test_strangers import CAUSAL, MASKED, D
from selfattn.blocks import EncoderBlock
from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import linear_attention_step
from selfattn.efficient.linformer import (
    LinformerAttention,
    MeanPooling,
    linformer_weights,
)
from selfattn.efficient.reformer import lsh_attention
from selfattn.layers import AddNorm, FeedForward, SwiGLU
from selfattn.masks import as_keep, padding_mask
from selfattn.models import Decoder, Embedding, Encoder, greedy
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import AdditiveAttention, Convolution, Translator
from selfattn.positions import LearnedPositions, TransformerXLAttention

WRONG = (TypeError, ValueError)


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


class Made(nn.Module):
    """A module that makes what it is told to."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, x, *others, **options):
        return self.make(x)

    def weights(self, q, k, **options):
        return self.make(q @ k.mT)


# What functions make

NO_MIXTURES = [
    lambda x: None,
    lambda x: x.mean(0),
    lambda x: x[:1],
    lambda x: x[None],
    lambda x: x.flatten(0, 1),
    lambda x: x[..., :2],
    lambda x: x.double(),
]


@pytest.mark.parametrize("make", NO_MIXTURES, ids=range(len(NO_MIXTURES)))
def test_a_projection_mixes_the_tokens_of_each_sequence(make):
    """Mixtures of one sequence, or of all, were shared by all in silence."""
    q, k, v = torch.randn(3, 2, 6, D)
    with pytest.raises(WRONG, match="project"):
        LinformerAttention(make)(q, k, v)
    with pytest.raises(WRONG, match="project_values"):
        LinformerAttention(MeanPooling(6), make)(q, k, v)


def test_a_projection_to_other_numbers_is_named():
    q, k = torch.randn(2, 6, D)
    with pytest.raises(ValueError, match="project must return numbers of"):
        linformer_weights(q, k, torch.Tensor.double)


NO_ANSWERS = [
    lambda x: None,
    lambda x: x[..., :1],
    lambda x: x[:1],
    lambda x: (x, x),
]


@pytest.mark.parametrize("make", NO_ANSWERS, ids=range(len(NO_ANSWERS)))
def test_what_attends_in_a_translator_answers_each_state(make):
    source, target = torch.zeros(2, 5).long(), torch.zeros(2, 3).long()
    model = Translator(11, 7, 8, attend=Made(make))
    with pytest.raises(WRONG, match=r"attend (must return|returns)"):
        model(source, target)
    with pytest.raises(WRONG, match=r"attend\.weights (must return|returns)"):
        model.alignment(source, target)
    layer = MultiHeadAttention(8, 2, attend=Made(make))
    with pytest.raises(WRONG, match=r"attend\.weights (must return|returns)"):
        layer.weights(torch.randn(2, 5, 8))


def test_what_attends_keeps_the_type_of_numbers():
    layer = MultiHeadAttention(8, 2, attend=Made(torch.Tensor.double))
    with pytest.raises(ValueError, match="attend must return numbers of the"):
        layer(torch.randn(2, 5, 8))


NO_TABLES = [
    lambda n_q, n_k: torch.zeros(n_q, n_k),
    lambda n_q, n_k: torch.zeros(n_k),
    lambda n_q, n_k: torch.zeros(1, 2, n_q, n_k),
    lambda n_q, n_k: torch.zeros(2, n_q + 1, n_k),
]


@pytest.mark.parametrize("make", NO_TABLES, ids=range(len(NO_TABLES)))
@pytest.mark.parametrize("model", [Encoder, Decoder])
def test_relative_positions_are_a_table_for_each_head(model, make):
    """It was told to index a bias that it had never seen."""
    blocks = [EncoderBlock(8, 2, 16, pre=True)]
    told = model(Embedding(11, 8), blocks, relative=make)
    with pytest.raises(ValueError, match="relative must make"):
        told(torch.tensor([[3, 1, 4]]))


def test_an_embedding_of_ones_own_makes_vectors():
    for make in (lambda x: None, lambda x: torch.ones(8), torch.Tensor.long):
        with pytest.raises(WRONG, match="embed"):
            Encoder(Made(make), [])(torch.randn(1, 3, 8))


# Numbers that are too large


@pytest.mark.parametrize("attend", [attention, fused_attention])
@pytest.mark.parametrize("scale", [1e39, -1e39, 1e300])
def test_a_scale_that_float32_has_not_is_refused(attend, scale):
    """It was infinite there, and times a score of zero NaN."""
    q, k, v = torch.zeros(3, 2, 4)
    with pytest.raises(ValueError, match="scale must be a number that float3"):
        attend(q, k, v, scale=scale)


@pytest.mark.parametrize("name", ["attention", "fused", "flash", "shaw"])
@pytest.mark.parametrize("large", [1e39, -1e39, 1e300, -1e300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_finite_bias_neither_hides_nor_spoils(name, large, dtype):
    """Of float64, for q, k and v of less: it was infinite among them."""
    q, k, v = torch.randn(3, 2, 4, D)
    bias = torch.zeros(4, 4, dtype=torch.float64)
    bias[0], bias[1:, 2], bias[3, 0] = large, large, -math.inf
    layer = copy.deepcopy(MASKED[name])
    exact = layer.double() if isinstance(layer, nn.Module) else layer
    wanted = exact(q.double(), k.double(), v.double(), bias=bias)
    attend = layer.to(dtype) if isinstance(layer, nn.Module) else layer
    bias.requires_grad_()
    output = attend(q.to(dtype), k.to(dtype), v.to(dtype), bias=bias)
    assert_close(output, wanted.to(dtype), atol=3e-3, rtol=3e-3)
    (grad,) = torch.autograd.grad(output[:, 0].sum(), bias)
    assert grad[0].any() and grad.isfinite().all()


# Queries that see nothing


@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("by", ["mask", "bias"])
@pytest.mark.parametrize("name", [*MASKED, "transformer-xl"])
def test_a_spoilt_query_that_sees_nothing_is_not_felt(name, by, poison):
    """As the padding at the left is: zero times NaN went back to all keys."""
    table = torch.ones(5, 5, dtype=torch.bool)
    table[2] = False
    if by == "bias":
        table = torch.zeros(5, 5).masked_fill(~table, -math.inf)
    others = {"transformer-xl": TransformerXLAttention(2, D), **MASKED}
    attend = partial(others[name], **{by: table})
    unfelt_by(attend, 5, [2], poison)


@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("attend", [*MASKED.values(), *CAUSAL.values()])
def test_a_spoilt_query_before_all_keys_is_not_felt(attend, poison):
    unfelt_by(partial(attend, causal=True), 7, [0, 1], poison)


def unfelt_by(attend, n_q, idle, poison):
    layer = attend.func
    own = [*layer.parameters()] if isinstance(layer, nn.Module) else []
    q = torch.randn(2, n_q, D)
    k, v = torch.randn(2, 2, 5, D)
    found = []
    for bad in (1.0, poison):
        q[:, idle] = bad
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]
        output = attend(*inputs)
        assert not output[:, idle].any()
        grads = torch.autograd.grad(
            output.square().sum(), [*inputs, *own], allow_unused=True
        )
        found.append([output, *(g for g in grads if g is not None)])
    for clean, spoilt in zip(*found, strict=True):
        assert_close(spoilt, clean)


@pytest.mark.parametrize("attend", [*MASKED.values(), *CAUSAL.values()])
@pytest.mark.parametrize("causal", [False, True])
def test_a_spoilt_query_without_keys_is_not_felt(attend, causal):
    q = torch.full((2, 7, D), math.nan, requires_grad=True)
    k, v = torch.randn(2, 2, 0, D)
    output = attend(q, k, v, causal=causal)
    assert output.shape == (2, 7, D)
    assert not output.any()
    (grad,) = torch.autograd.grad(output.sum(), q, allow_unused=True)
    assert grad is None or not grad.any()


# Where nobody had asked for numbers


@pytest.mark.parametrize(
    "layer",
    [
        MultiHeadAttention(8, 2),
        FeedForward(8, 16),
        SwiGLU(8, 16),
        Convolution(8, kernel=3, n_layers=1),
        lambda x: AdditiveAttention(8, 8, 4)(x, x, x),
    ],
)
def test_autocast_casts_no_float64(layer):
    """PyTorch said: expected m1 and m2 to have the same dtype."""
    x = torch.randn(2, 5, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).shape == x.shape
        with pytest.raises(ValueError, match="must have the type of the laye"):
            layer(x.double())


class Padded(nn.Module):
    """A layer that is told lengths."""

    def __init__(self):
        super().__init__()
        self.layer = MultiHeadAttention(8, 2)

    def forward(self, x, lengths):
        return self.layer(x, mask=padding_mask(lengths, x.shape[1]))


def test_a_model_that_is_told_lengths_is_exported():
    """It could not: whether a length is too large depends on the lengths."""
    model, x = Padded(), torch.randn(2, 5, 8)
    given = (x, torch.tensor([3, 5]))
    exported = torch.export.export(model, given, strict=False).module()
    lengths = torch.tensor([1, 4])
    assert_close(exported(x, lengths), model(x, lengths))


def test_fake_tensors_have_no_numbers_to_ask_for():
    with FakeTensorMode():
        assert padding_mask(torch.tensor([3, 1]), 4).shape == (2, 1, 1, 4)
        assert as_keep(torch.zeros(3, 3)).shape == (3, 3)
        assert greedy(torch.randn(2, 5)).shape == (2,)
        with pytest.raises(ValueError, match="buckets are of numbers"):
            lsh_attention(*torch.randn(3, 5, D))


# What is the caller's, and what is not


def test_learned_positions_hand_out_a_copy():
    """Whoever added tokens to it in place changed the table."""
    positions = LearnedPositions(6, 4)
    before = positions.table.detach().clone()
    with torch.no_grad():
        positions(3).add_(1.0)
    assert torch.equal(positions.table, before)


def test_a_memory_is_not_the_callers_own_key():
    """With a feature map that gives back what it is given."""
    q, k, v = torch.rand(3, 4)
    _, memory = linear_attention_step(q, k, v, feature_map=nn.Identity())
    before = memory.total.clone()
    k.zero_()  # room for the next token
    assert torch.equal(memory.total, before)


def test_a_bias_of_float64_decides_as_it_would_there():
    bias = torch.tensor([[1e300, -1e300]], dtype=torch.float64)
    q, k, v = torch.zeros(1, 2), torch.zeros(2, 2), torch.eye(2)
    for attend in (attention, fused_attention, flash_attention):
        assert attend(q, k, v, bias=bias).tolist() == [[1.0, 0.0]]


# What layers are handed


NOT_ALIKE = [
    lambda x, **_: None,
    lambda x, **_: x[:1],
    lambda x, **_: x[..., :2],
    lambda x, **_: x.double(),
    lambda x, **_: x.transpose(0, 1),
    nn.Identity,
]


@pytest.mark.parametrize("make", NOT_ALIKE, ids=range(len(NOT_ALIKE)))
def test_a_rotation_leaves_as_many_numbers(make):
    """Keys were kept that are none, and the context was told to be wrong."""
    layer, x = MultiHeadAttention(8, 2), torch.randn(3, 5, 8)
    layer.rotate = make
    for ask in (layer, layer.keys_values, layer.weights):
        with pytest.raises(WRONG, match="rotate"):
            ask(x)


@pytest.mark.parametrize("make", NOT_ALIKE, ids=range(len(NOT_ALIKE)))
def test_an_activation_leaves_as_many_numbers(make):
    """One for all texts was taken for them; others got a product's error."""
    with pytest.raises(WRONG, match="activation"):
        FeedForward(8, 16, activation=make)(torch.randn(3, 5, 8))


@pytest.mark.parametrize("make", NOT_ALIKE[:-1])
@pytest.mark.parametrize("pre", [False, True])
def test_a_norm_leaves_as_many_numbers(make, pre):
    path = AddNorm(8, pre=pre, norm=lambda d: Made(make))
    with pytest.raises(WRONG, match="norm"):
        path(torch.randn(3, 5, 8), torch.zeros_like)


@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_padding_at_the_left_does_not_spoil_the_layer(poison):
    """Its keys were not felt, but its queries were, by their matrix."""
    layer = MultiHeadAttention(8, 2, projection_bias=True)
    x, mask = torch.randn(2, 5, 8), padding_mask(torch.tensor([3, 3]), 5)
    mask = mask.flip(-1)
    found = []
    for bad in (0.0, poison):
        x[:, :2] = bad
        output = layer(x, mask=mask, causal=True)
        total = output.square().sum()
        grads = torch.autograd.grad(total, [*layer.parameters()])
        found.append([output, *grads])
    for clean, spoilt in zip(*found, strict=True):
        assert_close(spoilt, clean)
