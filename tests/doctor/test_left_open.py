"""One fact left out makes nobody ill: he is asked after it."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.engine import diagnosis, readings
from selfattn.doctor.kinds.attention.untold_facts import perhaps

here = functools.partial(examine, time_limit=None)


def asked(report, words):
    """Whether a report asks whether that is meant."""
    return report.exit_code == 3 and f"say {words}." in report.different


def bent(q, k, v, softcap=25.0):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return (softcap * torch.tanh(scores / softcap)).softmax(dim=-1) @ v


def test_a_cap_that_nobody_told_is_asked_after():
    """Told its layout alone, it was ill, by up to 2e-5."""
    told = {"kind": "attention", "layout": "BHND"}
    assert asked(here(bent, **told), "cap=25.0")
    assert here(bent, cap=25.0, **told).passed


def test_what_ends_in_a_question_is_not_explained_before(monkeypatch):
    """The likeness and the smallest input were looked for, which takes most
    of the time, and nobody was told.
    """
    explained = []

    def explain(case):
        explained.append(case.report.different)
        return diagnosis.explain(case)

    monkeypatch.setattr(readings, "explain", explain)
    here(bent, kind="attention", layout="BHND")
    [different] = explained
    assert "cap=25.0" in different


def scaled(q, k, v, scaling=0.4):
    return (q @ k.mT * scaling).softmax(dim=-1) @ v


def test_a_scale_in_a_signature_is_asked_after():
    report = here(scaled, kind="attention", layout="BHND")
    assert asked(report, "scale=0.4")


def in_a_band(q, k, v, r=3):
    n = q.shape[-2]
    i = torch.arange(n)
    far = (i[:, None] - i).abs() > r
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(far, -torch.inf).softmax(dim=-1) @ v


def test_a_mask_of_its_own_that_nobody_told_is_asked_after():
    """Who leaves the window out was told that all his numbers are wrong."""
    told = {"kind": "attention", "layout": "any", "square": True}
    assert asked(here(in_a_band, **told), "window=4")


def kernel(x):
    return F.elu(x) + 1


def running(q, k, v):
    """Linear attention over the past, by sums that run along."""
    q, k = kernel(q), kernel(k)
    products = (k[..., :, None] * v[..., None, :]).cumsum(dim=-3)
    total = (q * k.cumsum(dim=-2)).sum(dim=-1, keepdim=True)
    return (q[..., None, :] @ products).squeeze(-2) / total


def test_a_kernel_that_is_causal_without_a_word_is_asked_after():
    """It was ill for what is its use: it had no flag, and saw the past."""
    told = {"kernel": kernel, "square": True, "dtypes": ["float32"]}
    report = here(running, kind="efficient", layout="any", **told)
    assert asked(report, "causal=True")


class Turned(nn.Module):
    """Queries and keys are turned by their places; nobody says so."""

    def __init__(self, d=12, h=3, wrong=False):
        super().__init__()
        self.h, self.wrong = h, wrong
        self.to_q, self.to_k, self.to_v, self.to_out = (
            nn.Linear(d, d, bias=False) for _ in range(4)
        )

    def turn(self, x):
        n, d = x.shape[-2:]
        rate = 10_000.0 ** (-torch.arange(0, d, 2) / d)
        angle = (torch.arange(n)[:, None] * rate).to(x)
        a, b = x[..., 0::2], x[..., 1::2]
        cos, sin = angle.cos(), angle.sin()
        both = (a * cos - b * sin, a * sin + b * cos)
        return torch.stack(both, dim=-1).flatten(-2)

    def forward(self, x):
        q, k, v = (
            to(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for to in (self.to_q, self.to_k, self.to_v)
        )
        q, k = self.turn(q), self.turn(k)
        k = k.roll(1, -2) if self.wrong else k
        heads = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(heads.transpose(1, 2).flatten(2))


def test_a_formula_that_is_found_though_nobody_told_it_is_asked_after():
    """Attention with rotations was ill, if its heads were counted."""
    torch.manual_seed(0)
    told = {"kind": "self-attention", "layout": "BND", "n_heads": 3}
    told |= {"causal": False, "dtypes": ["float32"]}
    assert asked(here(Turned(), **told), "formula='own'")
    assert here(Turned(), formula="own", **told).passed
    assert here(Turned(wrong=True), **told).exit_code == 1


def test_what_is_seen_of_a_function_names_the_fact():
    """Every third token from itself on, and no further than that."""
    told = {"layout": "any", "names": {"q": None, "k": None, "v": None}}
    told |= {"mask": "keep", "mask_axes": "any"}

    def every_third(q, k, v):
        i = torch.arange(q.shape[-2])
        far = (i[:, None] - i) % 3 != 0
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        return scores.masked_fill(far, -torch.inf).softmax(dim=-1) @ v

    (table,) = (one["table"] for one in perhaps(every_third, told))
    i = torch.arange(9)
    assert table(9, 9).equal((i[:, None] - i) % 3 == 0)
    assert [*perhaps(in_a_band, told)] == [{"window": 4}]
    assert [*perhaps(scaled, told)] == [{"scale": 0.4}]
    assert [*perhaps(bent, told)] == [{"cap": 25.0}]
    assert [*perhaps(F.scaled_dot_product_attention, told)] == []


class Normed(nn.Module):
    """Queries and keys are normed by head before they meet."""

    def __init__(self, d=12, h=3):
        super().__init__()
        self.h = h
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(d, d, bias=False) for _ in range(4)
        )
        self.q_norm, self.k_norm = nn.LayerNorm(d // h), nn.LayerNorm(d // h)

    def forward(self, x, attn_mask=None):
        q, k, v = (
            to(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for to in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = self.q_norm(q), self.k_norm(k)
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
        return self.o_proj(heads.transpose(1, 2).flatten(2))


class InBuckets(nn.Module):
    """No scale; a number learnt for each distance and head is added."""

    def __init__(self, d=12, h=3, far=4):
        super().__init__()
        self.h, self.far = h, far
        self.q, self.k, self.v, self.o = (
            nn.Linear(d, d, bias=False) for _ in range(4)
        )
        self.bias = nn.Embedding(2 * far + 1, h)

    def forward(self, x, mask=None):
        q, k, v = (
            to(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for to in (self.q, self.k, self.v)
        )
        i = torch.arange(x.shape[1])
        bucket = (i - i[:, None]).clamp(-self.far, self.far) + self.far
        scores = q @ k.mT + self.bias(bucket).permute(2, 0, 1)
        if mask is not None:
            low = torch.finfo(scores.dtype).min
            scores = scores.masked_fill(mask[:, None, None] == 0, low)
        heads = scores.softmax(dim=-1) @ v
        return self.o(heads.transpose(1, 2).flatten(2))


@pytest.mark.parametrize(
    ("make", "more"),
    [
        (Normed, {"mask": "keep", "mask_axes": "NN", "empty_row": "zeros"}),
        (InBuckets, {"padding": "keep", "empty_row": "average"}),
        (InBuckets, {"scale": 1.0, "dtypes": ["float32"]}),
    ],
)
def test_who_has_more_parameters_need_not_tell_his_formula(make, more):
    """Healthy layers were asked for formula='own', which was seen before."""
    torch.manual_seed(0)
    told = {"layout": "BND", "causal": False, "n_heads": 3}
    layer = make()
    for facts in ({"layout": "BND"}, told, {**told, **more}):
        report = here(layer, kind="self-attention", **facts)
        assert report.passed, (facts, report)
