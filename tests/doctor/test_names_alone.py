"""What takes its arguments by their names alone is called by them.

A star before them in a sound layer made it wrong on all probes, and others
could not be called at all.
"""

import functools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from selfattn import MultiHeadAttention
from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.doctor import examine
from selfattn.doctor.patient import Recorder, handed
from selfattn.positions import rope, sinusoidal

here = functools.partial(examine, time_limit=None)


class Holder(nn.Module):
    """What holds another, and hands it what it takes by name."""

    def __init__(self, part):
        super().__init__()
        self.part = part


class Layer(Holder):
    def forward(self, *, x, mask=None):
        return self.part(x, mask=mask)


class Cross(Holder):
    def forward(self, *, x, context):
        return self.part(x, context)


class Half(Holder):
    def forward(self, x, *, context):
        return self.part(x, context)


class Block(Holder):
    def forward(self, *, x, memory):
        return self.part(x, memory)


class Norm(Holder):
    def forward(self, *, x):
        return self.part(x)


class RootMeanSquare(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(8))

    def forward(self, *, x):
        size = x.float().square().mean(-1, keepdim=True) + 1e-6
        return (x.float() * size.rsqrt()).to(x.dtype) * self.gain


class Places(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", sinusoidal(50, 8))

    def forward(self, *, x):
        return x + self.table[: x.shape[1]]


class Keeping(nn.Module):
    """A decoder that keeps its keys and values."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, *, x, cache):
        k, v = self.k(x), self.v(x)
        if cache is not None:
            k, v = (torch.cat(p, 1) for p in zip(cache, (k, v), strict=True))
        n, m = x.shape[1], k.shape[1]
        seen = torch.ones(n, m, dtype=torch.bool).tril(m - n)
        scores = (self.q(x) @ k.mT / math.sqrt(8)).masked_fill(~seen, -1e30)
        return scores.softmax(-1) @ v, (k, v)


class Model(nn.Module):
    """A whole model of one block."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 12), nn.Embedding(40, 12)
        self.block = EncoderBlock(12, 3, 24, pre=True)
        self.cross = DecoderBlock(12, 3, 24, pre=True)
        self.head = nn.Linear(12, 11)

    def placed(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))


class Writer(Model):
    def __init__(self):
        super().__init__()
        del self.cross

    def forward(self, *, tokens):
        return self.head(self.block(self.placed(tokens), causal=True))


class Translator(Model):
    def forward(self, *, source, target):
        read = self.block(self.placed(source))
        return self.head(self.cross(self.placed(target), read))


def softmax(*, x):
    return x.softmax(-1)


def masked_softmax(*, scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1)


def linear(*, q, k, v):
    q, k = (F.elu(x) + 1 for x in (q, k))
    return (q @ (k.mT @ v)) / (q @ k.sum(-2, keepdim=True).mT)


def turned(*, x):
    return rope(x)


def norm(*, x, weight, bias, eps):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def causal(*, n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def padding(*, lengths, n):
    return torch.arange(n) < lengths[:, None]


PATIENTS = {
    "layer": (lambda: Layer(MultiHeadAttention(12, 3)), "self-attention"),
    "cross": (lambda: Cross(MultiHeadAttention(12, 3)), "cross-attention"),
    "half": (lambda: Half(MultiHeadAttention(12, 3)), "cross-attention"),
    "encoder": (
        lambda: Layer(EncoderBlock(12, 3, 24, pre=True)),
        "encoder-block",
    ),
    "decoder": (
        lambda: Block(DecoderBlock(12, 3, 24, pre=True)),
        "decoder-block",
    ),
    "norm": (lambda: Norm(nn.LayerNorm(8)), "layer-norm"),
    "norm of a function": (lambda: norm, "layer-norm"),
    "root mean square": (RootMeanSquare, "rms-norm"),
    "positions": (Places, "positions"),
    "keeping": (Keeping, "cached-decoder"),
    "writer": (Writer, "language-model"),
    "translator": (Translator, "encoder-decoder"),
    "softmax": (lambda: softmax, "softmax"),
    "masked softmax": (lambda: masked_softmax, "softmax"),
    "linear": (lambda: linear, "efficient"),
    "rope": (lambda: turned, "rope"),
    "causal": (lambda: causal, "causal-mask"),
    "padding": (lambda: padding, "padding-mask"),
}


@pytest.mark.parametrize("name", PATIENTS)
def test_who_takes_no_place_is_called_by_name(name):
    torch.manual_seed(0)
    make, kind = PATIENTS[name]
    report = here(make(), kind=kind)
    assert report.exit_code == 0, report


def squared(*, x):
    return x.softmax(-1).square()


def test_what_is_wrong_is_shown_by_a_call_with_a_name():
    report = here(squared, kind="softmax")
    assert report.exit_code == 1
    assert "squared(x=x)" in str(report), report


def test_what_has_no_place_comes_to_its_name():
    def told(a, /, b=2, *, c, d=4, e):
        return a, b, c, d, e

    assert handed(told, 1, 2, 3, 5) == (1, 2, 3, 4, 5)
    assert handed(told, 1, 2, 5, c=3) == (1, 2, 3, 4, 5)
    assert handed(told, 1, c=3, e=5, d=6) == (1, 2, 3, 6, 5)
    assert handed(Recorder(told, []), 1, 2, 3, 5) == (1, 2, 3, 4, 5)
    with pytest.raises(TypeError, match="positional"):
        handed(told, 1, 2, 3, 5, 6)

    class Method:
        def forward(self, x, *, y):
            return x, y

        def __call__(self, *given, **named):
            return self.forward(*given, **named)

    assert handed(Method(), 1, 2) == (1, 2)

    def any_number(*given, more=1):
        return given, more

    assert handed(any_number, 1, 2, 3) == ((1, 2, 3), 1)

    @functools.wraps(told)
    def wrapped(*given, **named):
        return told(*given, **named)

    assert handed(wrapped, 1, 2, 3, 5) == (1, 2, 3, 4, 5)
