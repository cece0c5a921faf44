"""What strangers found: each input had a wrong answer, or an obscure error.

They are no kinds of hostility, as those beside this file, but single stories;
and each is asked of every mechanism that could have the same one.
"""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.cost import flops
from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import (
    Memory,
    linear_attention,
    linear_attention_step,
    linear_weights,
)
from selfattn.efficient.longformer import longformer_attention
from selfattn.efficient.performer import performer_attention
from selfattn.efficient.reformer import lsh_attention
from selfattn.efficient.sparse import fixed_attention, strided_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.looking_inside import fewest_keys, heads_of, weight_on
from selfattn.models import Decoder, Embedding, Encoder, EncoderDecoder
from selfattn.models.encoder_decoder import Memory as Read
from selfattn.models.heads import best_span
from selfattn.multihead import KeysValues, MultiHeadAttention
from selfattn.origins import (
    AdditiveAttention,
    MultiplicativeAttention,
    Translator,
)
from selfattn.positions import ShawAttention, t5_bucket

D = 4
# Made before any test's seed; and PyTorch starts each process with another.
torch.manual_seed(0)
MASKED = {
    "attention": attention,
    "fused": fused_attention,
    "flash": flash_attention,
    "tiles": partial(flash_attention, block_q=3, block_k=2),
    "shaw": ShawAttention(D, max_distance=2),
    "bahdanau": AdditiveAttention(D, D, 5),
    "luong": MultiplicativeAttention(D, D),
}
CAUSAL = {
    "window": partial(sliding_window_attention, window=2),
    "longformer": partial(longformer_attention, window=2),
    "strided": partial(strided_attention, stride=3),
    "fixed": partial(fixed_attention, stride=3),
    "lsh": partial(lsh_attention, n_buckets=2),
    "linear": linear_attention,
    "performer": partial(performer_attention, n_features=16),
}
masked = pytest.mark.parametrize("attend", MASKED.values(), ids=MASKED)
causally = pytest.mark.parametrize("attend", CAUSAL.values(), ids=CAUSAL)


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


def last_hidden(n):
    mask = torch.ones(n, n, dtype=torch.bool)
    mask[:, -1] = False
    return mask


def passed_back(attend, q, k, v, rows=slice(None), by=2.0):
    inputs = [x.clone().requires_grad_() for x in (q, k, v)]
    output = attend(*inputs)
    total = by * output[..., rows, :].sum()
    layer = getattr(attend, "func", attend)
    own = [*layer.parameters()] if isinstance(layer, nn.Module) else []
    return torch.autograd.grad(total, [*inputs, *own])


# What is hidden


@masked
def test_a_hidden_value_as_large_as_can_be_passes_nothing_back(attend):
    """Room for a cache that nothing was written to: 1e38 times a gradient is
    infinite, and times the weight of zero NaN, for all queries and keys.
    """
    q, k, v = torch.randn(3, 2, 7, D)
    attend = partial(attend, mask=last_hidden(7))
    k[:, -1], v[:, -1] = 0.0, 0.0
    wanted = passed_back(attend, q, k, v)
    v[:, -1] = 3e38
    for found, want in zip(passed_back(attend, q, k, v), wanted, strict=True):
        assert_close(found, want)


@causally
def test_a_large_value_of_the_future_passes_nothing_back(attend):
    q, k, v = torch.randn(3, 2, 7, D)
    before = slice(5)
    attend = partial(attend, causal=True)
    wanted = passed_back(attend, q, k, v, before)
    v[:, -1] = 3e38
    for found, want in zip(
        passed_back(attend, q, k, v, before), wanted, strict=True
    ):
        assert_close(found, want)


