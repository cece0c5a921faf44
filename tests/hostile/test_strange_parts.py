"""What strangers found of layers with parts of their own, and of norms."""

import copy
import subprocess
import sys
import textwrap
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.layers import (
    AddNorm,
    FeedForward,
    LayerNorm,
    RMSNorm,
    SwiGLU,
)
from selfattn.models import (
    ClassHead,
    Decoder,
    Embedding,
    Encoder,
    EncoderDecoder,
    LabelHead,
    SpanHead,
)
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import AdditiveAttention, Recurrent, Translator
from selfattn.positions import (
    LearnedPositions,
    T5Bias,
    TransformerXLAttention,
    alibi_bias,
    sinusoidal,
)

X, HEADS = torch.zeros(2, 5, 8), torch.zeros(2, 2, 5, 4)
NUMBERS = torch.zeros(2, 5).long()


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


def bahdanau():
    return AdditiveAttention(8, 8, 6)


# What makes a layer, how it is called, and which part of it is exchanged.
PARTS = [
    (partial(MultiHeadAttention, 8, 2), (X,), "W_v"),
    (partial(MultiHeadAttention, 8, 2), (X,), "W_o"),
    (partial(FeedForward, 8, 16), (X,), "W_out"),
    (partial(SwiGLU, 8, 16), (X,), "W_gate"),
    (partial(SwiGLU, 8, 16), (X,), "W_out"),
    (partial(EncoderBlock, 8, 2, 16, pre=True), (X,), "attention.W_o"),
    (partial(DecoderBlock, 8, 2, 16, pre=True), (X, X), "cross.W_v"),
    (bahdanau, (X, X, X), "w"),
    (partial(Translator, 3, 3, 8), (NUMBERS, NUMBERS), "join"),
    (partial(Translator, 3, 3, 8), (NUMBERS, NUMBERS), "head"),
    (partial(ClassHead, 8, 3), (X,), "classes"),
]
NAMES = [f"{type(f()).__name__}-{part}" for f, _, part in PARTS]


@pytest.mark.parametrize(("make", "given", "part"), PARTS, ids=NAMES)
@pytest.mark.parametrize("by", ["type", "width"])
def test_a_part_that_does_not_fit_is_named(make, given, part, by):
    """PyTorch said: mat1 and mat2 must have the same dtype."""
    layer = make()
    inside, _, name = part.rpartition(".")
    old = layer.get_submodule(part)
    if by == "type":
        new = copy.deepcopy(old).double()
    else:
        new = nn.Linear(old.in_features + 2, old.out_features)
    setattr(layer.get_submodule(inside), name, new)
    width = old.in_features + 2
    kind = (
        "float64"
        if by == "type"
        else f"({width} features|in_features={width})"
    )
    with pytest.raises(ValueError, match=rf"{name} must be given .*{kind}"):
        layer(*given)


def test_parts_that_do_not_fit_each_other_are_listed():
    layer = SwiGLU(8, 16)
    layer.W_gate = nn.Linear(8, 18)
    with pytest.raises(ValueError, match=r"must fit each other.*\(18, 8\)"):
        layer(X)
    distances = TransformerXLAttention(2, 4)
    distances.w = nn.Parameter(torch.zeros(2, 1, 8))
    with pytest.raises(ValueError, match=r"must fit each other.*w is"):
        distances(HEADS, HEADS, HEADS)


def test_a_recurrent_part_of_another_type_is_named():
    """PyTorch raised a ValueError, which was taken for one of ours."""
    model = Translator(3, 3, 8)
    model.reader.double()
    with pytest.raises(ValueError, match="reader must be given 8 features"):
        model(NUMBERS, NUMBERS)


def test_errors_of_others_are_theirs():
    """Not only by their words: what a mechanism of one's own says of its."""

    def attend(q, k, v, **options):
        raise RuntimeError("what I say must match the size of it")

    layer = MultiHeadAttention(8, 2, attend=attend)
    with pytest.raises(RuntimeError, match="what I say"):
        layer(X)


