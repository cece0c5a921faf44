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