@pytest.mark.parametrize("causal", [False, True])
def test_values_that_fit_alone_have_an_average_though_their_sum_is_too_large(
    causal,
):
    """Seven of 2e38 are summed up before they are divided: infinity."""
    q, k = torch.randn(2, 7, D)
    v = 2e38 + 1e36 * torch.randn(7, D)
    passed = 1e-30 * torch.randn(7, D)

    def made(*given):
        given = [x.clone().requires_grad_() for x in given]
        y = linear_attention(*given, causal=causal)
        return y, *torch.autograd.grad(y, given, passed.to(y.dtype))

    wanted = made(q.double(), k.double(), v.double())
    for found, want in zip(made(q, k, v), wanted, strict=True):
        largest = float(want.detach().abs().max())
        assert_close(found / largest, (want / largest).float())


@pytest.mark.parametrize("name", ["attention", "fused", "flash", "tiles"])
def test_who_sees_a_large_value_passes_back_what_it_should(name):
    """It is not taken for a hidden one: on the way back it counts."""
    q, k, v = torch.randn(3, 2, 7, D).double()
    mask = torch.ones(7, 7, dtype=torch.bool)
    mask[:3, 3] = False
    v[0, 3] = 1e160
    attend = partial(MASKED[name], mask=mask)
    found = passed_back(attend, q, k, v, by=1e-160)
    attend = partial(F.scaled_dot_product_attention, attn_mask=mask)
    wanted = passed_back(attend, q, k, v, by=1e-160)
    for x, y in zip(found, wanted, strict=True):
        assert_close(x, y)
    assert found[0][0, 3:].abs().min() > 1e-9


@masked
def test_a_hidden_key_that_is_a_parameter_is_not_felt_either(attend):
    q, k, v = torch.randn(3, 7, D)
    k[-1] = math.nan
    memory = nn.Parameter(k)
    asked = q.clone().requires_grad_()
    output = attend(asked, memory, v, mask=last_hidden(7))
    (grad,) = torch.autograd.grad(output.sum(), asked)
    assert grad.isfinite().all()


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["bahdanau", "luong"])
def test_a_spoilt_hidden_key_does_not_spoil_the_matrix(name, poison):
    q, k, v = torch.randn(3, 7, D)
    layer, mask = MASKED[name], last_hidden(7)
    found = []
    for bad in (0.0, poison):
        k[-1] = bad
        total = layer(q, k, v, mask=mask).sum()
        found.append(torch.autograd.grad(total, [*layer.parameters()]))
    for clean, spoilt in zip(*found, strict=True):
        assert_close(spoilt, clean)


@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_a_padded_context_that_is_spoilt_does_not_spoil_the_layer(poison):
    layer = MultiHeadAttention(8, 2, projection_bias=True)
    x, context = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    mask, found = last_hidden(7)[:5], []
    for bad in (0.0, poison):
        context[:, -1] = bad
        total = layer(x, context, mask=mask).square().sum()
        found.append(torch.autograd.grad(total, [*layer.parameters()]))
    for clean, spoilt in zip(*found, strict=True):
        assert_close(spoilt, clean)


# Numbers


@pytest.mark.parametrize("name", ["attention", "fused", "flash", "tiles"])
def test_an_infinite_bias_is_no_large_number(name):
    """Its row is NaN, by definition; where it is masked, it does nothing."""
    q, k, v = torch.randn(3, 7, D)
    bias = torch.zeros(7, 7)
    bias[2, 3] = math.inf
    output = MASKED[name](q, k, v, bias=bias)
    assert output[2].isnan().all()
    assert output[[0, 1, 3, 4, 5, 6]].isfinite().all()
    seen = bias < 1
    masked_out = MASKED[name](q, k, v, bias=bias, mask=seen)
    assert_close(masked_out, attention(q, k, v, mask=seen))


@pytest.mark.parametrize("scale", [0, -0.5, -1e30, 1e-45])
def test_a_scale_of_nothing_or_less_hides_the_future_all_the_same(scale):
    """PyTorch's kernel scaled the -inf of what is hidden, too: NaN."""
    q, k, v = torch.randn(3, 2, 7, D)
    found = fused_attention(q, k, v, causal=True, scale=scale)
    assert_close(found, attention(q, k, v, causal=True, scale=scale))


