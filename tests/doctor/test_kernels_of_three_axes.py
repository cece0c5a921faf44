"""Maps that are numbers of any name and with an axis for heads, if told of.

Who comes from Flax or Keras has kernels, (features, heads, features of one),
in the layer itself or in a small module of its own; and who hands PyTorch's
function a matrix of three calls it as he likes. Told of, they were no maps.
"""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)


def drawn(*sizes):
    return nn.Parameter(torch.randn(*sizes) / 3)


def attend(q, k, v, scaled=True):
    """All are (batch, tokens, heads, features)."""
    scores = torch.einsum("bnhd,bmhd->bhnm", q, k)
    if scaled:
        scores = scores / math.sqrt(q.shape[-1])
    return torch.einsum("bhnm,bmhd->bnhd", scores.softmax(dim=-1), v)


class OfItsOwn(nn.Module):
    """Kernels and biases that are the layer's own."""

    def __init__(self, names, d=10, inner=(3, 4), scaled=True):
        super().__init__()
        self.names, self.scaled = names, scaled
        for name in names[:3]:
            self.register_parameter(f"{name}_kernel", drawn(d, *inner))
            self.register_parameter(f"{name}_bias", drawn(*inner))
        self.register_parameter(f"{names[3]}_kernel", drawn(*inner, d))

    def mapped(self, name, x):
        kernel = getattr(self, f"{name}_kernel")
        return torch.einsum("bnd,dhe->bnhe", x, kernel) + getattr(
            self, f"{name}_bias"
        )

    def forward(self, x):
        q, k, v = (self.mapped(name, x) for name in self.names[:3])
        kernel = getattr(self, f"{self.names[3]}_kernel")
        said = attend(q, k, v, self.scaled)
        return torch.einsum("bnhe,hed->bnd", said, kernel)


PARTS = ("q", "k", "v", "out")
PLAIN, STRANGE = ("query", "key", "value", "out"), ("ask", "tag", "say", "mix")


@pytest.mark.parametrize("names", [PLAIN, STRANGE])
@pytest.mark.parametrize("told", [True, False])
def test_kernels_of_the_layer_are_its_maps(names, told):
    maps = {
        part: f"{name}_kernel" for part, name in zip(PARTS, names, strict=True)
    }
    facts = {"n_heads": 3, "projections": maps} if told else {}
    report = here(OfItsOwn(names), kind="self-attention", **facts)
    assert report.passed, report
    known = told or names is PLAIN
    assert ("numbers" not in report.lacking) == known
    if known:
        wrong = OfItsOwn(names, scaled=False)
        report = here(wrong, kind="self-attention", **facts)
        assert report.mistake.name == "no scale"


class Einsum(nn.Module):
    """One map, as an equation tells."""

    def __init__(self, equation, *sizes, to):
        super().__init__()
        self.equation = equation
        self.kernel, self.shift = drawn(*sizes), drawn(*to)

    def forward(self, x):
        return torch.einsum(self.equation, x, self.kernel) + self.shift


class InModules(nn.Module):
    """Values are wider than keys, and the context than neither."""

    def __init__(self, d=10, d_context=8, scaled=True):
        super().__init__()
        self.scaled, inner = scaled, "bnd,dhe->bnhe"
        self.ask = Einsum(inner, d, 3, 4, to=(3, 4))
        self.tag = Einsum(inner, d_context, 3, 4, to=(3, 4))
        self.say = Einsum(inner, d_context, 3, 5, to=(3, 5))
        self.mix = Einsum("bnhe,hed->bnd", 3, 5, d, to=(d,))

    def forward(self, x, context):
        given = self.ask(x), self.tag(context), self.say(context)
        return self.mix(attend(*given, self.scaled))


@pytest.mark.parametrize("scaled", [True, False])
def test_kernels_in_modules_of_their_own_are_maps_if_told(scaled):
    facts = {
        "n_heads": 3,
        "projections": dict(zip(PARTS, STRANGE, strict=True)),
    }
    layer = InModules(scaled=scaled)
    report = here(layer, kind="cross-attention", **facts)
    assert "numbers" not in report.lacking, report
    assert report.passed == scaled, report
    assert scaled or report.mistake.name == "no scale"


class OfTheLibrary(nn.Module):
    """PyTorch's function, and a matrix of three that has no telling name."""

    def __init__(self, d=12):
        super().__init__()
        self.weight, self.bias = drawn(3 * d, d), drawn(3 * d)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        given = x.transpose(0, 1)
        y, _ = F.multi_head_attention_forward(
            *(given, given, given, x.shape[-1], 2, self.weight, self.bias),
            *(None, None, False, 0.0, self.out.weight, self.out.bias),
        )
        return y.transpose(0, 1)


def test_a_matrix_of_three_lies_on_its_side_under_any_name():
    report = here(
        OfTheLibrary(),
        kind="self-attention",
        projections={"qkv": "weight", "out": "out"},
        packed="by part",
        n_heads=2,
        d_model=12,
    )
    assert report.passed and "numbers" not in report.lacking, report


class Convolved(nn.Module):
    """Maps that are convolutions of width one, which have three axes, too."""

    def __init__(self, d=12):
        super().__init__()
        self.ask, self.tag, self.say, self.mix = (
            nn.Conv1d(d, d, 1) for _ in range(4)
        )

    def forward(self, x):
        q, k, v = (
            one(x.mT).mT.unflatten(-1, (3, -1))
            for one in (self.ask, self.tag, self.say)
        )
        return self.mix(attend(q, k, v).flatten(2).mT).mT


def test_a_convolution_of_width_one_has_no_axis_for_heads():
    told = dict(zip(PARTS, STRANGE, strict=True))
    report = here(
        Convolved(), kind="self-attention", n_heads=3, projections=told
    )
    assert report.passed and "numbers" not in report.lacking, report
