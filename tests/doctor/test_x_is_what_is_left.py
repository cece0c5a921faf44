"""Layers that must be given something before x, of whom that was not told.

Of a layer whose context or mask was told by its name, x is what is left; and
of who takes two things, calls tell which of them hides keys.
"""

import functools
import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.multihead import MultiHeadAttention

here = functools.partial(examine, time_limit=None)


class ContextFirst(nn.Module):
    """A text that looks at pictures, which come first."""

    def __init__(self, d=12):
        super().__init__()
        self.attend = MultiHeadAttention(d, 3)

    def forward(self, pictures, words):
        return self.attend(words, pictures)


class EdgesFirst(nn.Module):
    """Nodes that look at those to which there is an edge."""

    def __init__(self, d=12, n_heads=3, hidden=-torch.inf, scaled=True):
        super().__init__()
        self.n_heads, self.hidden, self.scaled = n_heads, hidden, scaled
        self.q, self.k, self.v, self.out = (nn.Linear(d, d) for _ in range(4))

    def forward(self, edges, nodes):
        q, k, v = (
            one(nodes).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        scores = q @ k.mT
        if self.scaled:
            scores = scores / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(edges[:, None] == 0, self.hidden)
        weights = scores.softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


def test_who_tells_of_the_context_leaves_x_to_be_the_rest():
    told = {"names": {"context": "pictures"}, "n_heads": 3}
    report = here(ContextFirst(), kind="cross-attention", **told)
    assert report.passed, report
    assert "numbers" not in report.lacking


TOLD = [
    {},
    {"names": {"mask": "edges"}},
    {"names": {"mask": "edges"}, "mask": "keep", "mask_axes": "BNN"},
    {"mask": "keep", "n_heads": 3},
]


@pytest.mark.parametrize("told", TOLD)
def test_which_of_two_hides_keys_is_seen_if_it_is_not_told(told):
    report = here(EdgesFirst(), kind="self-attention", **told)
    assert report.passed, report
    assert report.facts.get("mask", told.get("mask")) == "keep"
    wrong = EdgesFirst(scaled=False)
    report = here(wrong, kind="self-attention", **told)
    assert report.mistake.name == "no scale", report


class WithPlaces(nn.Module):
    """A layer that adds what it is told of places, and so hides nothing."""

    def __init__(self, d=12):
        super().__init__()
        self.attend = MultiHeadAttention(d, 3)
        self.table = nn.Embedding(9, d)

    def forward(self, places, x):
        return self.attend(x + self.table(places.long()))


def test_what_hides_nothing_is_still_asked_after():
    report = here(WithPlaces(), kind="self-attention")
    assert report.exit_code == 2
    assert "It needs an argument" in report.question
