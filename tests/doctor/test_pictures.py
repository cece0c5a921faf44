"""Attention and blocks whose tokens lie in the rows of a picture.

Nobody who wrote for pictures could be examined: a text was all that was ever
handed over, and whoever wants four axes raises at three.
"""

import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.text_layouts import (
    LAYOUTS,
    laid_out,
    read_back,
    rows_of,
)

D, HEADS, D_CONTEXT = 12, 3, 10


class OfPixels(nn.Module):
    """(batch, features, rows, columns), mapped by convolutions of one pixel.

    ``wrong`` names what is planted.
    """

    def __init__(self, wrong="", maps=nn.Conv2d):
        super().__init__()
        self.heads, self.wrong = HEADS, wrong
        self.qkv = maps(D, 3 * D, 1, bias=False)
        self.out = maps(D, D, 1)

    def forward(self, x):
        d = D if self.wrong == "scale" else D // HEADS
        heads = (len(x), HEADS, -1, x[0, 0].numel())
        q, k, v = (t.reshape(heads).mT for t in self.qkv(x).chunk(3, dim=1))
        seen = torch.softmax(q @ k.mT / math.sqrt(d), dim=-1) @ v
        seen = seen if self.wrong == "merge" else seen.mT
        return self.out(seen.reshape(x.shape))


