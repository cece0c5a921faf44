"""Blocks that are sound and were refused, or called ill for their design.

A context may come before x, a network may be convolutions of width one, a
norm may have learnt a single number, and the past may be a window.
"""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from selfattn.doctor import examine

D = 12


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def here(block, kind="decoder-block", **told):
    return examine(block, kind=kind, time_limit=None, **told)


def past(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


class Attention(nn.Module):
    """Of three heads."""

    def __init__(self, d_context=D, scale=0.5):
        super().__init__()
        self.q, self.o = nn.Linear(D, D), nn.Linear(D, D)
        self.k, self.v = (nn.Linear(d_context, D) for _ in range(2))
        self.scale = scale

    def forward(self, x, context, mask=None):
        q, k, v = (
            one.unflatten(-1, (3, 4)).transpose(1, 2)
            for one in (self.q(x), self.k(context), self.v(context))
        )
        scores = q @ k.mT * self.scale
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class OfTwo(nn.Module):
    """A decoder block that is given x, and then a context."""

    def __init__(self, d_context=D, scale=0.5, slip=""):
        super().__init__()
        self.own = Attention(scale=scale)
        self.other = Attention(d_context)
        self.network = nn.Sequential(
            nn.Linear(D, 20), nn.GELU(), nn.Linear(20, D)
        )
        self.a, self.b, self.c = (nn.LayerNorm(D) for _ in range(3))
        self.slip = slip

    def to_itself(self, x):
        return self.own(x, x, past(x.shape[1]))

    def forward(self, x, context):
        x = x + self.to_itself(self.a(x))
        said = self.other(self.b(x), context)
        x = said if self.slip == "alone" else x + said
        return x + self.network(self.c(x))


class ContextFirst(OfTwo):
    """The same, given them the other way round."""

    def forward(self, context, x):
        return super().forward(x, context)


PARTS = {
    "order": "pre",
    "self_attention": "own",
    "cross_attention": "other",
    "feed_forward": "network",
}


@pytest.mark.parametrize("d_context", [D, 9])
@pytest.mark.parametrize("told", [PARTS, {"order": "pre"}])
def test_a_context_may_come_before_x(d_context, told):
    assert here(ContextFirst(d_context), **told).passed


def test_a_mistake_is_found_in_one_whose_context_comes_first():
    report = here(ContextFirst(slip="alone"), **PARTS)
    name = "no residual around the cross attention"
    assert report.mistake.name == name


class SeesAll(OfTwo):
    """One that finds things, and writes nothing: its tokens see each other."""

    def to_itself(self, x):
        return self.own(x, x)


def test_one_that_was_said_not_to_be_causal_need_not_be():
    told = {**PARTS, "causal": False}
    assert here(SeesAll(), formula="own", **told).passed
    assert here(SeesAll(), **told).passed
    hides = here(OfTwo(), **told)
    assert not hides.passed and not hides.trouble
    assert not here(SeesAll(), **PARTS).passed


class Nearby(nn.Module):
    """What is past is heard by a convolution."""

    def __init__(self, ahead=0):
        super().__init__()
        self.mixing, self.ahead = nn.Conv1d(D, D, 3), ahead
        self.other, self.a, self.b = (
            Attention(),
            nn.LayerNorm(D),
            nn.LayerNorm(D),
        )
        self.first, self.last = nn.Linear(D, 20), nn.Linear(20, D)
        self.c = nn.LayerNorm(D)

    def forward(self, x, context):
        padded = F.pad(self.a(x).mT, (2 - self.ahead, self.ahead))
        x = x + F.relu(self.mixing(padded)).mT
        x = x + self.other(self.b(x), context)
        return x + self.last(F.relu(self.first(self.c(x))))


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_one_of_its_own_may_see_the_latest_of_the_past(ahead):
    report = here(Nearby(ahead), formula="own", causal=True, order="pre")
    assert report.passed == (ahead == 0)
    assert ahead == 0 or report.findings


class OfConvolutions(nn.Module):
    """An encoder block whose network is convolutions of width one."""

    def __init__(self, bends=True):
        super().__init__()
        self.attention = Attention()
        self.up, self.down = nn.Conv1d(D, 20, 1), nn.Conv1d(20, D, 1)
        self.a, self.b = nn.LayerNorm(D), nn.LayerNorm(D)
        self.bends = bends

    def forward(self, x, mask=None):
        x = self.a(x + self.attention(x, x, mask))
        inner = self.up(x.mT)
        inner = inner.relu() if self.bends else inner
        return self.b(x + self.down(inner).mT)


NAMED = {"flat_feed_forward": ("up", "relu", "down")}


@pytest.mark.parametrize("named", [NAMED, {}])
def test_convolutions_of_width_one_are_maps_of_tokens(named):
    told = {"order": "post", "mask": "keep", **named}
    assert here(OfConvolutions(), "encoder-block", **told).passed
    report = here(OfConvolutions(bends=False), "encoder-block", **told)
    assert report.mistake.name == "network without a bend"


class Wide(OfConvolutions):
    """One whose convolutions are not of width one; it pads them itself."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Conv1d(D, 20, 3), nn.Conv1d(20, D, 1)

    def forward(self, x, mask=None):
        x = self.a(x + self.attention(x, x, mask))
        return self.b(x + self.down(self.up(F.pad(x.mT, (1, 1))).relu()).mT)


def test_maps_that_cannot_be_called_so_are_no_trouble():
    report = here(Wide(), "encoder-block", order="post", **NAMED)
    assert report.passed


class Length(nn.Module):
    """A norm that has learnt a single number."""

    def __init__(self):
        super().__init__()
        self.length = nn.Parameter(torch.tensor(3.0))

    def forward(self, x):
        return self.length * F.normalize(x, dim=-1)


class OneNumber(nn.Module):
    """An encoder block with such norms."""

    def __init__(self, slip=False):
        super().__init__()
        self.attention = Attention()
        self.network = nn.Sequential(
            nn.Linear(D, 20), nn.GELU(), nn.Linear(20, D)
        )
        self.a, self.b, self.slip = Length(), Length(), slip

    def forward(self, x):
        y = self.a(x)
        x = x + self.attention(y, y)
        said = self.network(self.b(x))
        return said if self.slip else x + said


def test_a_norm_may_have_learnt_a_single_number():
    told = {"norms": ["a", "b"], "order": "pre"}
    assert here(OneNumber(), "encoder-block", **told).passed
    report = here(OneNumber(slip=True), "encoder-block", **told)
    assert report.mistake.name == "no residual around the feed forward"


class Flagged(nn.Module):
    """Hides later tokens if a flag is up, which must be told, and first."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(2))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.network = nn.Sequential(
            nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)
        )

    def forward(self, is_causal, x, notes):
        n = x.shape[1]
        past = torch.ones(n, n).triu(1).bool() if is_causal else None
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, attn_mask=past)[0]
        return x + self.network(self.norms[1](x))


@pytest.mark.parametrize(
    ("told", "passes"),
    [
        ({}, True),
        ({"causal": True}, True),
        ({"causal": True, "call": {"is_causal": True, "notes": None}}, True),
        ({"causal": True, "call": {"is_causal": False, "notes": None}}, False),
        ({"causal": False, "call": {"is_causal": True}}, False),
    ],
)
def test_a_flag_that_must_be_told_is_found_or_told(told, passes):
    """It was handed a text for a flag, and, told causal, called ill."""
    report = examine(
        Flagged().eval(), kind="encoder-block", time_limit=None, **told
    )
    assert report.passed == passes, str(report)
