"""Sound code that was called ill, and the rules by which it is not."""

import functools

import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)


def of_one_head(q, k, v):
    scores = torch.einsum("bhnd,bmd->bhnm", q, k) * q.shape[-1] ** -0.5
    return torch.einsum("bhnm,bmd->bhnd", scores.softmax(dim=-1), v)


def test_keys_said_to_be_shared_come_without_an_axis_for_heads():
    """They came with one all the same, unless they were called grouped."""
    told = {"kind": "attention", "layout": "BHND"}
    assert here(of_one_head, shared=("k", "v"), **told).passed
    assert here(of_one_head, grouped="one", **told).passed
    asked = here(of_one_head, kind="attention")
    assert "However I call it, it raises" in asked.different


def linear(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    total = q @ k.sum(dim=-2)[..., None]
    return q @ (k.mT @ v) / total


def test_the_usual_linear_attention_is_known_without_its_kernel():
    """Whoever told no kernel was held to softmax."""
    for told in ({}, {"layout": "any"}):
        report = here(linear, kind="efficient", **told)
        assert report.passed, report
        assert report.facts["formula"] == "linear"
    softmax = here(linear, kind="efficient", formula="claimed")
    assert not softmax.passed


def test_a_linear_attention_that_is_wrong_is_not_healthy():
    def undivided(q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        return q @ (k.mT @ v)

    assert here(undivided, kind="efficient").exit_code == 1


class Cached(nn.Module):
    """A decoder with a cache, of chunks of six features."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(6, 6) for _ in range(3))

    def forward(self, x, cache):
        k, v = self.k(x), self.v(x)
        if cache is not None:
            k, v = torch.cat((cache[0], k), 1), torch.cat((cache[1], v), 1)
        n, m = x.shape[1], k.shape[1]
        seen = torch.ones(n, m).tril(m - n).bool()
        scores = (self.q(x) @ k.mT).masked_fill(~seen, -torch.inf)
        return scores.softmax(dim=-1) @ v, (k, v)


def call(model, x, cache):
    return model(x, cache)


def test_how_wide_a_decoder_is_can_be_read_though_it_is_told_how_to_call_it():
    """It was given words, and called ill as it raised."""
    report = here(Cached(), kind="cached-decoder", call=call)
    assert report.passed, report


def late(model, x, cache):
    """Its values are kept at the places of the newest."""
    k, v = model.k(x), model.v(x)
    if cache is not None:
        k = torch.cat((cache[0], k), 1)
        v = torch.cat((v, cache[1]), 1)
    n, m = x.shape[1], k.shape[1]
    seen = torch.ones(n, m).tril(m - n).bool()
    scores = (model.q(x) @ k.mT).masked_fill(~seen, -torch.inf)
    return scores.softmax(dim=-1) @ v, (k, v)


def test_a_name_that_says_what_is_right_is_given_if_that_is_right():
    """Not causal within a chunk is who is right word by word; no other."""
    report = here(Cached(), kind="cached-decoder", call=late, d_model=6)
    assert not report.passed
    name = report.mistake and report.mistake.name
    assert name != "not causal within a chunk"


class ByHeads(nn.Module):
    """Parameters with an axis for heads, and no word of how many there are."""

    def __init__(self):
        super().__init__()
        for name in ("W_Q", "W_K", "W_V"):
            setattr(self, name, nn.Parameter(torch.randn(2, 10, 5)))
        self.W_O = nn.Parameter(torch.randn(2, 5, 10))
        self.d_head = 5

    def forward(self, x):
        q, k, v = (
            torch.einsum("bnm,hmd->bhnd", x, w)
            for w in (self.W_Q, self.W_K, self.W_V)
        )
        heads = F.scaled_dot_product_attention(q, k, v)
        return torch.einsum("bhnd,hdm->bnm", heads, self.W_O)


def test_heads_are_counted_by_the_axis_that_they_have():
    """The reference was made for ten heads, and that was a trouble."""
    torch.manual_seed(0)
    report = here(ByHeads(), kind="self-attention")
    assert report.passed, report


def in_groups(q, k, v):
    """Causal without a flag; the last query sits on the last key."""
    b, h, n, d = q.shape
    m, g = k.shape[2], k.shape[1]
    q = q.reshape(b, g, h // g, n, d)
    scores = torch.einsum("bgrnd,bgmd->bgrnm", q, k) / d**0.5
    late = torch.ones(n, m).triu(m - n + 1).bool()
    weights = scores.masked_fill(late, -torch.inf).softmax(dim=-1)
    return torch.einsum("bgrnm,bgme->bgrne", weights, v).flatten(1, 2)


def test_nobody_who_keeps_a_mask_promised_more_queries_than_keys():
    """Those before the first key got NaN, and he was ill, though he told."""
    told = {"kind": "attention", "layout": "BHND", "grouped": True}
    assert here(in_groups, causal=True, alignment="last", **told).passed
    report = here(in_groups, **told)
    assert report.mistake.name == "causal without being asked"
    assert "say causal=True." in report.different


def one_text(q, k, v):
    """The first query sits on the first key."""
    n, m = len(q), len(k)
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(
        torch.ones(n, m).triu(1).bool(), -torch.inf
    )
    return scores.softmax(dim=-1) @ v


def test_on_which_key_a_query_sits_is_a_mistake_only_if_it_was_told():
    """It was, of all who see the past and are given more keys."""
    told = {"kind": "attention", "layout": "N D", "causal": True}
    assert here(one_text, alignment="first", **told).passed
    assert here(one_text, square=True, **told).passed
    assert 'say alignment="first".' in here(one_text, **told).different
    assert here(one_text, alignment="last", **told).exit_code == 1
    assert here(one_text, kind="attention").exit_code == 3


def near_the_first(q, k, v):
    n, m = q.shape[-2], k.shape[-2]
    far = (torch.arange(n)[:, None] - torch.arange(m)).abs() >= 2
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(far, -torch.inf)
    return scores.softmax(dim=-1).nan_to_num() @ v


def test_a_window_sits_where_it_was_told_to():
    told = {"kind": "attention", "layout": "BND", "window": 2}
    assert here(near_the_first, alignment="first", **told).passed
    assert here(near_the_first, alignment="last", **told).exit_code == 1
    assert "say square=True." in here(near_the_first, **told).different


def of_three_axes(q, k, v):
    """What stands before the tokens is the batch, and nothing else."""
    n, m, d = q.shape[1], k.shape[1], q.shape[2]
    far = (torch.arange(n)[:, None] - torch.arange(m)).abs() >= 2
    scores = (q @ k.mT / d**0.5).masked_fill(far, -torch.inf)
    return scores.softmax(dim=-1).nan_to_num() @ v


def test_no_axes_are_read_that_it_raises_by():
    """With a head alone it was like another mistake, and surely that."""
    report = here(of_three_axes, kind="attention")
    assert (report.exit_code, report.mistake) == (3, None)
    assert "numbers are those of no formula" in report.different


def test_a_scale_in_the_code_and_a_head_for_all_are_asked_after():
    def by_a_number(q, k, v):
        return (0.25 * q @ k.mT).softmax(dim=-1) @ v

    report = here(by_a_number, kind="attention", layout="BHND")
    assert "say scale=0.25." in report.different
    report = here(of_one_head, kind="attention", layout="BHND")
    assert "say grouped='one'." in report.different


def table_in_float64(n, d):
    places = torch.arange(n, dtype=torch.float64)[:, None]
    angles = places / 10_000 ** (torch.arange(d).double() // 2 * 2 / d)
    return torch.where(torch.arange(d) % 2 == 0, angles.sin(), angles.cos())


def test_a_table_in_float64_is_asked_after():
    """Nobody had said which number type it has."""
    table = functools.partial(here, table_in_float64, kind="sinusoidal")
    assert 'say dtypes=["float64"].' in table().different
    assert table(dtypes=["float64"]).passed
    assert table(dtypes=["float32"]).mistake.name == "float64 returned"
