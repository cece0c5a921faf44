"""Designs of which the doctor had no idea, and which it called ill or refused.

A layer whose maps are convolutions of width one raised on one channel;
channels before pixels were no formula; who told of no kernel had "another
feature map" than elu + 1; a scale under a cap was read off wrongly; and a
block that joins other parts than the usual ones could be told of in no way.
"""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.kinds.blocks import family
from selfattn.doctor.kinds.blocks.exercise import of_parts

here = functools.partial(examine, time_limit=None)


class Convolved(nn.Module):
    """Attention by heads, of maps that are convolutions of width one."""

    def __init__(self, d=12, n_heads=3, scaled=True):
        super().__init__()
        self.n_heads, self.scaled = n_heads, scaled
        self.conv_q = nn.Conv1d(d, d, 1)
        self.conv_k = nn.Conv1d(d, d, 1)
        self.conv_v = nn.Conv1d(d, d, 1)
        self.conv_o = nn.Conv1d(d, d, 1)

    def forward(self, x):
        x = x.mT
        maps = self.conv_q, self.conv_k, self.conv_v
        q, k, v = (m(x).unflatten(1, (self.n_heads, -1)).mT for m in maps)
        scores = q @ k.mT
        if self.scaled:
            scores = scores / math.sqrt(q.shape[-1])
        out = (scores.softmax(-1) @ v).mT.flatten(1, 2)
        return self.conv_o(out).mT


@pytest.mark.parametrize("told", [{}, {"n_heads": 3, "layout": "BND"}])
def test_a_convolution_of_width_one_is_a_map(told):
    report = here(Convolved(), kind="self-attention", **told)
    assert report.passed, report
    assert "numbers" not in report.lacking
    wrong = Convolved(scaled=False)
    report = here(wrong, kind="self-attention", **told)
    assert report.mistake.name == "no scale"


def among_pixels(q, k, v, axis=-1):
    """All are (batch, heads, channels, pixels)."""
    scores = q.mT @ k / math.sqrt(q.shape[-2])
    return v @ scores.softmax(dim=axis).mT


def of_one_head(q, k, v):
    """All are (batch, channels, pixels)."""
    scores = torch.einsum("bcn,bcm->bnm", q, k) / math.sqrt(q.shape[1])
    return torch.einsum("bnm,bcm->bcn", scores.softmax(dim=-1), v)


@pytest.mark.parametrize(
    ("attend", "layout"), [(among_pixels, "BHDN"), (of_one_head, "BDN")]
)
def test_tokens_may_stand_behind_the_features(attend, layout):
    report = here(attend, kind="attention")
    assert report.passed, report
    assert here(attend, kind="attention", layout=layout).passed
    turned = here(attend, kind="attention", layout=layout.replace("DN", "ND"))
    assert turned.exit_code == 1


def test_a_mistake_is_named_where_tokens_stand_last():
    wrong = functools.partial(among_pixels, axis=-2)
    report = here(wrong, kind="attention", layout="BHDN")
    assert report.mistake.name == "softmax over queries"


def with_softplus(q, k, v):
    q, k = F.softplus(q), F.softplus(k)
    return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None])


def of_squares(q, k, v):
    """1 + s + s²/2 for exp(s), by no feature map that is known."""
    q, k = (x / x.shape[-1] ** 0.25 for x in (q, k))
    q, k = (
        torch.cat(
            (
                torch.ones_like(x[..., :1]),
                x,
                (x[..., None] * x[..., None, :]).flatten(-2) / 2**0.5,
            ),
            dim=-1,
        )
        for x in (q, k)
    )
    return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None])


def test_who_told_of_no_kernel_promised_none():
    report = here(with_softplus, kind="efficient", layout="any")
    assert report.exit_code == 3
    assert "kernel=…" in report.different
    assert here(
        with_softplus, kind="efficient", layout="any", kernel=F.softplus
    ).passed
    for told in ({"formula": "linear"}, {"kernel": torch.exp}):
        report = here(with_softplus, kind="efficient", layout="any", **told)
        assert report.exit_code == 1