def test_a_block_is_compiled_in_one_piece():
    """Sixteen pieces it was, for it asked at every step whether it could look
    at numbers. In a process of its own, without jaxtyping.
    """
    script = """
        import torch
        from selfattn.blocks import EncoderBlock
        block, x = EncoderBlock(8, 2, 16, pre=True), torch.randn(2, 5, 8)
        whole = torch.compile(block, backend="eager", fullgraph=True)
        torch.testing.assert_close(whole(x), block(x))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr


NORMS = {
    "layer": (LayerNorm, lambda x: x - x.mean(-1, keepdim=True)),
    "rms": (RMSNorm, lambda x: x),
}


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [1e19, 1e25, 1e38])
def test_large_tokens_are_normed(name, dtype, size):
    """Their squares overflow: beyond 1e19 they came out as zeros."""
    make, centre = NORMS[name]
    x = torch.tensor([[1.0, 2.0, -1.5], [3.0, 2.0, 1.0]])
    x[0] *= size
    x = x.to(dtype).requires_grad_()
    norm = make(3)
    output = norm(x)
    centred = centre(x.detach().double())
    root = centred.square().mean(-1, keepdim=True).add(norm.eps).sqrt()
    assert_close(output, (centred / root).to(dtype))
    [found] = torch.autograd.grad(output.float().square().sum(), x)
    assert found.isfinite().all()


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("eps", [1e-50, 1e-300])
def test_a_small_eps_is_no_zero(name, eps):
    """In float32 it was, and tokens of zeros were NaN."""
    norm, x = NORMS[name][0](3, eps=eps), torch.zeros(2, 3)
    x[1] = torch.tensor([1e-24, -1e-24, 0.0])
    root = x.double().square().mean(-1, keepdim=True).add(eps).sqrt()
    assert_close(norm(x), (x / root).float())


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_recurrent_networks_run_under_autocast(kind, dtype):
    """Of an LSTM in float16 PyTorch said: could not create a primitive."""
    layer = Recurrent(kind(4, 6, batch_first=True))
    x = torch.randn(2, 7, 4)
    with torch.autocast("cpu", dtype):
        output = layer(x)
    expected = layer(x)
    assert kind is not nn.LSTM or output.dtype == dtype
    assert_close(output.float(), expected, atol=0.02, rtol=0)
    torch.autograd.grad(output.float().sum(), [*layer.parameters()])


class Other(nn.Module):
    """Makes of tokens what somebody forgot to look at."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


def writer():
    return Decoder(Embedding(8, 8), [EncoderBlock(8, 2, 16, pre=True)])


FORGOTTEN = [
    (partial(MultiHeadAttention, 8, 2), (X,), "W_q"),
    (partial(MultiHeadAttention, 8, 2), (X,), "W_k"),
    (partial(MultiHeadAttention, 8, 2), (X,), "W_o"),
    (partial(FeedForward, 8, 8), (X,), "W_in"),
    (partial(FeedForward, 8, 8), (X,), "W_out"),
    (partial(SwiGLU, 8, 8), (X,), "W_gate"),
    (partial(SwiGLU, 8, 8), (X,), "W_out"),
    (partial(LabelHead, 8, 3), (X,), "labels"),
    (partial(SpanHead, 8), (X,), "ends"),
    (writer, (NUMBERS,), "head"),
    (bahdanau, (X, X, X), "W_k"),
]


@pytest.mark.parametrize(
    ("make", "given", "part"), FORGOTTEN, ids=lambda x: x if x else None
)
@pytest.mark.parametrize(
    ("what", "error"),
    [
        (lambda x: x[:1], ValueError),
        (lambda x: x[:, :3], ValueError),
        (lambda x: x[:, :1], ValueError),
        (lambda x: (x, None), TypeError),
    ],
    ids=["one text", "three tokens", "one token", "a tuple"],
)
def test_a_part_that_forgets_tokens_is_named(make, given, part, what, error):
    """One text for two was broadcast to both, or returned as if it were all;
    a tuple had no attribute "requires_grad".
    """
    layer = make()
    setattr(layer, part, Other(what))
    words = {
        ValueError: r"a token of each token.*(Other|FeedForward|SwiGLU)",
        TypeError: "tensor",
    }
    with pytest.raises(error, match=words[error]):
        layer(*given)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_table_that_forgets_tokens_is_named(n):
    """A bag makes one row of a text; texts became the tokens of one text."""
    embed = Embedding(8, 8)
    embed.tokens = nn.EmbeddingBag(8, 8)
    with pytest.raises(ValueError, match="a token of each token"):
        embed(torch.zeros(2, n, dtype=torch.long))


def test_a_hook_that_returns_a_tuple_is_told():
    layer = MultiHeadAttention(8, 2)
    layer.W_q.register_forward_hook(lambda part, given, made: (made,))
    with pytest.raises(TypeError, match="what a layer makes must be a tensor"):
        layer(X)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (partial(FeedForward, 8, 16), "W_out"),
        (partial(SwiGLU, 8, 16), "W_out"),
        (partial(SwiGLU, 8, 16), "W_gate"),
        (partial(SwiGLU, 8, 16), "W_in"),
    ],
)
def test_another_width_is_no_token(make, part):
    """A gate of one feature was broadcast to all."""
    layer = make()
    old = getattr(layer, part)
    setattr(layer, part, nn.Linear(old.in_features, 1))
    with pytest.raises(ValueError, match="a token of each token"):
        layer(X)


