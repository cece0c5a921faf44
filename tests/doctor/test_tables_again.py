"""Tables of scores, and weights, as they are seen while something works.

A decoder whose future comes in by another way than a missing mask was "not
causal", with no doubt; one whose axes are elsewhere had its tables read as
nothing; and what a mechanism loses in its tiles had no name.
"""

import functools
import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.efficient import weights_seen

here = functools.partial(examine, time_limit=None)


class TokensFirst(nn.Module):
    """Two layers, whose scores are (queries, keys, texts, heads)."""

    def __init__(self, slip="", depth=2):
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(8, 24) for _ in range(depth))
        self.slip = slip

    def layer(self, one, x, kept):
        q, k, v = one(x).unflatten(-1, (2, 12)).chunk(3, -1)
        old = kept or (k[:0], v[:0])
        k, v = torch.cat((old[0], k)), torch.cat((old[1], v))
        if self.slip == "merge":
            y = torch.einsum("ibnd,jbnd->bnij", q, k) / 2
        scores = torch.einsum("ibnd,jbnd->ijbn", q, k) / 2
        behind = len(k) - len(q) + 1 + (self.slip == "one too many")
        shut = torch.ones(len(q), len(k)).triu(behind).bool()
        shut = ~shut if self.slip == "turned" else shut
        fill = {"zero": 0.0, "small": -2.0}.get(self.slip, -torch.inf)
        weights = scores.masked_fill(shut[..., None, None], fill).softmax(1)
        if self.slip == "averaged":
            weights = weights.mean(1, keepdim=True).expand_as(weights)
        y = torch.einsum("ijbn,jbnd->ibnd", weights, v)
        if self.slip == "merge":
            y = y.permute(1, 2, 0, 3).reshape(y.shape)
        return x + y.flatten(2), (k, v)

    def forward(self, x, cache=None):
        x, kept = x.transpose(0, 1), []
        for i, one in enumerate(self.maps):
            x, both = self.layer(one, x, cache and cache[i])
            kept.append(both)
        return x.transpose(0, 1), kept


def of_decoder(slip):
    call = lambda model, x, cache: model(x, cache)  # noqa: E731
    made = TokensFirst(slip)
    return here(made, kind="cached-decoder", d_model=8, call=call)


def test_tables_may_have_their_axes_anywhere():
    assert of_decoder("").passed


@pytest.mark.parametrize(
    ("slip", "name"),
    [
        ("zero", "masked with zero"),
        ("small", "masked with too small a number"),
        ("one too many", "one too many"),
        ("turned", "upside down"),
        ("averaged", "weights averaged"),
    ],
)
def test_what_they_hide_is_read_all_the_same(slip, name):
    report = of_decoder(slip)
    assert report.mistake is not None, report
    assert report.mistake.name == name


def test_a_future_that_no_table_shows_is_no_missing_mask():
    report = of_decoder("merge")
    assert not report.passed
    assert report.mistake is None, report


class CountsTexts(nn.Module):
    """Its mask begins behind as many tokens as there are texts."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(6, 18)

    def forward(self, x, cache=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        start = 0
        if cache:
            k, v = torch.cat((cache[0], k), 1), torch.cat((cache[1], v), 1)
            start = cache[2]
        place = torch.arange(k.shape[1])
        scores = q @ k.mT / math.sqrt(6)
        shut = place > place[start:, None]
        y = scores.masked_fill(shut, -torch.inf).softmax(-1) @ v
        return y, (k, v, start + len(x))


def test_sizes_that_go_with_the_texts_are_counted_along_their_axis():
    call = lambda model, x, cache: model(x, cache)  # noqa: E731
    made = CountsTexts()
    report = here(made, kind="cached-decoder", d_model=6, call=call)
    assert report.mistake.name == "positions count the texts"


def in_tiles(q, k, v, slip="", size=7):
    """Attention in tiles of seven keys."""
    top = total = output = None
    for b, c in zip(k.split(size, -2), v.split(size, -2), strict=True):
        scores = q @ b.mT / math.sqrt(q.shape[-1])
        own = scores.amax(-1, keepdim=True)
        if top is None:
            new = own
        else:
            new = own if slip == "own" else torch.maximum(top, own)
        powers = (scores - new).exp()
        share, mixed = powers.sum(-1, keepdim=True), powers @ c
        if slip == "filled":
            lacks = size - b.shape[-2]
            share = share + lacks * (-new).exp()
        if top is None:
            total, output = share, mixed
        else:
            old = 1.0 if slip in ("own", "kept") else (top - new).exp()
            total, output = total * old + share, output * old + mixed
        top = new
    return output if slip == "whole" else output / total


@pytest.mark.parametrize(
    ("slip", "names"),
    [
        ("own", {"nothing is rescaled", "each tile has its own softmax"}),
        ("kept", {"nothing is rescaled"}),
        ("filled", {"zeros fill the last tile"}),
    ],
)
def test_what_is_lost_in_tiles_of_any_size_is_told(slip, names):
    told = functools.partial(in_tiles, slip=slip)
    report = here(told, kind="efficient", layout="any")
    assert not report.passed
    found = report.mistake or report.likeness
    assert found is not None, report
    assert found.name in names


def test_tiles_of_seven_are_sound():
    assert here(in_tiles, kind="efficient", layout="any").passed


def averaged(q, k, v):
    """Each tile shared out for itself, and the outputs averaged."""
    outputs = [
        (q @ b.mT / math.sqrt(q.shape[-1])).softmax(-1) @ c
        for b, c in zip(k.split(7, -2), v.split(7, -2), strict=True)
    ]
    return sum(outputs) / len(outputs)


def late(q, k, v):
    """A causal mask behind the softmax."""
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    return weights.tril() @ v


def test_weights_tell_a_softmax_for_each_tile():
    assert weights_seen.hint(averaged, None) == "each tile has its own softmax"
    assert weights_seen.hint(in_tiles, None) == ""


def test_and_a_mask_behind_the_softmax():
    def past(n_q, n_k):
        return torch.ones(n_q, n_k).tril().bool()

    assert weights_seen.hint(late, past) == "mask after softmax"


def test_and_a_sum_that_is_never_divided_by():
    def powers(q, k, v):
        return (q @ k.mT / math.sqrt(q.shape[-1])).exp() @ v

    assert weights_seen.hint(powers, None) == "never divided"


def test_where_it_sees_otherwise_weights_tell_nothing():
    assert weights_seen.hint(lambda q, k, v: v, None) == ""
