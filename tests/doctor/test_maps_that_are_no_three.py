"""Maps whose names may stand for three in one, and which are but one.

A score learns one matrix, "linear_in", which is as wide as what it takes. It
was read as queries, keys and values side by side, so that an output of full
width had "the wrong shape".
"""

import functools
import math

import torch
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)


class General(nn.Module):
    """Scores of a learnt product, and tanh of both texts side by side."""

    def __init__(self, d=9, tokens_first=False):
        super().__init__()
        self.tokens_first = tokens_first
        self.linear_in = nn.Linear(d, d, bias=False)
        self.linear_out = nn.Linear(2 * d, d)

    def forward(self, x, memory, lengths=None):
        assert x.shape[self.tokens_first] == memory.shape[self.tokens_first]
        if self.tokens_first:
            x, memory = x.transpose(0, 1), memory.transpose(0, 1)
        scores = self.linear_in(x) @ memory.mT
        if lengths is not None:
            real = torch.arange(memory.shape[1]) < lengths[:, None, None]
            scores = scores.masked_fill(~real, -torch.inf)
        weights = scores.softmax(dim=-1)
        said = torch.cat((weights @ memory, x), dim=-1)
        out = torch.tanh(self.linear_out(said))
        return out.transpose(0, 1) if self.tokens_first else out


def test_one_square_map_is_not_three():
    for first in (False, True):
        report = here(General(tokens_first=first), kind="cross-attention")
        assert report.passed, report
        assert report.facts["layout"] == ("NBD" if first else "BND")


class Narrow(nn.Module):
    """Self-attention whose three together are as wide as x."""

    def __init__(self, d=12, n_heads=2, scaled=True):
        super().__init__()
        self.n_heads, self.scaled = n_heads, scaled
        self.qkv = nn.Linear(d, d)
        self.out = nn.Linear(d // 3, d)

    def forward(self, x):
        q, k, v = (
            y.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for y in self.qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.mT
        if self.scaled:
            scores = scores / math.sqrt(q.shape[-1])
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def test_three_may_be_as_narrow_as_x_if_the_way_out_takes_a_third():
    report = here(Narrow(), kind="self-attention")
    assert report.passed and "numbers" not in report.lacking, report
    wrong = here(Narrow(scaled=False), kind="self-attention")
    assert wrong.mistake.name == "no scale"