def test_weights_that_each_depend_on_a_pair_alone_may_be_its_own():
    report = here(of_squares, kind="efficient", layout="any")
    assert report.exit_code == 3
    assert "formula='own'" in report.different
    assert here(of_squares, kind="efficient", formula="own").passed


def sharper(q, k, v):
    """A softmax, in tiles of keys, of scores that are too large by far."""
    top = total = out = None
    for a, b in zip(k.split(16, -2), v.split(16, -2), strict=True):
        s = q @ a.mT * 0.43
        new = s.amax(-1, keepdim=True)
        new = new if top is None else torch.maximum(top, new)
        share = (s - new).exp()
        shrink = 0.0 if top is None else (top - new).exp()
        total = share.sum(-1, keepdim=True) + (
            0 if total is None else total * shrink
        )
        out = share @ b + (0 if out is None else out * shrink)
        top = new
    return out / total


def test_a_softmax_of_another_scale_is_no_kernel_of_its_own():
    report = here(sharper, kind="efficient", layout="any")
    assert "own" not in report.different


def capped(q, k, v, scale=1 / 3):
    scores = 5 * torch.tanh(q @ k.mT * scale / 5)
    return scores.softmax(dim=-1) @ v


def test_a_scale_under_a_cap_is_asked_after():
    report = here(capped, kind="attention", layout="any", cap=5.0)
    assert report.exit_code == 3
    assert "scale=0.333333" in report.different
    told = {"layout": "any", "cap": 5.0, "scale": 1 / 3}
    assert here(capped, kind="attention", **told).passed


def looked(q, k, v, sees=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=sees)


class Macaron(nn.Module):
    """Half a network, attention and half a network."""

    def __init__(self, slip="", d=12):
        super().__init__()
        self.first, self.last = self.half(d), self.half(d)
        self.norm, self.qkv = nn.LayerNorm(d), nn.Linear(d, 3 * d)
        self.slip = slip

    @staticmethod
    def half(d):
        return nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.ReLU())

    def forward(self, x, key_padding=None):
        x = x + self.first(x) / 2
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        if key_padding is not None:
            key_padding = ~key_padding[:, None].expand(-1, x.shape[1], -1)
        if self.slip == "unused":
            key_padding = None
        if self.slip == "texts meet":
            k = k[:1].expand_as(k)
        x = x + looked(q, k, v, key_padding)
        return x + self.last(x) / 2


OWN = {"formula": "own", "padding": "block", "layout": "BND"}


def test_a_block_may_have_a_formula_of_its_own():
    """Untold, its attention is asked, and not how its parts are joined."""
    report = here(Macaron(), kind="encoder-block")
    assert report.passed and report.facts["formula"] == "own", report
    assert any("joins" in words for words in report.not_asked)
    assert here(Macaron("texts meet"), kind="encoder-block").exit_code == 1
    report = here(Macaron(), kind="encoder-block", **OWN)
    assert report.passed, report
    for slip in ("unused", "texts meet"):
        report = here(Macaron(slip), kind="encoder-block", **OWN)
        assert report.exit_code == 1, report
    report = here(Macaron(), kind="encoder-block", **OWN, causal=True)
    assert report.exit_code == 1
    # No softmax over queries, which shows it, too: its maps tell that.
    assert report.mistake.name == "the future is seen"


def test_of_a_block_of_its_own_its_parts_are_asked_if_they_are_known():
    """Who joins the usual parts is held to these, whatever he calls it."""
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, batch_first=True, norm_first=True
    )
    report = here(layer, kind="encoder-block", formula="own")
    assert report.passed, report
    assert report.facts["order"] == "pre"