def exactly(q, k, causal):
    """Weights of linear attention, where each token is one feature wide."""
    similarity = (q[..., :, None, :] + k[..., None, :, :]).sum(-1)
    if causal:
        hidden = torch.ones_like(similarity, dtype=torch.bool).triu(1)
        similarity = similarity.masked_fill(hidden, -math.inf)
    return similarity.softmax(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [-30.0, -92.0, -100.0, -300.0])
def test_small_features_have_digits_too(size, causal, dtype):
    """exp(-100) has two digits in float32, 1 / exp(-90) is infinite."""
    k = (size + torch.rand(2, 70, 1)).to(dtype)
    q, v = torch.zeros(2, 70, 1, dtype=dtype) - 1, torch.randn(2, 70, 3)
    v = v.to(dtype)
    weights = exactly(q.double(), k.double(), causal)
    assert_close(
        linear_weights(q, k, causal=causal).double(),
        weights,
        atol=1e-6,
        rtol=1e-5,
    )
    inputs = [x.clone().requires_grad_() for x in (q, k, v)]
    output = linear_attention(*inputs, causal=causal)
    close = {"atol": 1e-6, "rtol": 1e-5} if dtype == torch.float32 else {}
    assert_close(output, (weights @ v.double()).to(dtype), **close)
    wide = [x.double().requires_grad_() for x in (q, k, v)]
    wanted = exactly(*wide[:2], causal) @ wide[2]
    grad = torch.randn(output.shape).to(dtype)
    pairs = zip(
        torch.autograd.grad(output, inputs, grad),
        torch.autograd.grad(wanted, wide, grad.double()),
        strict=True,
    )
    for found, want in pairs:
        assert_close(found.double(), want, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_shares_are_summed_in_float32_under_autocast(dtype):
    q, k = torch.randn(2, 7, D)
    with torch.autocast("cpu", dtype):
        weights = linear_weights(q, k, causal=True)
    wanted = linear_weights(q, k, causal=True)
    assert_close(weights, wanted, atol=2e-2, rtol=2e-2)
    assert_close(weights.sum(-1), torch.ones(7))


def test_a_step_whose_weights_are_as_good_as_none_gives_nothing():
    token = torch.full((1, 2), -400.0, requires_grad=True)
    output, _ = linear_attention_step(token, token, torch.ones(1, 3))
    assert not output.any()
    (grad,) = torch.autograd.grad(output.sum(), token)
    assert grad.isfinite().all()


def test_the_furthest_distance_of_all_is_far():
    """The lowest number of 64 bits has no opposite, and was a bucket."""
    lowest = torch.tensor([-(2**63), 1 - 2**63, 2**63 - 1])
    assert t5_bucket(lowest).tolist() == [15, 15, 31]
    assert t5_bucket(lowest, causal=True).tolist() == [31, 31, 0]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ([0.0, math.nan, 2.0], [0.0, 1.0, 2.0]),
        ([0.0, math.inf, 2.0], [0.0, -math.inf, 2.0]),
        ([-math.inf] * 3, [0.0, 1.0, 2.0]),
        ([], []),
    ],
)
def test_no_span_is_chosen_among_nan_or_nothing(start, end):
    with pytest.raises(ValueError, match="start is"):
        best_span(torch.tensor([start]), torch.tensor([end]))


# Tensors


