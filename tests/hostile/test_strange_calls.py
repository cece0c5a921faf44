"""What strangers found of functions and blocks that cannot be called as they
are: Python said so, of a call that nobody had written.

As in `test_strangers`, each is a single story.
"""

import json
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.dot_product import attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import linear_attention, linear_weights
from selfattn.efficient.linformer import (
    LinformerAttention,
    linformer_weights,
)
from selfattn.efficient.window import sliding_window_attention
from selfattn.layers import AddNorm, FeedForward, relu
from selfattn.models import (
    Decoder,
    Embedding,
    Encoder,
    EncoderDecoder,
    PatchEmbedding,
    beam_search,
    complete,
    keep_top_k,
    keep_top_p,
)
from selfattn.models.config import LLAMA, check_config
from selfattn.multihead import MultiHeadAttention, merge_heads, split_heads
from selfattn.positions import alibi_bias, sinusoidal, t5_bucket
from selfattn.single_heads import record_heads


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


TOKENS = torch.tensor([[1, 2]])
TEXT = torch.zeros(2, 3, 8)


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


X = torch.randn(3, 4, 8)


def set_later(layer, name, value):
    """A layer, of which a function was exchanged."""
    setattr(layer, name, value)
    return layer


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (partial(EncoderBlock, 8, 2, 16, pre=True, norm=nn.Linear), "norm"),
        (partial(EncoderBlock, 8, 2, 16, pre=True, multihead=len), "multih"),
        (
            partial(DecoderBlock, 8, 2, 16, pre=True, feed_forward=nn.GELU),
            "feed_forward",
        ),
        (partial(AddNorm, 8, pre=True, norm=lambda: nn.Identity()), "norm"),
        (partial(Embedding, 11, 8, norm=nn.Linear), "norm"),
        (lambda: AddNorm(8, pre=True)(X, lambda: 0), "sublayer"),
        (lambda: linear_attention(*X, feature_map=lambda: 1), "feature_map"),
        (
            lambda: linear_weights(*X[:2], feature_map=lambda q, k: 1),
            "feature_map",
        ),
        (lambda: LinformerAttention(lambda: 1), "project"),
        (
            lambda: LinformerAttention(nn.Identity(), lambda: 1),
            "project_values",
        ),
        (
            lambda: set_later(
                LinformerAttention(torch.exp), "project", lambda: 1
            )(*X),
            "project",
        ),
        (lambda: linformer_weights(*X[:2], project=lambda: 1), "project"),
        (
            lambda: set_later(FeedForward(8, 8), "activation", lambda: 1)(X),
            "activation",
        ),
        (
            lambda: set_later(MultiHeadAttention(8, 2), "rotate", relu)(X),
            "rotate",
        ),
        (
            lambda: set_later(MultiHeadAttention(8, 2), "attend", relu)(X),
            "attend",
        ),
        (
            lambda: set_later(model(), "relative", lambda n: 1)(TOKENS),
            "relative",
        ),
        (
            lambda: set_later(Embedding(11, 8), "positions", relu)(TOKENS),
            "positions",
        ),
    ],
)
def test_what_cannot_be_called_as_it_is_is_named(call, name):
    """Of one that is set later, or that makes a part, Python spoke."""
    with pytest.raises(TypeError, match=f"^{name}.* must be a function of "):
        call()


def test_weights_that_cannot_be_asked_for_are_named():
    """A mechanism's own table took other arguments than its output."""

    def attend(q, k, v, *, mask=None, bias=None, causal=False):
        return v

    attend.weights = lambda q: q
    with pytest.raises(TypeError, match=r"^attend\.weights must be a f"):
        MultiHeadAttention(8, 2, attend=attend).weights(X)


def test_what_raises_within_is_heard_of():
    """It could be called so, and what it raised is its own."""

    def bend(x):
        return x + "a"

    with pytest.raises(TypeError, match="unsupported operand"):
        linear_attention(*X, feature_map=bend)
    with pytest.raises(TypeError, match="unsupported operand"):
        EncoderBlock(8, 2, 16, pre=True, norm=bend)


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


def test_a_class_is_no_sublayer():
    """Its answer would be a module, or an error of one that nobody wrote."""
    for sublayer in (nn.Identity, nn.Linear):
        with pytest.raises(TypeError, match=r"^sublayer must be a function"):
            AddNorm(8, pre=True)(TEXT, sublayer)


OTHERS = torch.zeros(2, 3, 8, dtype=torch.float64)


