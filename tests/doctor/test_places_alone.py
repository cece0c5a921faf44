"""Arguments before a slash have no name for the caller: sound all the same."""

import inspect
import math

import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.patient import Recorder, handed, places_alone
from selfattn.dot_product import attention
from selfattn.layers import FeedForward, LayerNorm
from selfattn.multihead import MultiHeadAttention


def by_place(q, k, v, mask=None, /):
    return attention(q, k, v, mask=mask)


def other_order(k, q, v, /, mask=None):
    return attention(q, k, v, mask=mask)


def without_a_root(q, k, v, /):
    return (q @ k.mT).softmax(-1) @ v


def softmax(scores, mask=None, /):
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
        empty = scores.isneginf().all(-1, keepdim=True)
        weights = scores.masked_fill(empty, 0.0).softmax(-1)
        return weights.masked_fill(empty, 0.0)
    return scores.softmax(-1)


class Layer(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)

    def forward(self, x, mask=None, /):
        return self.attention(x, mask=mask)


class Block(nn.Module):
    def __init__(self, d_model=8, n_heads=2):
        super().__init__()
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, 16)

    def forward(self, x, mask=None, /):
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.feed_forward(self.norm2(x))


def test_sound_functions_and_layers_are_healthy():
    """Each was "wrong on 16 of 16 probes": it had been called by names."""
    for thing, kind in (
        (by_place, "attention"),
        (other_order, "attention"),
        (softmax, "softmax"),
        (Layer(8, 2), "self-attention"),
        (Block(), "encoder-block"),
    ):
        report = examine(thing, kind=kind)
        assert report.passed, (kind, str(report))


def test_a_mistake_has_its_name_all_the_same():
    report = examine(without_a_root, kind="attention")
    assert not report.passed
    assert "no scale" in str(report)


def test_what_is_handed_over_comes_to_its_place():
    def told(a, b=2, c=3, /, d=4, *, e=5):
        return a, b, c, d, e

    assert handed(told, 1) == (1, 2, 3, 4, 5)
    assert handed(told, 1, c=7) == (1, 2, 7, 4, 5)
    assert handed(told, 1, b=7, e=9) == (1, 7, 3, 4, 9)
    assert handed(told, c=7, b=6, a=0, d=8) == (0, 6, 7, 8, 5)
    assert handed(Recorder(told, []), 1, c=7) == (1, 2, 7, 4, 5)
    assert [p.name for p in places_alone(told)] == ["a", "b", "c"]
    assert places_alone(len)[0].kind is inspect.Parameter.POSITIONAL_ONLY
    assert not places_alone(torch.exp)
    for missing in ({"b": 1}, {}):
        try:
            handed(told, **missing)
        except TypeError as error:
            assert "'a'" in str(error) or "positional" in str(error)
        else:
            raise AssertionError(missing)