@pytest.mark.parametrize(
    "attend",
    [*MASKED.values(), *CAUSAL.values()],
    ids=[*MASKED, *CAUSAL],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_tensor_is_named(attend):
    nested = torch.nested.nested_tensor([torch.ones(3, D), torch.ones(5, D)])
    with pytest.raises((TypeError, ValueError), match="but it is a nested"):
        attend(nested, nested, nested)


@pytest.mark.parametrize("name", ["attention", "fused", "flash", "tiles"])
def test_a_bias_of_one_byte_is_refused_by_all_alike(name):
    q = torch.randn(7, D)
    bias = torch.zeros(7, 7, dtype=torch.float8_e5m2)
    with pytest.raises(ValueError, match="of two bytes at least"):
        MASKED[name](q, q, q, bias=bias)


def test_what_buckets_give_may_be_changed_in_place():
    q = torch.randn(7, D, requires_grad=True)
    output = lsh_attention(q, q, q, n_buckets=2)
    twice = 2 * output.detach()
    assert torch.equal(output.mul_(2), twice)


def test_a_model_is_exported_for_any_length():
    """Lengths are symbols then, which no set takes."""
    model = Decoder(Embedding(11, 8), [EncoderBlock(8, 2, 16, pre=True)])
    tokens = torch.arange(12).view(3, 4) % 11
    any_size = torch.export.Dim.AUTO
    program = torch.export.export(
        model.eval(), (tokens,), dynamic_shapes=({0: any_size, 1: any_size},)
    )
    fewer = tokens[:2, :3]
    assert_close(program.module()(fewer), model(fewer))


# What is kept


NO_HEADS = [
    KeysValues(None, None),
    KeysValues([1], [2]),
    KeysValues(torch.ones(()), torch.ones(())),
    KeysValues(torch.ones(3), torch.ones(3)),
]


@pytest.mark.parametrize("kept", NO_HEADS)
def test_keys_that_are_none_are_named(kept):
    tokens, x = torch.zeros(2, 3).long(), torch.randn(2, 3, 8)
    embed, block = Embedding(11, 8), EncoderBlock(8, 2, 16, pre=True)
    decoder, writer = Decoder(embed, [block]), DecoderBlock(8, 2, 16, pre=True)
    both = EncoderDecoder(Encoder(embed, [block]), embed, [writer])
    for ask in (
        lambda: decoder.step(tokens, [kept]),
        lambda: both.step(tokens, memory=Read([kept], None)),
        lambda: block(x, kept=kept),
        lambda: block.remember(x, kept),
        lambda: writer(x, kept),
    ):
        with pytest.raises((TypeError, ValueError), match=r"\.k must"):
            ask()
    for no_list in (None, 3, "ab"):
        with pytest.raises(TypeError, match=r"memory\.kept must be a list"):
            both.step(tokens, memory=Read(no_list, None))


def test_what_a_translator_read_must_be_of_the_same_texts():
    """The states of one text were shared out to three, and nothing said."""
    layer = AdditiveAttention(8, 8, 8)
    model = Translator(11, 7, 8, attend=layer)
    target = torch.zeros(3, 1).long()
    read = model.read(torch.zeros(3, 5).long())
    for bad in (
        read._replace(states=read.states[:1]),
        read._replace(states=read.states[0]),
        read._replace(summary=torch.ones(())),
        read._replace(summary=None),
        read._replace(states=[1.0]),
    ):
        with pytest.raises((TypeError, ValueError), match="memory"):
            model.step(target, memory=bad)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_a_memory_of_wider_numbers_is_refused(dtype):
    token = torch.randn(2, D)
    _, memory = linear_attention_step(token, token, token)
    wide = Memory(*(x.to(dtype) for x in memory))
    with pytest.raises(ValueError, match="memory must be of tokens"):
        linear_attention_step(token, token, token, wide)
    half = Memory(*(x.half() for x in memory))
    output, longer = linear_attention_step(token, token, token, half)
    assert output.dtype == longer.pairs.dtype == torch.float32


# What a layer binds


def gained(q, k, v, *, mask=None, bias=None, causal=False, **gains):
    tables = {"mask": mask, "bias": bias, "causal": causal}
    output = attention(q, k, v, **tables)
    for gain in gains.values():
        output = gain(output) if callable(gain) else output * gain
    return output


@pytest.mark.parametrize("name", ["keys", "values", "items", "pop"])
@pytest.mark.parametrize(
    "own", [nn.Parameter(torch.ones(4)), nn.Linear(4, 4)], ids=["one", "two"]
)
def test_a_parameter_may_be_called_as_a_dictionary_calls_its_own(name, own):
    layer = MultiHeadAttention(8, 2, attend=partial(gained, **{name: own}))
    of_own = [own] if isinstance(own, nn.Parameter) else [*own.parameters()]
    ours = [*layer.parameters()]
    assert all(any(x is y for y in ours) for x in of_own)
    assert layer(torch.ones(1, 3, 8)).shape == (1, 3, 8)


@pytest.mark.parametrize("name", ["type", "train", "forward", "a.b", ""])
def test_a_name_that_every_module_has_is_refused(name):
    gain = nn.Parameter(torch.ones(4))
    with pytest.raises(ValueError, match="no module has for itself"):
        MultiHeadAttention(8, 2, attend=partial(gained, **{name: gain}))


@pytest.mark.parametrize("pack", [list, tuple, lambda x: dict(enumerate(x))])
def test_parameters_in_a_list_are_not_lost_in_silence(pack):
    several = pack([nn.Parameter(torch.ones(4))])
    with pytest.raises(ValueError, match="one by one"):
        MultiHeadAttention(8, 2, attend=partial(gained, several=several))


def test_a_partial_bound_to_a_partial_keeps_its_parameters():
    inner = partial(torch.mul, nn.Parameter(torch.ones(4)))
    layer = MultiHeadAttention(8, 2, attend=partial(gained, by=inner))
    assert len([*layer.parameters()]) == 5


# What is looked at inside


def test_what_is_no_model_has_no_heads():
    for no_model in (None, 3, "x", [1], nn.Linear, torch.ones(2)):
        with pytest.raises(TypeError, match="model must be"):
            heads_of(no_model)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16])
