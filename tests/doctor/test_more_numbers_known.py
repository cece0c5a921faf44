"""Formulas of which only properties were asked, so that much was missed."""

import dataclasses
import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine

itself = functools.partial(examine, kind="self-attention", time_limit=None)


def cut(x):
    return x.unflatten(-1, (3, -1)).transpose(1, 2)


def turned(x, base):
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=x.dtype) / half)
    angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * rates
    a, b = x.chunk(2, dim=-1)
    both = (
        a * angle.cos() - b * angle.sin(),
        b * angle.cos() + a * angle.sin(),
    )
    return torch.cat(both, dim=-1)


@dataclasses.dataclass
class Config:
    rope_parameters: dict = dataclasses.field(
        default_factory=lambda: {"rope_theta": 500.0}
    )


class Turned(nn.Module):
    """Its base stands in a dictionary of its configuration."""

    def __init__(self):
        super().__init__()
        self.config = Config()
        self.query, self.key, self.value, self.out = (
            nn.Linear(12, 12) for _ in range(4)
        )

    def scale(self, d):
        return d**-0.5

    def forward(self, x):
        base = self.config.rope_parameters["rope_theta"]
        q, k = (turned(cut(part(x)), base) for part in (self.query, self.key))
        weights = (q @ k.mT * self.scale(q.shape[-1])).softmax(dim=-1)
        return self.out(
            (weights @ cut(self.value(x))).transpose(1, 2).flatten(2)
        )


class TurnedAndDividedByD(Turned):
    def scale(self, d):
        return 1 / d


class BiasesApart(nn.Module):
    """Queries and values have biases, and each head one for each distance."""

    def __init__(self, by_distance=True, exchanged=False):
        super().__init__()
        self.qkv, self.proj = nn.Linear(12, 36, bias=False), nn.Linear(12, 12)
        self.q_bias = nn.Parameter(torch.zeros(12))
        self.v_bias = nn.Parameter(torch.zeros(12))
        self.exchanged = exchanged
        self.table = None
        if by_distance:
            self.table = nn.Parameter(torch.randn(29, 3))
            apart = torch.arange(15)
            index = apart[:, None] - apart + 14
            self.register_buffer("relative_position_index", index)

    def forward(self, x):
        n = x.shape[1]
        bias = torch.cat((self.q_bias, torch.zeros(12).to(x), self.v_bias))
        parts = F.linear(x, self.qkv.weight, bias).chunk(3, dim=-1)
        q, k, v = map(cut, parts)
        if self.exchanged:
            q, k = k, q
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if self.table is not None:
            index = self.relative_position_index[:n, :n]
            scores = scores + self.table[index].movedim(-1, 0)
        made = scores.softmax(dim=-1) @ v
        return self.proj(made.transpose(1, 2).flatten(2))


OWN = {"layout": "BND", "causal": False, "n_heads": 3, "formula": "own"}


@pytest.mark.parametrize("made", [Turned, BiasesApart])
def test_what_is_learnt_or_kept_besides_is_read(made):
    """Then its numbers are asked, and not its properties alone."""
    report = itself(made(), **OWN)
    assert report.passed, report
    asked = {row.claim for row in claims_of(made())}
    assert "it is what its projections make it" in asked


def claims_of(thing):
    """The probes that one with a formula of its own is asked."""
    from selfattn.doctor.kinds.layer import exercise, reading

    seen = reading.read(thing, OWN)
    return exercise.of(
        thing, {"packed": "by part", **seen.facts, **OWN}
    ).probes


def test_what_is_wrong_in_them_is_not_healthy():
    """It was: of properties alone neither breaks any."""
    wrong = itself(TurnedAndDividedByD(), **OWN)
    assert wrong.mistake is not None, wrong
    assert wrong.mistake.name == "divided by d"
    wrong = itself(BiasesApart(exchanged=True), **OWN)
    assert wrong.exit_code == 1, wrong


def test_biases_of_queries_and_values_may_stand_apart():
    """Then the formula is the plain one, and not one of its own."""
    report = itself(BiasesApart(by_distance=False))
    assert report.passed, report
    assert report.facts.get("formula") != "own"


class Grouped(nn.Module):
    """Two heads of keys for four of queries; no name tells how many."""

    def __init__(self):
        super().__init__()
        self.shape = 4, 2, 3
        self.wq, self.wo = nn.Linear(12, 12), nn.Linear(12, 12)
        self.wk, self.wv = nn.Linear(12, 6), nn.Linear(12, 6)

    def forward(self, x):
        q, k, v = (
            part(x).unflatten(-1, (n, 3)).transpose(1, 2)
            for part, n in ((self.wq, 4), (self.wk, 2), (self.wv, 2))
        )
        k, v = (one.repeat_interleave(2, dim=1) for one in (k, v))
        weights = (q @ k.mT / math.sqrt(3)).softmax(dim=-1)
        return self.wo((weights @ v).transpose(1, 2).flatten(2))


def test_heads_that_do_not_divide_the_keys_are_not_tried():
    """It was asked how many there are, though one number alone makes sense."""
    report = itself(Grouped())
    assert report.passed, report