def hook_in_place(norm):
    norm.register_forward_pre_hook(lambda norm, given: (given[0].mul_(2),))
    return norm


class Doubling(LayerNorm):
    def forward(self, x):
        return x.mul_(2)


@pytest.mark.parametrize("pre", [True, False])
@pytest.mark.parametrize(
    "norm",
    [
        Doubling,
        lambda d: hook_in_place(LayerNorm(d)),
        lambda d: hook_in_place(RMSNorm(d)),
    ],
    ids=["subclass", "LayerNorm", "RMSNorm"],
)
def test_a_norm_that_works_in_place_leaves_the_callers_x(norm, pre):
    """Ours does not, but one that was made of it may."""
    x = torch.randn(2, 5, 8)
    before, layer = x.clone(), AddNorm(8, pre=pre, norm=norm)
    made = layer(x, torch.zeros_like)
    assert torch.equal(x, before)
    if pre:
        assert torch.equal(made, before)


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm])
@pytest.mark.parametrize("pre", [True, False])
def test_pytorchs_norms_do_not_feel_what_is_hidden(norm, pre):
    """As ours do not: the outputs were right, and the gradients NaN of the
    weights of every norm.
    """
    block = partial(EncoderBlock, 8, 2, 16, pre=pre, norm=norm)
    embed = Embedding(3, 8, norm=norm)
    model = Encoder(nn.Identity(), [block(), block()], norm=norm(8))
    x, seen = torch.randn(2, 5, 8), torch.ones(2, 1, 1, 5).bool()
    x[0, 4], seen[0, ..., 4] = torch.nan, False
    made = model(x, mask=seen)
    with torch.no_grad():
        embed.tokens.weight[2] = torch.nan
    found = embed(torch.tensor([[0, 1], [1, 2]]))
    (made[0, :4].sum() + made[1].sum() + found[0].sum()).backward()
    for part in (model, embed.norm):
        for name, weight in part.named_parameters():
            assert weight.grad.isfinite().all(), name
    kept = model.blocks[0].remember(x)
    kept.k[1].sum().backward()
    assert model.blocks[0].add_norm_1.norm.weight.grad.isfinite().all()


def of_table(n, table, offset=0):
    return table[offset : offset + n]


def plus(x, more):
    return x + more


def far(n_q, n_k, slopes):
    return slopes[:, None, None] * alibi_bias(2, n_q, n_k)


def reader():
    return Encoder(Embedding(8, 8), [EncoderBlock(8, 2, 16, pre=True)])


def both():
    return EncoderDecoder(
        reader(), Embedding(8, 8), [DecoderBlock(8, 2, 16, pre=True)]
    )


# A module's name for it, and a module, a partial and a function for its place.
SET_LATER = [
    (
        partial(FeedForward, 8, 16),
        (X,),
        "activation",
        (nn.ReLU(), partial(plus, more=nn.Parameter(torch.ones(16))), abs),
    ),
    (
        partial(Embedding, 8, 8),
        (NUMBERS,),
        "positions",
        (
            LearnedPositions(5, 8),
            partial(of_table, table=nn.Parameter(torch.ones(5, 8))),
            partial(sinusoidal, d_model=8),
        ),
    ),
    *(
        (
            make,
            (NUMBERS,) * n,
            "relative",
            (
                T5Bias(2),
                partial(far, slopes=nn.Parameter(torch.ones(2))),
                partial(alibi_bias, 2),
            ),
        )
        for make, n in ((reader, 1), (writer, 1), (both, 2))
    ),
]


@pytest.mark.parametrize(("make", "given", "name", "places"), SET_LATER)
def test_a_function_that_is_set_later_takes_the_place(
    make, given, name, places
):
    """PyTorch refused it the place of a module; and what a partial had bound,
    the model neither moved nor saved nor trained.
    """
    model = make()
    module, bound, function = places
    setattr(model, name, module)
    with_module = {*model.state_dict()}
    setattr(model, name, bound)
    assert [x for x in model.state_dict() if x.startswith(f"{name}.learned")]
    model(*given).sum().backward()
    setattr(model, name, function)
    assert not [x for x in model.state_dict() if x.startswith(name)]
    model(*given)
    setattr(model, name, module)
    assert {*model.state_dict()} == with_module
    model(*given)
