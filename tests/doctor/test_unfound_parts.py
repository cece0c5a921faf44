"""Blocks whose parts are not found were not examined at all.

They were asked for names, and ill ones were sent home with that question.
Of any block it can be asked what holds of all; and it is told what was not.
"""

import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from tests.doctor.blocks_of_their_own import (
    BLOCKS,
    D,
    Memory,
    network,
)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def here(block, kind="encoder-block", **told):
    return examine(block, kind=kind, time_limit=None, **told)


class Attention(nn.Module):
    """Of one head; it makes its own causal mask, or takes one, or none."""

    def __init__(self, diagonal=None):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))
        self.diagonal = diagonal

    def forward(self, x, y=None, mask=None):
        y = x if y is None else y
        if self.diagonal is not None:
            n = x.shape[1]
            mask = torch.ones(n, n, dtype=torch.bool).tril(self.diagonal)
        scores = self.q(x) @ self.k(y).mT / math.sqrt(D)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(dim=-1) @ self.v(y)


class Halves(nn.Module):
    """Half a network before the attention, and half a one behind it."""

    def __init__(self, slip=""):
        super().__init__()
        self.slip, self.mix = slip, Attention()
        self.first, self.last = network(), network()
        self.one, self.two, self.end = (nn.LayerNorm(D) for _ in range(3))

    def forward(self, x):
        x = x + self.first(self.one(x)) / 2
        said = self.mix(x if self.slip == "idle" else self.two(x))
        x = said if self.slip == "lost" else x + said
        return x + self.last(self.end(x)) / 2


def test_a_sound_one_is_healthy_and_told_what_was_not_asked():
    report = here(Halves())
    assert report.passed, report
    (not_asked,) = (w for w in report.not_asked if "joins" in w)
    assert "norms=[…]" in not_asked and "own" not in not_asked
    why = "a block of this kind has 2 norms, but I find 3"
    assert report.not_asked[not_asked] == why
    assert report.facts["formula"] == "own"
    assert "order" not in report.facts


def test_who_says_what_it_takes_is_told_that_too():
    report = here(Halves(), takes=())
    assert any("norms" in why for why in report.not_asked.values()), report
    with pytest.raises(ValueError, match="parts"):
        here(Halves(), takes=("parts",))


@pytest.mark.parametrize(
    ("slip", "name"),
    [("lost", "no residual around the attention"), ("idle", "no norm")],
)
def test_an_ill_one_is_told_its_mistake(slip, name):
    report = here(Halves(slip))
    assert report.exit_code == 1, report
    assert report.mistake.name == name


@pytest.mark.parametrize("block", BLOCKS)
def test_no_sound_one_of_its_own_formula_is_called_ill(block):
    kind = "decoder-block" if issubclass(block, Memory) else "encoder-block"
    report = here(block(), kind)
    is_ill = report.exit_code == 1
    assert not (is_ill and report.facts.get("formula") == "own"), report


def test_who_names_parts_is_asked_for_those_that_are_missing():
    """He wants to know how they are joined, which nobody could tell him."""
    report = here(Halves(), attention="mix")
    assert "2 norms, but I find 3" in report.question, report
    assert here(Halves("lost"), attention="mix").mistake is not None


def test_attention_alone_is_no_block():
    """It norms nothing, and is asked for what a block has."""
    report = here(Attention())
    assert "2 norms, but I find 0" in report.question, report


class Bare(nn.Module):
    """Nothing in it attends that could be asked alone."""

    def __init__(self, lost=False):
        super().__init__()
        self.lost, self.norm = lost, nn.LayerNorm(D)
        self.wide, self.told = nn.Linear(D, 7 * D), nn.Linear(D, D)
        self.back = nn.Linear(2 * D, D)

    def forward(self, x):
        q, k, v, gate, up = self.wide(self.norm(x)).split(
            (D, D, D, 2 * D, 2 * D), dim=-1
        )
        weights = (q @ k.mT / math.sqrt(D)).softmax(dim=-1)
        said = self.told(weights @ v) + self.back(torch.relu(gate) * up)
        return said if self.lost else x + said


def test_too_little_is_known_where_nothing_attends_by_itself():
    """To call it healthy would be to promise what nobody looked at."""
    assert "which maps are for queries" in here(Bare()).question
    report = here(Bare(lost=True))
    assert report.exit_code == 1 and report.mistake.name == "no residual"


class TokensFirst(Halves):
    """The same, with tokens before the batch."""

    def forward(self, x):
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


def test_which_axis_is_for_tokens_is_seen():
    report = here(TokensFirst())
    assert report.passed and report.facts["layout"] == "NBD", report
    report = here(TokensFirst(), formula="own")
    assert report.passed and report.facts["layout"] == "NBD", report
    assert here(TokensFirst("lost")).exit_code == 1


