"""Blocks with a formula of their own: what becomes of x on its way.

A residual that was lost, doubled or taken from the wrong place, and norms in
another place than was told, passed as healthy. And those who told where the
norms of their own formula stand were held to the usual one.
"""

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from tests.doctor.blocks_of_their_own import (
    BLOCKS,
    D,
    Macaron,
    Memory,
    Mixing,
    SideBySide,
    network,
)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def here(block, **told):
    kind = "decoder-block" if isinstance(block, Memory) else "encoder-block"
    said = {"formula": "own", "layout": "BND", **told}
    return examine(block, kind=kind, time_limit=None, **said)


TOLD = [
    (block, told)
    for block in BLOCKS
    for told in ({}, {"order": block.order})
    if told.get("order") != ""
]
SLIPS = [
    (block, slip, told)
    for block, told in TOLD
    for slip in block.slips
    if told or slip not in block.open_
]


@pytest.mark.parametrize(("block", "told"), TOLD)
def test_a_sound_block_of_its_own_is_healthy(block, told):
    """Whether or not its author tells where the norms stand."""
    report = here(block(), **told)
    assert report.passed, report


@pytest.mark.parametrize(("block", "slip", "told"), SLIPS)
def test_what_a_block_of_its_own_does_to_its_path_is_named(block, slip, told):
    report = here(block(slip), **told)
    assert report.exit_code == 1, report
    assert report.mistake is not None, report
    assert report.mistake.name == block.slips[slip]


@pytest.mark.parametrize(
    ("block", "slip", "name"),
    [(block, *pair) for block in BLOCKS for pair in block.open_.items()],
)
def test_what_some_may_mean_is_asked_after(block, slip, name):
    """And who says that the path is its own affair is asked no more."""
    report = here(block(slip))
    assert report.exit_code == 3, report
    assert report.mistake.name == name
    assert "path='free'" in report.different
    assert here(block(slip), path="free").passed


def test_whoever_promises_a_clear_path_is_held_to_it():
    assert here(Macaron(), path="clear").passed
    report = here(Macaron("second on the path"), path="clear")
    assert report.exit_code == 1
    assert report.mistake.name == "norm on the path"


class Bare(nn.Module):
    """Everything that is said is about x's norm, which is also passed on."""

    def __init__(self):
        super().__init__()
        self.norm, self.mix, self.net = nn.LayerNorm(D), Mixing(), network()

    def forward(self, x):
        x = self.norm(x)
        x = x + self.mix(x)
        return x + self.net(x)


def test_a_path_that_begins_with_a_norm_is_asked_after():
    report = here(Bare())
    assert report.exit_code == 3, report
    assert report.mistake.name == "path normed"


class Shortcut(nn.Module):
    """A matrix of x stands in the place of x itself."""

    def __init__(self):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(D), Mixing(linear=True)
        self.past = nn.Linear(D, D)

    def forward(self, x):
        return self.past(x) + self.mix(self.norm(x))


def test_a_matrix_may_stand_in_the_place_of_x():
    assert here(Shortcut()).passed


class Unfollowed(nn.Module):
    """Leaves PyTorch on its way, so that nobody can follow it."""

    def __init__(self):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(D), Mixing()

    def forward(self, x):
        said = self.mix(self.norm(x))
        out = torch.zeros_like(x)
        out[:, ::2] = said[:, ::2]
        out[:, 1::2] = said[:, 1::2]
        return out


def test_of_what_cannot_be_followed_nothing_is_said():
    assert here(Unfollowed()).passed


class Left(SideBySide):
    """A part that is for another kind of block is not called."""

    def make(self):
        super().make()
        self.cross_attention = Mixing()
        self.cross_norm = nn.LayerNorm(D)


def test_a_part_for_a_context_may_be_idle():
    assert here(Left()).passed
