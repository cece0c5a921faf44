"""Blocks whose attention does not scale, because its authors mean it so.

Of a layer that is asked after: "If it is meant, say scale=1.0". A block in
which the same is seen on the way was called ill.
"""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)


class Attends(nn.Module):
    """Heads whose scores go into the softmax multiplied by a number."""

    def __init__(self, d, times, causal):
        super().__init__()
        self.times, self.causal = times, causal
        self.q, self.k, self.v, self.o = (
            nn.Linear(d, d, bias=False) for _ in range(4)
        )

    def forward(self, x, seen=None):
        seen = x if seen is None else seen
        q, k, v = (
            one(y).unflatten(-1, (3, -1)).transpose(1, 2)
            for one, y in ((self.q, x), (self.k, seen), (self.v, seen))
        )
        scores = q @ k.mT * self.times
        if self.causal:
            later = torch.ones_like(scores).triu(1).bool()
            scores = scores.masked_fill(later, -torch.inf)
        out = scores.softmax(-1) @ v
        return self.o(out.transpose(1, 2).flatten(2))


class Added(nn.Module):
    """What a sublayer says of x, once that is normed, added to x."""

    def __init__(self, d, inner):
        super().__init__()
        self.inner, self.norm = inner, nn.LayerNorm(d)

    def forward(self, x, *told):
        return x + self.inner(self.norm(x), *told)


class Block(nn.Module):
    def __init__(self, times, d=12):
        super().__init__()
        inners = (
            Attends(d, times, causal=True),
            Attends(d, times, causal=False),
            nn.Sequential(nn.Linear(d, 20), nn.ReLU(), nn.Linear(20, d)),
        )
        self.layer = nn.ModuleList(Added(d, inner) for inner in inners)

    def forward(self, hidden, encoded):
        hidden = self.layer[0](hidden)
        hidden = self.layer[1](hidden, encoded)
        return self.layer[2](hidden)


@pytest.mark.parametrize(("times", "code"), [(0.5, 0), (1.0, 3), (0.25, 1)])
def test_a_block_that_does_not_scale_is_asked_whether_it_means_that(
    times, code
):
    report = here(Block(times), kind="decoder-block")
    assert report.exit_code == code, report
    if code == 3:
        assert "scale=1.0" in report.different
        told = here(Block(times), kind="decoder-block", scale=1.0)
        assert told.passed, told
