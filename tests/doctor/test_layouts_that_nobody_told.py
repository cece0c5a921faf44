"""Layers of which nobody told in which order batch and tokens come.

A layer that takes the batch first was read as one that takes tokens first,
and then "batch and tokens exchanged" was the name of its mistake: so it was
if it had but a trifle of its own, such as scores that it returns.
"""

import functools
import math

from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, kind="cross-attention", time_limit=None)


class WithScores(nn.Module):
    """Attention to a context that hands back what went into its softmax."""

    axis = -1

    def __init__(self, d=12, n_heads=3, tokens_first=False):
        super().__init__()
        self.n_heads, self.tokens_first = n_heads, tokens_first
        self.query, self.key = nn.Linear(d, d), nn.Linear(d, d)
        self.value, self.out = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x, context):
        if self.tokens_first:
            x, context = x.transpose(0, 1), context.transpose(0, 1)
        given = (self.query, x), (self.key, context), (self.value, context)
        q, k, v = (
            one(y).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for one, y in given
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = scores.softmax(self.axis)
        out = self.out((weights @ v).transpose(1, 2).flatten(2))
        return out.transpose(0, 1) if self.tokens_first else out, scores


def test_batch_and_tokens_are_exchanged_only_if_it_was_told_which_is_which():
    for first in (False, True):
        layer = WithScores(tokens_first=first)
        report = here(layer)
        assert report.exit_code != 1, report
    told = {"layout": "BND", "takes": ["float64"], "n_heads": 3}
    report = here(layer, **told)
    assert report.mistake.name == "batch and tokens exchanged"


class Wrong(WithScores):
    """The same, where each key shares itself out among the queries."""

    axis = -2


def test_who_is_wrong_in_either_layout_is_still_ill():
    for first in (False, True):
        report = here(Wrong(tokens_first=first))
        assert report.mistake.name == "softmax over queries", report
