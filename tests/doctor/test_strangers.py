"""What strangers build, and has words now; and what gives them away."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.cached_decoder.signs import of_lengths, sign
from selfattn.doctor.patient import Patient

here = functools.partial(examine, time_limit=None)


class FlatBlock(nn.Module):
    """All maps lie in the block; what is wrong with it is told."""

    def __init__(self, wrong=""):
        super().__init__()
        for name in ("q", "k", "v", "o"):
            setattr(self, name, nn.Linear(8, 8))
        self.up, self.down = nn.Linear(8, 12), nn.Linear(12, 8)
        self.norm_a, self.norm_b = nn.LayerNorm(8), nn.LayerNorm(8)
        self.wrong = wrong

    def attend(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        return self.o((q @ k.mT / math.sqrt(8)).softmax(dim=-1) @ v)

    def forward(self, x):
        brought = self.attend(self.norm_a(x))
        x = {
            "residual subtracted": x - brought,
            "no residual around the attention": brought,
        }.get(self.wrong, x + brought)
        inner = self.up(self.norm_b(x))
        if self.wrong != "network without a bend":
            inner = torch.relu(inner)
        return x + self.down(inner)


def test_a_block_may_have_its_parts_flat():
    report = here(FlatBlock(), kind="encoder-block")
    assert report.passed, report
    told = {
        "flat_attention": ("q", "k", "v", "o"),
        "flat_feed_forward": ("up", "relu", "down"),
        "order": "pre",
    }
    assert here(FlatBlock(), kind="encoder-block", **told).passed


def test_a_map_that_makes_all_three_is_not_taken_for_three():
    """The trouble was called the doctor's own, or the block ill."""
    block = FlatBlock()
    block.qkv = nn.Linear(8, 24)
    for names in (("qkv", "o"), ("qkv", "qkv", "qkv", "o")):
        report = here(block, kind="encoder-block", flat_attention=names)
        assert report.question.startswith("flat_attention=(q, k, v, out) na")
        assert "a module of its own" in report.question


@pytest.mark.parametrize(
    "name",
    [
        "residual subtracted",
        "no residual around the attention",
        "network without a bend",
    ],
)
def test_a_sublayer_wrongly_joined_has_its_name(name):
    report = here(FlatBlock(name), kind="encoder-block", order="pre")
    assert report.mistake is not None, report
    assert report.mistake.name == name


class Look(nn.Module):
    """Attention whose arguments are not called by their usual names."""

    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(8, 8), nn.Linear(8, 16)

    def forward(self, x, y, allowed):
        k, v = self.kv(y).chunk(2, dim=-1)
        table = self.q(x) @ k.mT / 8**0.5
        if allowed is not None:
            table = table.masked_fill(~allowed, -torch.inf)
        return table.softmax(dim=-1) @ v


class Decoder(nn.Module):
    """A decoder block that calls its parts in a way of its own."""

    def __init__(self, own="a"):
        super().__init__()
        self.a, self.c = Look(), Look()
        self.f = nn.Sequential(nn.Linear(8, 9), nn.ReLU(), nn.Linear(9, 8))
        self.n = nn.ModuleList(nn.LayerNorm(8) for _ in range(3))
        self.own = own

    def forward(self, x, y):
        past = torch.ones(x.shape[1], x.shape[1]).tril().bool()
        x = self.n[0](x + getattr(self, self.own)(x, x, past))
        x = self.n[1](x + self.c(x, y, None))
        return self.n[2](x + self.f(x))


PARTS = {
    "self_attention": "a",
    "cross_attention": "c",
    "feed_forward": "f",
    "norms": ["n.0", "n.1", "n.2"],
    "order": "post",
}


def test_parts_are_called_as_the_block_calls_them():
    assert here(Decoder(), kind="decoder-block", **PARTS).passed
    report = here(Decoder("c"), kind="decoder-block", **PARTS)
    assert report.mistake.name == "attentions exchanged"


class Cached(nn.Module):
    """A decoder with a cache; what is wrong with it is told."""

    def __init__(self, wrong=""):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(6, 6) for _ in "qkv")
        self.wrong = wrong

    def forward(self, x, cache):
        q, k, v = self.q(x), self.k(x), self.v(x)
        if cache is not None:
            old = cache["k"], cache["v"]
            if self.wrong == "keys kept as values":
                old = old[::-1]
            if self.wrong == "first text for all":
                old = tuple(one[:1].expand_as(one) for one in old)
            pairs = [(old[0], k), (old[1], v)]
            if self.wrong == "new ones in front":
                pairs = [pair[::-1] for pair in pairs]
            k, v = (torch.cat(pair, dim=1) for pair in pairs)
        n, m = q.shape[1], k.shape[1]
        past = torch.ones(n, m).tril(m - n).bool()
        if self.wrong == "no scale":
            q = q * 6**0.5
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=past)
        if self.wrong == "kept in half precision":
            k, v = (x.bfloat16().to(x.dtype) for x in (k, v))
        if self.wrong == "last word not kept":
            k, v = k[:, :-1], v[:, :-1]
        return out, {"k": k, "v": v}


def call(model, x, cache):
    return model(x, cache)


@pytest.mark.parametrize(
    "name",
    [
        "keys kept as values",
        "first text for all",
        "new ones in front",
        "kept in half precision",
        "last word not kept",
    ],
)
def test_a_cache_gives_a_decoder_away(name):
    torch.manual_seed(0)
    told = {"d_model": 6, "call": call}
    report = here(Cached(name), kind="cached-decoder", **told)
    assert report.mistake is not None, report
    assert report.mistake.name == name


def test_a_sound_cache_gives_nothing_away():
    torch.manual_seed(0)
    facts = {"call": call}
    model = Patient(
        Cached(), facts, lambda thing, facts: functools.partial(call, thing)
    )
    assert sign(model, 6) == ""
    assert of_lengths([2, 3, 5]) == ""
    assert of_lengths([2, 2, 2]) == "cache never grows"


def masked(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1)


def by_length(scores, lengths=None):
    keys = torch.arange(scores.shape[-1])
    if lengths is None:
        return masked(scores)
    return masked(scores, keys < lengths[:, None, None])


def test_a_softmax_may_take_a_mask_or_lengths():
    assert here(masked, kind="softmax").passed
    assert here(by_length, kind="softmax").passed
    wrong = here(
        lambda scores, mask=None: (
            masked(scores, mask and ~mask)
            if mask is None
            else masked(scores, ~mask)
        ),
        kind="softmax",
        mask="keep",
    )
    assert wrong.mistake.name == "mask upside down"
