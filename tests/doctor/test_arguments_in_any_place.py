"""Layers whose arguments stand in places that are not the usual ones."""

import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine


class Attends(nn.Module):
    """Attention of one head, which is what all of these compute."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(12, 12) for _ in "qkvo")

    def look(self, x, context, mask):
        """From x to a context, where a mask says True."""
        scores = self.q(x) @ self.k(context).mT / math.sqrt(12)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return self.out(scores.softmax(-1) @ self.v(context)), scores


class MaskFirst(Attends):
    def forward(self, seen, tokens):
        return self.look(tokens, tokens, seen)[0]


class MaskBeforeTheContext(Attends):
    def forward(self, x, mask, context=None):
        return self.look(x, x if context is None else context, mask)[0]


class ScoresComeAlong(Attends):
    def forward(self, x, context, mask=None):
        return self.look(x, context, mask)


class WeightsThatSumToMore(Attends):
    def forward(self, x, context, mask=None):
        output, scores = self.look(x, context, mask)
        return output, 2 * scores.softmax(-1)


MASK = {"mask": "keep", "mask_axes": "BNN", "n_heads": 1, "layout": "BND"}


def test_who_says_which_is_x_may_have_the_mask_first():
    """X was handed over in front, where the mask stands."""
    names = {"x": "tokens", "mask": "seen"}
    report = examine(
        MaskFirst(), kind="self-attention", names=names, causal=False, **MASK
    )
    assert report.passed, str(report)


@pytest.mark.parametrize("told", [MASK, {}])
def test_a_mask_that_is_needed_is_no_context(told):
    """It was taken for one, though a context may be handed over."""
    report = examine(MaskBeforeTheContext(), kind="cross-attention", **told)
    assert report.passed or report.question, str(report)
    if told:
        assert report.passed, str(report)


def test_scores_beside_the_output_are_no_weights_that_sum_to_one():
    """Who aligns words wants them before the softmax."""
    told = {**MASK, "kind": "cross-attention"}
    report = examine(ScoresComeAlong(), **told)
    assert report.passed, str(report)
    report = examine(WeightsThatSumToMore(), **told)
    assert [f.probe.claim for f in report.findings] == [
        "rows of weights sum to one"
    ]


class ToldItsFuture(nn.Module):
    """A decoder block that must be told what is later, in a way of its own;
    its other mask is for padding."""

    def __init__(self, hides):
        super().__init__()
        self.attn = nn.MultiheadAttention(12, 2, batch_first=True)
        self.cross = nn.MultiheadAttention(12, 2, batch_first=True)
        self.network = nn.Sequential(
            nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 12)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(12) for _ in range(3))
        self.hides = hides

    def forward(self, x, memory, future, memory_mask=None):
        one, two, three = self.norms
        y = one(x)
        hidden = future if self.hides else ~future
        x = x + self.attn(y, y, y, attn_mask=hidden)[0]
        y = two(x)
        padded = None if memory_mask is None else ~memory_mask
        x = x + self.cross(y, memory, memory, key_padding_mask=padded)[0]
        return x + self.network(three(x))


@pytest.mark.parametrize("hides", [True, False])
def test_what_a_mask_for_the_future_says_is_not_that_of_padding(hides):
    """It was told as padding is; and so of the past nothing was seen."""
    report = examine(
        ToldItsFuture(hides),
        kind="decoder-block",
        own_mask="future",
        padding="keep",
        order="pre",
        self_attention="attn",
        cross_attention="cross",
    )
    assert report.passed, str(report)


class OfPairsAndOfTexts(Attends):
    """One mask says which pairs may meet, the other which tokens are real."""

    def forward(self, x, mask=None, attn_mask=None):
        seen = torch.ones(x.shape[1], x.shape[1]).bool()
        seen = seen if attn_mask is None else seen & attn_mask
        seen = seen.expand(len(x), -1, -1)
        seen = seen if mask is None else seen & mask[:, None]
        return self.look(x, x, seen)[0]


def test_beside_a_mask_of_pairs_a_mask_is_of_tokens():
    """Of two masks the one for padding was taken for the one for pairs."""
    report = examine(OfPairsAndOfTexts(), kind="self-attention")
    assert report.passed, str(report)
    assert {"mask", "padding"} <= {*report.promised}
