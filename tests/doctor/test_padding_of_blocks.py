"""Whoever told what a block's mask for padding says was not asked to keep it.

So he could forget to hand it on, or turn it upside down, and was healthy.
"""

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

D = 6


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Block(nn.Module):
    """The usual one, with PyTorch's attention."""

    def __init__(self, slip="", across=False):
        super().__init__()
        self.slip = slip
        self.self_attention = nn.MultiheadAttention(D, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(D, 9), nn.ReLU(), nn.Linear(9, D))
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        if across:
            self.look = nn.MultiheadAttention(D, 2, batch_first=True)
            self.norm3 = nn.LayerNorm(D)

    def handed(self, pad_mask):
        if pad_mask is None or self.slip == "unused":
            return None
        return ~pad_mask if self.slip == "turned" else pad_mask


class Reader(Block):
    def forward(self, x, pad_mask=None):
        pad = self.handed(pad_mask)
        said, _ = self.self_attention(x, x, x, key_padding_mask=pad)
        x = self.norm1(x + said)
        return self.norm2(x + self.mlp(x))


class Writer(Block):
    def forward(self, x, memory, pad_mask=None):
        pad, n = self.handed(pad_mask), x.shape[1]
        past = torch.ones(n, n).triu(1).bool()
        x = self.norm1(x + self.self_attention(x, x, x, attn_mask=past)[0])
        said, _ = self.look(x, memory, memory, key_padding_mask=pad)
        x = self.norm2(x + said)
        return self.norm3(x + self.mlp(x))


def reports(slip=""):
    told = {"order": "post", "layout": "BND", "padding": "block"}
    for block, kind in (
        (Reader(slip), "encoder-block"),
        (Writer(slip, across=True), "decoder-block"),
    ):
        yield examine(block, kind=kind, time_limit=None, **told)


def test_who_keeps_it_is_healthy():
    for report in reports():
        assert report.passed, report
        assert not any("padding" in words for words in report.not_asked)


@pytest.mark.parametrize(
    ("slip", "names"),
    [
        (
            "unused",
            ("mask not passed on", "mask of the context not passed on"),
        ),
        ("turned", ("mask upside down", "mask of the context upside down")),
    ],
)
def test_who_does_not_is_told_how(slip, names):
    """Not used, all is heard; upside down, the padding alone."""
    for report, name in zip(reports(slip), names, strict=True):
        assert report.exit_code == 1, report
        assert report.mistake.name == name, report


class Asleep(Reader):
    """Its attention begins with a map of zeros, and says nothing yet."""

    def __init__(self, slip=""):
        super().__init__(slip)
        nn.init.zeros_(self.self_attention.out_proj.weight)


def test_a_map_of_zeros_hides_no_mistake():
    told = {"order": "post", "layout": "BND", "padding": "block"}
    for slip in ("", "unused"):
        block = Asleep(slip)
        report = examine(block, kind="encoder-block", time_limit=None, **told)
        assert report.passed is not bool(slip), report


class Behind(nn.Module):
    """What a sublayer says is normed, and then added: a formula of its own."""

    def __init__(self):
        super().__init__()
        self.mix = nn.MultiheadAttention(D, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(D, 9), nn.ReLU(), nn.Linear(9, D))
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)

    def forward(self, x):
        x = x + self.one(self.mix(x, x, x)[0])
        return x + self.two(self.mlp(x))


@pytest.mark.parametrize("more", [{}, {"path": "clear"}])
def test_who_said_that_its_formula_is_its_own_is_not_held_to_the_usual(more):
    """Nobody told where its norms stand, and they stand where they may."""
    told = {"formula": "own", "norms": ["one", "two"], "attention": "mix"}
    report = examine(
        Behind(), kind="encoder-block", time_limit=None, **told, **more
    )
    assert report.passed, report
