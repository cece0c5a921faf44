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


class Mapped(nn.Module):
    """Its network is called for each token by itself."""

    def __init__(self):
        super().__init__()
        self.norm, self.mix, self.net = nn.LayerNorm(D), Mixing(), network()
        self.half = torch.full((D,), 0.5)  # no buffer

    def forward(self, x):
        x = x + self.half * self.mix(self.norm(x))
        each = torch.vmap(self.net)(x.flatten(0, 1))
        return x + each.view_as(x) * torch.tensor([0.5])


@pytest.mark.parametrize("block", [Unfollowed, Mapped])
def test_of_what_cannot_be_followed_nothing_is_said(block):
    assert here(block()).passed


class Routed(nn.Module):
    """A token is worked on by one of three networks; some have no token."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(2))
        self.mix, self.router = Mixing(), nn.Linear(D, 3)
        self.experts = nn.ModuleList(network() for _ in range(3))
        self.idle = nn.ModuleList([network()])

    def forward(self, x):
        x = x + self.mix(self.norms[0](x))
        normed = self.norms[1](x)
        shares = self.router(normed).softmax(-1)
        said = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            chosen = shares.argmax(-1) == i
            if bool(chosen.any()):
                said[chosen] = shares[chosen][:, i, None] * expert(
                    normed[chosen]
                )
        return x + said


class Shifted(nn.Module):
    """What came just before is mixed in by shares that are learnt."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)
        self.share = nn.Parameter(torch.rand(D))
        self.get, self.key = nn.Linear(D, D), nn.Linear(D, 2 * D)
        self.value, self.mix = nn.Linear(2 * D, D), Mixing()

    def forward(self, x):
        x = x + self.mix(self.one(x))
        normed = self.two(x)
        before = nn.functional.pad(normed, (0, 0, 1, -1))
        mixed = normed * self.share + before * (1 - self.share)
        said = self.value(torch.relu(self.key(mixed)).square())
        return x + torch.sigmoid(self.get(mixed)) * said


class Added(nn.Module):
    """Each head has its own way out, and a small network beside the large."""

    def __init__(self):
        super().__init__()
        self.norm, self.last = nn.LayerNorm(D), nn.LayerNorm(D)
        self.heads = nn.ModuleList(Mixing() for _ in range(3))
        self.net = network()
        self.down, self.up = nn.Linear(D, 2), nn.Linear(2, D, bias=False)

    def forward(self, x):
        normed = self.norm(x)
        x = x + sum(head(normed) for head in self.heads)
        normed = self.last(x)
        return x + self.net(normed) + self.up(self.down(normed))


@pytest.mark.parametrize("block", [Routed, Shifted, Added])
@pytest.mark.parametrize("told", [{}, {"order": "pre"}])
def test_other_designs_are_sound(block, told):
    report = here(block(), **told)
    assert report.passed, report


class Blind(Memory):
    """The first token may see nothing: what it is told is NaN."""

    def forward(self, x, memory):
        n = x.shape[1]
        past = torch.ones(n, n).tril(-1).log()
        q = self.norms[0](x)
        return super().forward(x + (q @ q.mT + past).softmax(-1) @ x, memory)


def test_numbers_that_are_none_are_no_chance():
    """It was taken for random, and compared with parts that do not fit."""
    report = here(Blind(), order="pre")
    assert report.exit_code == 1, report
    assert not report.trouble


class Left(SideBySide):
    """A part that is for another kind of block is not called."""

    def make(self):
        super().make()
        self.cross_attention = Mixing()
        self.cross_norm = nn.LayerNorm(D)


def test_a_part_for_a_context_may_be_idle():
    assert here(Left()).passed