def test_positions_may_be_small_numbers(dtype):
    """Those of uint8 were taken for a mask."""
    weights = torch.rand(2, 3, 5, 5).softmax(-1)
    asking, keys = torch.tensor([1, 3]), torch.tensor([[0, 2], [1, 1]])
    wanted = weight_on(weights, asking, keys)
    assert torch.equal(weight_on(weights, asking.to(dtype), keys), wanted)
    assert torch.equal(weight_on(weights, asking, keys.to(dtype)), wanted)
    nowhere = (x.to("meta") for x in (weights, asking, keys))
    assert weight_on(*nowhere).is_meta


def test_what_is_moved_one_by_one_must_be_at_hand():
    weights, values = torch.ones(5), torch.randn(5, 2)
    for name, given in (
        ("weights", (weights.to("meta"), values.to("meta"))),
        ("values", (weights, values.to("meta"))),
    ):
        with pytest.raises(ValueError, match=name):
            fewest_keys(*given)


@pytest.mark.parametrize("attend", [linear_attention, performer_attention])
@pytest.mark.parametrize("causal", [False, True])
def test_values_of_zeros_are_no_lost_digits(attend, causal):
    """A row of zeros was taken for one whose weights were too small, and all
    of it was computed once more, in float64.
    """
    q, k, v = torch.randn(3, 2, 7, 5)

    def done(v):
        return flops(lambda: attend(q, k, v, causal=causal))

    once = done(v)
    padded, nothing = v.clone(), torch.zeros_like(v)
    padded[:, :3] = 0.0  # who sees these alone gets nothing, causally
    assert done(padded) == done(nothing) == once > 0
    assert attend(q, k, padded, causal=causal)[:, :3].any() != causal


def test_values_that_are_none_hide_no_lost_digits():
    """The second text has values, and weights too small for float32."""
    q, k = torch.randn(2, 2, 7, 5)
    k[1] -= 200.0
    v = torch.randn(2, 7, 5)
    v[0] = 0.0
    expected = linear_attention(q.double(), k.double(), v.double())
    assert expected[1].any(dim=-1).all()
    assert_close(linear_attention(q, k, v), expected.float())