class FeaturesLast(nn.Module):
    """(batch, rows, columns, features)."""

    def __init__(self, wrong=""):
        super().__init__()
        self.num_heads, self.wrong = HEADS, wrong
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        batch, rows, columns, _ = x.shape
        heads = (batch, rows * columns, 3, HEADS, D // HEADS)
        q, k, v = self.qkv(x).reshape(heads).permute(2, 0, 3, 1, 4)
        axis = -2 if self.wrong == "axis" else -1
        seen = (q @ k.mT / math.sqrt(D // HEADS)).softmax(dim=axis) @ v
        return self.proj(seen.transpose(1, 2).reshape(x.shape))


class ToldOfInWords(nn.Module):
    """A picture's queries, and the keys of a text."""

    def __init__(self, wrong=""):
        super().__init__()
        self.heads, self.wrong = HEADS, wrong
        self.to_q, self.to_out = nn.Conv2d(D, D, 1), nn.Conv2d(D, D, 1)
        self.to_k, self.to_v = (nn.Linear(D_CONTEXT, D) for _ in "kv")

    def forward(self, x, context):
        many = (len(x), HEADS, D // HEADS, -1)
        q = self.to_q(x).reshape(many).mT
        k, v = (f(context).mT.reshape(many).mT for f in (self.to_k, self.to_v))
        k = k / math.sqrt(D // HEADS) if self.wrong == "twice" else k
        scores = q @ k.mT / math.sqrt(D // HEADS)
        return self.to_out((scores.softmax(-1) @ v).mT.reshape(x.shape))


class OfFeatures(nn.Module):
    """A block of pixels: normed in groups, added, and widened."""

    def __init__(self, added=True):
        super().__init__()
        self.added, self.attend = added, OfPixels()
        self.first, self.second = nn.GroupNorm(1, D), nn.GroupNorm(1, D)
        self.network = nn.Sequential(
            nn.Conv2d(D, 2 * D, 1), nn.GELU(), nn.Conv2d(2 * D, D, 1)
        )

    def forward(self, x):
        seen = self.attend(self.first(x))
        x = x + seen if self.added else seen
        return x + self.network(self.second(x))


def seen(thing, kind="self-attention", **told):
    return examine(thing.eval(), kind=kind, time_limit=None, **told)


def test_a_text_is_laid_out_and_read_back_in_every_layout():
    text = torch.arange(2 * 6 * 5).view(2, 6, 5)
    for layout in LAYOUTS:
        out = laid_out(text, layout)
        assert out.ndim == len(layout)
        assert torch.equal(read_back(out, layout), text)
    assert laid_out(text, "BDHW").shape == (2, 5, 2, 3)
    assert laid_out(text, "BHWD").shape == (2, 2, 3, 5)
    assert torch.equal(laid_out(text, "BDHW")[:, :, 1, 0], text[:, 3])


def test_what_comes_back_with_other_axes_is_left_as_it_came():
    flat = torch.ones(2, 6, 5)
    assert read_back(flat, "BDHW") is flat
    assert read_back(flat[0], "NBD").shape == (6, 5)


@pytest.mark.parametrize(
    ("n", "rows"), [(1, 1), (6, 2), (7, 1), (9, 3), (12, 3), (49, 7)]
)
def test_a_picture_is_as_nearly_square_as_it_can_be(n, rows):
    assert rows_of(n) == rows


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize(
    ("make", "layout"),
    [
        (OfPixels, "BDHW"),
        (lambda: OfPixels(maps=nn.Conv1d), "BDN"),
        (FeaturesLast, "BHWD"),
    ],
)
def test_attention_in_a_picture_is_healthy(make, layout, told):
    report = seen(make(), **({"layout": layout} if told else {}))
    assert report.passed, str(report)
    assert (f"layout='{layout}'" in str(report)) != told


@pytest.mark.parametrize("told", [{}, {"layout": "BDHW"}])
@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ("scale", "scaled by the width of the model"),
        ("merge", "merged without transpose"),
    ],
)
def test_what_is_wrong_in_a_picture_is_named(wrong, name, told):
    report = seen(OfPixels(wrong), **told)
    assert report.mistake.name == name


def test_a_softmax_over_the_queries_of_a_picture_is_named():
    assert "softmax" in seen(FeaturesLast("axis")).mistake.name


def test_a_picture_may_be_told_of_in_words():
    report = seen(ToldOfInWords(), "cross-attention")
    assert report.passed, str(report)
    ill = seen(ToldOfInWords("twice"), "cross-attention")
    assert not ill.passed
    assert ill.mistake.name == "divided by d"


@pytest.mark.parametrize("told", [{}, {"layout": "BDHW"}])
def test_a_block_of_pixels_is_asked_what_holds_of_all(told):
    own = {"formula": "own", "order": "pre", **told}
    report = seen(OfFeatures(), "encoder-block", **own)
    assert report.passed, str(report)
    ill = seen(OfFeatures(added=False), "encoder-block", **own)
    assert not ill.passed
    assert "residual" in ill.mistake.name


def test_the_attention_in_a_block_of_pixels_is_held_to_a_formula():
    """Told how it should come out, a wrong merge in it is found, too."""

    def slow(block, x):
        right = OfPixels()
        right.load_state_dict(block.attend.state_dict())
        right = right.to(x.dtype)
        x = x + right(block.first(x))
        return x + block.network(block.second(x))

    def examined(block):
        return seen(block, "encoder-block", layout="BDHW", formula=slow)

    assert examined(OfFeatures()).passed
    wrong = OfFeatures()
    wrong.attend.wrong = "merge"
    assert examined(wrong).exit_code == 1


class OfChannels(nn.Module):
    """A norm of each pixel's features, which are the second axis."""

    def __init__(self, correction=0):
        super().__init__()
        self.eps, self.correction = 1e-5, correction
        self.g = nn.Parameter(torch.ones(1, D, 1, 1))
        self.b = nn.Parameter(torch.zeros(1, D, 1, 1))

    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        spread = x.var(dim=1, keepdim=True, correction=self.correction)
        return (x - mean) / (spread + self.eps).sqrt() * self.g + self.b


class OfTheirSize(nn.Module):
    """The same by their root mean square; its eps stands in its forward."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x):
        size = (x.square().mean(dim=1, keepdim=True) + 1e-4).sqrt()
        return x / size * self.weight[:, None, None]


@pytest.mark.parametrize("told", [{}, {"layout": "BDHW"}])
def test_a_norm_of_pixels_is_one_of_tokens(told):
    """It was asked how it is called, since what came out had four axes."""
    report = seen(OfChannels(), "layer-norm", **told)
    assert report.passed, str(report)
    ill = seen(OfChannels(correction=1), "layer-norm", **told)
    assert ill.mistake.name == "bessel"
    promised = {"dtypes": ["float32", "float64"], **told}
    assert seen(OfTheirSize(), "rms-norm", **promised).passed


class AlongColumns(nn.Module):
    """(rows, columns, batch, features): each looks along the first axis."""

    def __init__(self):
        super().__init__()
        self.num_heads = HEADS
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        heads = (*x.shape[:3], HEADS, -1)
        q, k, v = (f(x).view(heads) for f in (self.q, self.k, self.v))
        scores = torch.einsum("icbhd,jcbhd->hcbij", q, k)
        weights = (scores / math.sqrt(D // HEADS)).softmax(-1)
        seen = torch.einsum("hcbij,jcbhd->icbhd", weights, v)
        return self.out(seen.reshape(x.shape))


def test_axes_that_were_found_are_no_promise():
    """Four axes were a picture's, and so its columns were other texts."""
    assert seen(AlongColumns()).exit_code == 3
    told = seen(AlongColumns(), layout="BHWD")
    assert told.mistake.name == "batch and tokens exchanged"
