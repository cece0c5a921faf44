"""What is seen of a mistake whose numbers are like those of no other.

Of decoders with a cache nobody knows the numbers. Softmax over the queries
was "not causal", for the future tells in it; who kept queries as keys had
"positions start again", since values are the same wherever they stand; and a
step that raised had no name. Mechanisms in buckets or round a ring had none
either, whatever they saw.
"""

import functools
import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.exercises.dot_product.attention import detached

here = functools.partial(examine, time_limit=None)


class Kept(nn.Module):
    """One layer whose cache has room for all tokens; with a slip, if told."""

    def __init__(self, slip="", room=16):
        super().__init__()
        maps = (nn.Linear(6, 6, bias=False) for _ in "qkv")
        self.q, self.k, self.v = maps
        self.slip, self.room = slip, room

    def forward(self, x, cache=None):
        if self.slip == "in place":
            x = x.mul_(0.5)
        n, shape = x.shape[1], (len(x), self.room, 6)
        keys, values, start = cache or (*x.new_zeros(2, *shape), 0)
        keys, values, end = keys.clone(), values.clone(), start + n
        first = start + (self.slip == "one farther" and start > 0)
        keys[:, first:end], values[:, start:end] = self.k(x), self.v(x)
        if self.slip == "queries kept" and start:
            keys[:, start:end] = self.q(x)
        k, v = keys[:, :end], values[:, :end]
        past = torch.arange(end) <= torch.arange(start, end)[:, None]
        out = self.attend(self.q(x), k, v, past)
        if self.slip == "exchanged":
            keys, values = values, keys
        return out, (keys, values, end)

    def attend(self, q, k, v, past):
        in_a_step = len(past) < past.shape[1]
        if self.slip == "mask turned" and in_a_step:
            past = past.mT
        scores = q @ k.mT / math.sqrt(6)
        if self.slip == "scores turned" and in_a_step:
            scores = k @ q.mT / math.sqrt(6)
        scores = scores.masked_fill(~past, -torch.inf)
        if self.slip == "no softmax":
            return scores.masked_fill(~past, 0.0) @ v / past.sum()
        weights = scores.softmax(-2 if self.slip == "over queries" else -1)
        return weights @ v


def called(layer, x, cache):
    return layer(x, cache)


@pytest.mark.parametrize(
    ("slip", "name"),
    [
        ("scores turned", "weights on their side"),
        ("mask turned", "mask on its side"),
        ("over queries", "softmax over queries"),
        ("no softmax", "no softmax"),
        ("in place", "changed in place"),
        ("one farther", "new words at wrong distances"),
        ("exchanged", "keys kept as values"),
    ],
)
def test_a_decoder_is_looked_at_while_it_takes_a_step(slip, name):
    report = here(Kept(), kind="cached-decoder", call=called)
    assert report.passed, report
    report = here(Kept(slip), kind="cached-decoder", call=called)
    assert report.exit_code == 1
    assert report.mistake is not None, report
    assert report.mistake.name == name


def test_what_is_kept_without_a_place_tells_of_none():
    """Values, which are alike wherever they stand, were at position 0."""
    report = here(Kept("queries kept"), kind="cached-decoder", call=called)
    assert report.exit_code == 1
    assert report.mistake is None, report


class Alone(Kept):
    """It keeps all, and joins nothing."""

    def attend(self, q, k, v, past):
        n = q.shape[1]
        return super().attend(q, k[:, -n:], v[:, -n:], past[:, -n:])


def test_a_table_of_new_tokens_alone_has_not_read_the_cache():
    report = here(Alone(), kind="cached-decoder", call=called)
    assert report.mistake.name == "cache not read"


def in_buckets(q, k, v, fill=-torch.inf, after=False):
    """Buckets of three, each of which sees its own past."""
    n = q.shape[-2]
    outputs = []
    for start in range(0, n, 3):
        a, b, c = (x[..., start : start + 3, :] for x in (q, k, v))
        table = a @ b.mT / math.sqrt(q.shape[-1])
        later = torch.ones(table.shape[-2:], dtype=torch.bool).triu(1)
        if after:
            weights = table.softmax(-1).masked_fill(later, 0.0)
        else:
            later = later & (fill is not None)
            weights = table.masked_fill(later, fill or 0.0).softmax(-1)
        outputs.append(weights @ c)
    return torch.cat(outputs, dim=-2)


def same_bucket(n_q, n_k):
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return (j <= i) & (i // 3 == j // 3)


BUCKETS = {"layout": "any", "causal": True, "table": same_bucket}


@pytest.mark.parametrize(
    ("slip", "name"),
    [
        ({"fill": None}, "not causal"),
        ({"fill": 0.0001}, "masked with zero"),
        ({"fill": -3.0}, "masked with too small a number"),
        ({"after": True}, "mask after softmax"),
    ],
)
def test_a_mechanism_is_seen_to_look_where_it_should_not(slip, name):
    told = {**BUCKETS, "square": True}
    assert here(in_buckets, kind="efficient", **told).passed
    wrong = functools.partial(in_buckets, **slip)
    report = here(wrong, kind="efficient", **told)
    assert report.exit_code == 1
    found = report.mistake or report.likeness
    assert found is not None, report
    assert found.name == name


def heads(q, k, v, way="right"):
    """Of every second key before it, each query on its own."""
    outputs = []
    for i in range(q.shape[-2]):
        a, b, c = (
            q[..., i : i + 1, :],
            *(x[..., i % 2 : i + 1 : 2, :] for x in (k, v)),
        )
        weights = (a @ b.mT / math.sqrt(q.shape[-1])).softmax(-1)
        if way == "averaged" and q.ndim > 3:
            weights = weights.mean(-3, keepdim=True).expand_as(weights)
        outputs.append(weights @ c)
    out = torch.cat(outputs, dim=-2)
    return out.flip(-3) if way == "reversed" and q.ndim > 3 else out


def every_second(n_q, n_k):
    far = torch.arange(n_q)[:, None] - torch.arange(n_k)
    return (far >= 0) & (far % 2 == 0)


@pytest.mark.parametrize(
    ("way", "name"),
    [
        ("averaged", "weights averaged"),
        ("reversed", "heads in another order"),
    ],
)
def test_heads_that_meet_are_seen_to(way, name):
    told = {"layout": "BHND", "causal": True, "table": every_second}
    told["square"] = True
    assert here(heads, kind="efficient", **told).passed
    wrong = functools.partial(heads, way=way)
    report = here(wrong, kind="efficient", **told)
    found = report.mistake or report.likeness
    assert found is not None, report
    assert found.name == name


def cut(q, k, v):
    """In parts of the keys; of their shares no gradient flows back."""
    outs, sums = [], []
    for a, b in zip(k.tensor_split(3, -2), v.tensor_split(3, -2), strict=True):
        if a.shape[-2]:
            s = q @ a.mT / math.sqrt(q.shape[-1])
            outs.append(s.softmax(-1) @ b)
            sums.append(s.logsumexp(-1, keepdim=True))
    share = torch.stack(sums).softmax(0).detach()
    return (torch.stack(outs) * share).sum(0)


def test_other_gradients_of_right_values_are_cut_off():
    """What is seen by itself has the words that a bank has for it."""
    report = here(cut, kind="efficient", layout="any")
    assert report.mistake is not None, report
    assert report.mistake.name == "detached"
    assert report.mistake.cure == detached.cure
