"""Blocks and layers that take texts of one length, and no others.

Who mixes tokens by a table, or folds a text into frames, raises at seven
tokens; and so it could not be said how wide such a block is.
"""

import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds import find_kind, one_length

D, TOKENS = 12, 8


def network(d, wide):
    return nn.Sequential(nn.Linear(d, wide), nn.GELU(), nn.Linear(wide, d))


class Mixes(nn.Module):
    """A network over tokens in the place of attention."""

    def __init__(self, heard=True):
        super().__init__()
        self.heard = heard
        self.first, self.second = nn.LayerNorm(D), nn.LayerNorm(D)
        self.over_tokens = network(TOKENS, 2 * TOKENS)
        self.over_features = network(D, 2 * D)

    def forward(self, x):
        mixed = self.over_tokens(self.first(x).mT).mT
        x = x + mixed if self.heard else mixed
        return x + self.over_features(self.second(x))


class TimeThenSpace(nn.Module):
    """First every patch looks through the frames, then each frame at itself.

    ``folded`` says whether the frames come back to where they were.
    """

    def __init__(self, folded=True):
        super().__init__()
        self.frames, self.patches, self.folded = 3, 5, folded
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))
        self.in_time, self.in_space = (
            nn.MultiheadAttention(D, 2, batch_first=True) for _ in range(2)
        )
        self.network = network(D, 2 * D)

    def forward(self, x):
        whole = (len(x), self.frames, self.patches, D)
        turned = (len(x), self.patches, self.frames, D)
        y = self.norms[0](x).view(whole).transpose(1, 2).flatten(0, 1)
        y = self.in_time(y, y, y, need_weights=False)[0].view(turned)
        y = y.transpose(1, 2) if self.folded else y
        x = x + y.reshape(x.shape)
        y = self.norms[1](x).view(whole).flatten(0, 1)
        y = self.in_space(y, y, y, need_weights=False)[0]
        x = x + y.reshape(x.shape)
        return x + self.network(self.norms[2](x))


class InAWindow(nn.Module):
    """Scores with a table of their own, for windows of three by three."""

    def __init__(self, axis=-1):
        super().__init__()
        self.num_heads, self.axis = 2, axis
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.bias = nn.Parameter(torch.randn(2, 9, 9) / 4)

    def forward(self, x):
        heads = (*x.shape[:2], 3, 2, -1)
        q, k, v = self.qkv(x).reshape(heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / math.sqrt(D // 2) + self.bias
        seen = scores.softmax(self.axis) @ v
        return self.proj(seen.transpose(1, 2).reshape(x.shape))


class NoLengthAtAll(nn.Module):
    """Two axes are exchanged: it works for as many tokens as features."""

    def __init__(self):
        super().__init__()
        self.norm, self.other = nn.LayerNorm(D), nn.LayerNorm(D)
        self.network, self.mix = network(D, 2 * D), nn.Linear(D, D)

    def forward(self, x):
        x = x + self.mix(self.norm(x).mT)
        return x + self.network(self.other(x))


class AsManyAsHeads(nn.Module):
    """Two axes are exchanged: it works for as many tokens as heads."""

    def __init__(self):
        super().__init__()
        self.norm, self.n_heads = nn.LayerNorm(D), 5
        self.gains = nn.Parameter(torch.randn(D, D))

    def forward(self, x):
        return x + self.norm(x).unflatten(1, (self.n_heads, 1)).mean(2)


def own(block, **told):
    told = {"formula": "own", "order": "pre", **told}
    return examine(block.eval(), kind="encoder-block", time_limit=None, **told)


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize(("make", "n"), [(Mixes, 8), (TimeThenSpace, 15)])
def test_a_block_of_one_length_is_healthy_and_the_length_is_said(
    make, n, told
):
    report = own(make(), **({"length": n} if told else {}))
    assert report.passed, str(report)
    assert f"it takes texts of {n} tokens alone" in " ".join(
        str(report).split()
    )


def test_a_path_that_is_lost_is_named_at_that_length():
    assert "residual" in own(Mixes(heard=False)).mistake.name


def test_frames_that_do_not_come_back_are_found_by_a_formula():
    """Whom a token hears is the same: a formula alone tells them apart."""

    def slow(block, x):
        right = TimeThenSpace().to(x.dtype)
        right.load_state_dict(block.state_dict())
        return right(x)

    assert own(TimeThenSpace(), formula=slow).passed
    assert own(TimeThenSpace(folded=False), formula=slow).exit_code == 1


def test_another_length_than_its_own_is_asked_after():
    report = own(Mixes(), length=9)
    assert report.exit_code == 2


def test_who_takes_as_many_tokens_as_features_has_no_length_of_its_own():
    assert not own(NoLengthAtAll()).passed
    assert not own(AsManyAsHeads()).passed


@pytest.mark.parametrize("told", [{}, {"length": 9}])
def test_a_layer_with_a_table_for_its_tokens_is_asked_at_their_number(told):
    report = examine(
        InAWindow(), kind="self-attention", time_limit=None, **told
    )
    assert report.passed, str(report)
    wrong = examine(
        InAWindow(axis=0), kind="self-attention", time_limit=None, **told
    )
    assert not wrong.passed


def test_a_layer_of_one_length_is_asked_at_no_other():
    layer = find_kind("self-attention")
    facts = layer.read(InAWindow(), {}).facts
    (usual, *_) = layer.readings({}, layer.read(InAWindow(), {}))
    asked = layer.exercise(InAWindow(), usual.facts).probes
    assert facts["length"] == 9
    assert {probe.sizes["n"] for probe in asked} == {9}
    alone = "a single token gets its own value"
    assert alone not in [probe.claim for probe in asked]


def test_a_call_tells_its_length_and_others_have_none():
    assert one_length.of(one_length.told(lambda x: x, 9)) == 9
    assert one_length.of(len) is None