@pytest.mark.parametrize("kept", [False, True])
def test_a_block_names_what_it_was_handed_by_its_own_names(kept):
    """Within, all that is looked at is the context, and nobody gave one."""
    other = DecoderBlock(8, 2, 16, pre=True).double().remember(OTHERS)
    with pytest.raises(ValueError, match=r"^memory must have the type of "):
        block = DecoderBlock(8, 2, 16, pre=True)
        block(TEXT, other if kept else OTHERS)
    for block, memory in (
        (EncoderBlock(8, 2, 16, pre=True), ()),
        (DecoderBlock(8, 2, 16, pre=True), (TEXT,)),
    ):
        with pytest.raises(ValueError, match=r"^kept must have the type of x"):
            block(TEXT, *memory, kept=other)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: relu("a"), "x must be a tensor of floating-point numbers"),
        (lambda: relu(TEXT.long()), "x must be a tensor of floating-point"),
        (lambda: split_heads(TEXT, 3), "n_heads must divide d_model, but"),
        (lambda: split_heads(TEXT, 0), "n_heads must divide d_model, but"),
        (lambda: split_heads(TEXT[0, 0], 2), r"x must .* axes \(\.\.\., n, d"),
        (lambda: merge_heads(TEXT[0]), r"x must .* axes \(\.\.\., h, n, d"),
    ],
)
def test_what_is_small_has_errors_of_its_own(call, words):
    """They were PyTorch's: of clamp, of unflatten, of a dimension -3."""
    with pytest.raises((TypeError, ValueError), match=words):
        call()


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


# What the steps, the recorder and the copies of a second round met


def test_a_probability_may_be_a_number_of_numpy():
    """A np.float64 is a float, and what it compares to is no bool."""
    logits = torch.tensor([0.1, 0.6, 0.3]).log()
    for p in (0.5, 1.0):
        assert keep_top_p(logits, np.float64(p)).equal(keep_top_p(logits, p))


@pytest.mark.parametrize("search", [complete, partial(beam_search, n_beams=1)])
def test_a_step_may_write_over_what_it_is_given(search):
    """It wrote over the caller's prompt, the first time."""

    def step(tokens, cache):
        tokens.fill_(0)
        return torch.zeros(len(tokens), 5), None

    prompt = torch.tensor([[7, 3]])
    search(step, prompt, 2)
    assert prompt.tolist() == [[7, 3]]


@pytest.mark.parametrize("part", ["embed", "norm"])
def test_an_encoder_leaves_vectors_as_they_were(part):
    """Identity hands them on; what comes next may work in place."""
    bent = nn.ReLU(inplace=True)
    embed = bent if part == "embed" else nn.Identity()
    x = torch.tensor([[[-1.0, 1.0]]])
    made = Encoder(embed, [], norm=bent if part == "norm" else None)(x)
    assert made.tolist() == [[[0, 1]]] and x.tolist() == [[[-1, 1]]]


def test_a_head_that_brought_back_nan_is_recorded_so():
    """With gradients the layer projects twice, and zeros were recorded."""
    layer, x = MultiHeadAttention(8, 2), torch.randn(2, 3, 8)
    with record_heads(layer) as heads:
        layer(x)
        x[1, 2] = torch.nan
        layer(x)
    with torch.no_grad(), record_heads(layer) as without:
        layer(x)
    for name, told in heads.items():
        assert told[1].isnan().all() and not told[0].isnan().any()
        torch.testing.assert_close(told, without[name], equal_nan=True)


@pytest.mark.parametrize("way", ["forward", "heads", "keys_values"])
def test_a_subclass_that_computes_otherwise_is_not_copied(way):
    """PyTorch's layer, of its weights, gave half of what it gives."""
    other = type("Other", (MultiHeadAttention,), {way: lambda self: None})
    with pytest.raises(ValueError, match=f"Other has {way} of its own"):
        other(8, 2).to_torch()
    assert type("Same", (MultiHeadAttention,), {})(8, 2).to_torch()


def test_buckets_are_as_many_as_float32_counts():
    """Beyond, a distance had a bucket below zero."""
    most = 2**24
    far = {"causal": True, "n_buckets": most, "max_distance": most}
    assert t5_bucket(torch.tensor([-(2**62), 0]), **far).tolist() == [
        most - 1,
        0,
    ]
    with pytest.raises(
        ValueError, match=r"n_buckets must be .* at most 2\*\*24"
    ):
        t5_bucket(torch.tensor([0]), **far | {"n_buckets": most + 2})


def test_a_flag_is_shown_without_asking_it():
    """Its own words for itself may raise."""

    class Mute:
        def __repr__(self):
            raise RuntimeError

    with pytest.raises(TypeError, match="causal must be True or False"):
        attention(*torch.randn(3, 2, 4), causal=Mute())


def test_an_option_that_is_misspelt_is_refused_when_it_is_bound():
    """Python said so at the first call."""
    with pytest.raises(TypeError, match=r"^activation must take .* 'dim'$"):
        FeedForward(8, 16, activation=partial(relu, dim=3))