class SideBySide(nn.Module):
    """Looks at itself and at a wider memory at once."""

    def __init__(self, slip="", d=8, d_memory=6):
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(d), nn.Linear(d, 3 * d)
        self.kv, self.slip = nn.Linear(d_memory, 2 * d), slip

    def forward(self, x, memory, memory_padding=None):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        n = x.shape[1]
        past = torch.ones(n, n, dtype=torch.bool).tril(
            int(self.slip == "wide")
        )
        past = past.mT if self.slip == "turned" else past
        if memory_padding is not None:
            memory_padding = ~memory_padding[:, None].expand(-1, n, -1)
        if self.slip == "no memory":
            return x + looked(q, k, v, past)
        other = looked(q, *self.kv(memory).chunk(2, -1), memory_padding)
        return x + looked(q, k, v, past) + other


@pytest.mark.parametrize(
    ("slip", "name"),
    [
        ("wide", "one too many"),
        ("turned", "from the other side"),
        ("no memory", "no cross attention"),
    ],
)
def test_a_decoder_block_of_its_own_sees_what_it_may_see(slip, name):
    report = here(SideBySide(), kind="decoder-block", **OWN)
    assert report.passed, report
    report = here(SideBySide(slip), kind="decoder-block", **OWN)
    assert report.exit_code == 1
    assert report.mistake is not None, report
    assert report.mistake.name == name


class Banded(nn.Module):
    """Each token sees its neighbours, which nobody told."""

    def __init__(self, d=8):
        super().__init__()
        self.one, self.two = nn.LayerNorm(d), nn.LayerNorm(d)
        self.three, self.qkv = nn.LayerNorm(d), nn.Linear(d, 3 * d)

    def forward(self, x):
        n = x.shape[1]
        i = torch.arange(n)
        near = (i[:, None] - i).abs() < 3
        q, k, v = self.qkv(self.one(x)).chunk(3, -1)
        return self.three(x + self.two(looked(q, k, v, near)))


def test_a_block_of_its_own_may_see_near_tokens_alone():
    report = here(Banded(), kind="encoder-block", formula="own")
    assert report.passed, report


class SeesAll(nn.Module):
    """A decoder's block whose own text is known from the first on."""

    def __init__(self, past=False):
        super().__init__()
        self.norm, self.past = nn.LayerNorm(8), past
        self.qkv, self.kv = nn.Linear(8, 24), nn.Linear(8, 16)

    def forward(self, x, memory):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        attend = nn.functional.scaled_dot_product_attention
        own = attend(q, k, v, is_causal=self.past)
        return x + own + attend(q, *self.kv(memory).chunk(2, -1))


def test_a_decoder_block_that_is_told_to_see_all_may():
    told = {"kind": "decoder-block", "formula": "own"}
    torch.manual_seed(0)
    report = here(SeesAll(), causal=False, **told)
    assert report.passed, report
    report = here(SeesAll(past=True), causal=False, **told)
    assert not report.passed
    for more in ({}, {"causal": True}):
        report = here(SeesAll(), **more, **told)
        assert report.exit_code == 1
        assert report.mistake.name == "the future is seen", report


def test_what_is_wrong_in_the_doctor_is_no_property_of_a_block(monkeypatch):
    def broken(*given):
        raise KeyError("a fault of the doctor's own")

    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    told = {"formula": "own", "order": "post", "mask": "block"}
    monkeypatch.setattr(family, "of_parts", broken)
    with pytest.raises(KeyError, match="a fault of the doctor's own"):
        find_kind("encoder-block").exercise(block, told)


def test_a_block_of_its_own_is_taken_apart_once(monkeypatch):
    made = []

    def counted(*given):
        made.append(given)
        return of_parts(*given)

    monkeypatch.setattr(family, "of_parts", counted)
    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    told = {"formula": "own", "order": "post", "mask": "block"}
    exercise = find_kind("encoder-block").exercise(block, told)
    assert len(made) == 1
    assert "own formula" not in exercise.asks