class Gates(nn.Module):
    """Usual parts, and gates where others add."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention, self.mlp = Attention(), network()
        self.gates = nn.ModuleList(nn.Linear(2 * D, D) for _ in range(2))

    def forward(self, x):
        for i, (norm, layer) in enumerate(
            ((self.one, self.attention), (self.two, self.mlp))
        ):
            said = layer(norm(x))
            share = self.gates[i](torch.cat([x, said], -1)).sigmoid()
            x = share * x + (1 - share) * said
        return x


def test_who_joins_more_than_the_usual_parts_is_not_held_to_these():
    """He was called ill, with numbers wrong wherever he was asked."""
    report = here(Gates())
    assert report.passed, report
    assert any("gates.0, too" in why for why in report.not_asked.values())
    named = {"norms": ["one", "two"], "attention": "attention"}
    assert "gates.0, too" in here(Gates(), **named).question


class Reading(nn.Module):
    """A decoder block with a half of a network at each end."""

    def __init__(self, diagonal=0):
        super().__init__()
        self.own, self.other = Attention(diagonal), Attention()
        self.first, self.last = network(), network()
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(4))

    def forward(self, x, memory, memory_mask=None):
        one, two, three, four = self.norms
        x = x + self.first(one(x)) / 2
        x = x + self.own(two(x))
        x = x + self.other(three(x), memory, memory_mask)
        return x + self.last(four(x)) / 2


def test_whether_a_decoder_may_see_later_tokens_is_asked():
    """Of one whose parts are found it is no question: it may not."""
    report = here(Reading(None), "decoder-block")
    assert "causal=True" in report.question, report
    assert here(Reading(None), "decoder-block", causal=False).passed
    report = here(Reading(None), "decoder-block", causal=True)
    assert report.exit_code == 1, report
    report = here(Reading(1), "decoder-block")
    assert report.mistake is not None, report
    assert report.mistake.name == "one too many"


def test_an_attention_is_not_asked_of_a_mask_that_it_is_never_handed():
    """It makes its own, and was told that it ignores the other."""
    told = {"formula": "own", "layout": "BND", "mask": "keep"}
    for facts in ({}, told):
        report = here(Reading(), "decoder-block", **facts)
        assert report.passed, report


class Padded(Reading):
    """Its mask is called as nobody knows."""

    def forward(self, x, memory, memory_padding=None):
        mask = None if memory_padding is None else ~memory_padding[:, None]
        return super().forward(x, memory, mask)


def test_a_mask_of_which_nobody_spoke_is_said_to_be_there():
    report = here(Padded(), "decoder-block")
    why = "nobody said what its memory_padding means"
    assert report.passed and report.not_asked["a mask"] == why, report
    told = here(Padded(), "decoder-block", padding="block")
    assert "a mask for padding" not in told.not_asked, told


def test_the_first_token_is_blank_where_none_sees_itself():
    """It gives NaN, and that was all that was said."""
    told = {"formula": "own", "layout": "BND"}
    report = here(Reading(-1), "decoder-block", **told)
    assert report.mistake is not None, report
    assert report.mistake.name == "not itself"


class Backwards(Attention):
    """Its mask lets a token see what comes after it."""

    def forward(self, x, y=None, mask=None):
        n = x.shape[1]
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        return super().forward(x, y, later)


def test_the_last_token_is_blank_where_only_the_future_is_seen():
    block = Reading()
    block.own = Backwards()
    told = {"formula": "own", "layout": "BND"}
    report = here(block, "decoder-block", **told)
    assert report.mistake is not None, report
    assert report.mistake.name == "only the future is seen"


class Twice(Halves):
    """A norm of a norm."""

    def forward(self, x):
        x = x + self.mix(self.two(self.two(x)))
        x = x + self.first(self.one(x)) / 2
        return x + self.last(self.end(x)) / 2


@pytest.mark.parametrize(
    ("block", "name"),
    [(Halves("idle"), "no norm"), (Twice(), "norm before and behind")],
)
def test_a_part_is_idle_whatever_becomes_of_the_path(block, name):
    """Whose path is his own affair was not asked after his parts, either."""
    report = here(block, formula="own", path="free")
    assert report.exit_code == 1, report
    assert report.mistake.name == name
    assert here(Halves(), formula="own", path="free").passed
    assert here(Halves("lost"), formula="own", path="free").passed


class Behind(nn.Module):
    """Norms behind the sums, and no attention, as nobody adds it."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(D, 2, batch_first=True)
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)
        self.mlp = network()

    def forward(self, x, attn_mask=None):
        self.attention(x, x, x, attn_mask=attn_mask)
        x = self.one(x)
        return self.two(x + self.mlp(x))


def test_readings_that_are_unlike_are_looked_at_first():
    """It was taken for one of norms before, by three meanings of a mask."""
    report = here(Behind())
    assert report.mistake is not None, report
    assert report.mistake.name == "no attention"
