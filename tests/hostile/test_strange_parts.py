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
from selfattn.layers import FeedForward, LayerNorm, RMSNorm, SwiGLU
from selfattn.models import ClassHead
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import AdditiveAttention, Recurrent, Translator
from selfattn.positions import TransformerXLAttention

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
