"""Attention in a block of its own formula was asked nothing of its steps.

Where it lies in the block's forward or in a method, or does something that no
layer does, nobody compared its numbers: a scale that was left out, a softmax
along another axis and weights that learn nothing were called healthy.
"""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from selfattn.doctor import examine
from selfattn.doctor.kinds.blocks import cores, passing_on
from selfattn.doctor.kinds.blocks.flow import followed
from selfattn.doctor.kinds.layer import taught

D, HEADS = 12, 3
OWN = {
    "formula": "own",
    "causal": False,
    "layout": "BND",
    "inside": False,
}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def here(block, kind="encoder-block", **told):
    return examine(block, kind=kind, time_limit=None, **told)


class Gained(nn.Module):
    """Each head has a gain, and what attention says is normed again."""

    def __init__(self, scale=0.5, axis=-1, cut=False, fused=None):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.gains = nn.Parameter(torch.ones(HEADS))
        self.a, self.b, self.c = (nn.LayerNorm(D) for _ in range(3))
        self.network = nn.Sequential(
            nn.Linear(D, 20), nn.GELU(), nn.Linear(20, D)
        )
        self.scale, self.axis, self.cut = scale, axis, cut
        self.fused = fused

    def mixed(self, q, k, v):
        if self.fused is not None:
            return F.scaled_dot_product_attention(q, k, v, scale=self.fused)
        weights = (q @ k.mT * self.scale).softmax(self.axis)
        return (weights.detach() if self.cut else weights) @ v

    def attend(self, x):
        q, k, v = (
            one.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for one in self.qkv(x).chunk(3, -1)
        )
        mixed = self.mixed(q, k, v) * self.gains[:, None, None]
        return self.b(self.out(mixed.transpose(1, 2).flatten(2)))

    def forward(self, x):
        x = x + self.attend(self.a(x))
        return x + self.network(self.c(x))


SLIPS = {
    "no scale": {"scale": 1.0},
    "multiplied by the root": {"scale": 2.0},
    "scaled by the width of the model": {"scale": D**-0.5},
    "softmax over queries": {"axis": -2},
    "softmax over heads": {"axis": 1},
    "detached": {"cut": True},
}


def test_one_whose_steps_are_right_is_healthy():
    assert here(Gained(), **OWN).passed
    assert here(Gained(fused=0.5), **OWN).passed


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_in_its_steps_is_named(name):
    block = Gained(**SLIPS[name])
    found = passing_on.in_steps(followed(block, block, D), {})
    named = {one for names in found.values() for one in names}
    cut = {"detached"} if taught.untaught(block, block, D) else set()
    assert named | cut == {name}


def test_a_scale_that_was_told_is_right():
    assert here(Gained(scale=1.0), scale=1.0, **OWN).passed
    assert here(Gained(fused=1.0), scale=1.0, **OWN).passed
    report = here(Gained(), scale=1.0, **OWN)
    assert report.passed, "no slip leads from there to the usual one"


def test_who_told_nothing_may_mean_a_scale():
    report = here(Gained(scale=1.0), inside=False)
    assert report.mistake is None


def total(block):
    """What a block's scores are multiplied by, or None."""
    flow = followed(block, block, D)
    known = [
        cores.pieces(said)
        for value in cores.below(flow.output)
        for said in value.terms
        if said.word == cores.SOFTMAX or said.word.startswith(cores.FUSED)
    ]
    assert len(known) == 1
    return None if known[0] is None else math.prod(known[0][1])


@pytest.mark.parametrize("fused", [None, 0.25])
def test_what_multiplies_scores_is_seen(fused):
    block = Gained(scale=0.25, fused=fused)
    assert total(block) == 0.25
    assert cores.are_known(followed(block, block, D).output)


class Learnt(Gained):
    """One with a temperature that it learns; or with keys that are normed."""

    def __init__(self, normed=False):
        super().__init__()
        self.heat = nn.Parameter(torch.tensor(1.0))
        self.of_keys = nn.LayerNorm(D // HEADS)
        self.normed = normed

    def mixed(self, q, k, v):
        if self.normed:
            return (q @ self.of_keys(k).mT).softmax(-1) @ v
        return (q @ k.mT * self.heat).softmax(-1) @ v


@pytest.mark.parametrize("normed", [False, True])
def test_what_is_learnt_or_normed_on_the_way_leaves_it_open(normed):
    block = Learnt(normed)
    assert total(block) is None
    assert not cores.are_known(followed(block, block, D).output)
    report = here(block, **OWN)
    assert report.mistake is None or "scale" not in report.mistake.name


class Dispatching(nn.Module):
    """Each token goes to one of two maps; nothing tells the choice to learn.

    It moves in jumps. So does what a dead unit holds.
    """

    def __init__(self, cut=False):
        super().__init__()
        self.choose, self.one, self.two = (nn.Linear(D, D) for _ in range(3))
        self.cut = cut

    def forward(self, x):
        first = self.choose(x)[..., :1] > 0
        one = self.one(x)
        one = one.detach() if self.cut else one
        return x + torch.where(first, one, torch.relu(self.two(x)))


def test_a_choice_and_dead_units_are_no_cut():
    block = Dispatching()
    assert taught.untaught(block, block, D) == []
    block = Dispatching(cut=True)
    assert taught.untaught(block, block, D) == ["one.weight", "one.bias"]


def test_gradients_that_were_there_are_left():
    block = Dispatching()
    block.one.weight.grad = torch.ones(D, D)
    before = block.one.weight.detach().clone()
    taught.untaught(block, block, D)
    assert block.one.weight.grad.equal(torch.ones(D, D))
    assert block.two.weight.grad is None
    assert block.one.weight.equal(before)


class OneMatrix(nn.Module):
    """Attention and network side by side, out of one matrix."""

    def __init__(self, scale=0.5):
        super().__init__()
        self.norm, self.scale = nn.LayerNorm(D), scale
        self.into = nn.Linear(D, 3 * D + 20, bias=False)
        self.out, self.down = nn.Linear(D, D), nn.Linear(20, D)

    def forward(self, x):
        *qkv, inner = self.into(self.norm(x)).split([D, D, D, 20], -1)
        q, k, v = (
            one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in qkv
        )
        mixed = (q @ k.mT * self.scale).softmax(-1) @ v
        said = self.out(mixed.transpose(1, 2).flatten(2))
        return x + said + self.down(F.gelu(inner))


def test_one_whose_maps_have_no_names_is_asked_by_its_steps():
    told = {"order": "parallel", "layout": "BND"}
    assert here(OneMatrix(1.0), **told).mistake.name == "no scale"
    report = here(OneMatrix(), **told)
    assert report.passed, report
    assert any("queries, keys" in what for what in report.not_asked)
