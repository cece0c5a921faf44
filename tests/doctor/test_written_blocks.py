"""Blocks of which the formula was told as a function, a slow one."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine

D, M = 12, 9
TOLD = {"layout": "BND", "causal": True, "padding": "keep"}
here = functools.partial(examine, kind="decoder-block", time_limit=None)


class Joined(nn.Module):
    """One softmax over a memory and the past: no formula of this book's."""

    def __init__(self):
        super().__init__()
        self.norm_x, self.norm_memory = nn.LayerNorm(D), nn.LayerNorm(M)
        self.norm = nn.LayerNorm(D)
        self.query, self.out = nn.Linear(D, D), nn.Linear(D, D)
        self.own, self.far = nn.Linear(D, 2 * D), nn.Linear(M, 2 * D)
        self.up, self.down = nn.Linear(D, 7), nn.Linear(7, D)

    def seen(self, n, real):
        past = torch.ones(n, n).bool().tril().expand(len(real), -1, -1)
        return torch.cat((real[:, None].expand(-1, n, -1), past), dim=2)

    def weights(self, scores, seen):
        return scores.masked_fill(~seen[:, None], -torch.inf).softmax(-1)

    def heads(self, *vectors):
        return (v.unflatten(-1, (3, 4)).transpose(1, 2) for v in vectors)

    def told(self, x, memory, real):
        x, memory = self.norm_x(x), self.norm_memory(memory)
        both = torch.cat((self.far(memory), self.own(x)), dim=1)
        q, k, v = self.heads(self.query(x), *both.chunk(2, dim=-1))
        table = self.weights(q @ k.mT / 2, self.seen(x.shape[1], real))
        return self.out((table @ v).transpose(1, 2).flatten(2))

    def forward(self, x, memory, real=None):
        real = torch.ones(memory.shape[:2]).bool() if real is None else real
        x = x + self.told(x, memory, real)
        return x + self.down(F.relu(self.up(self.norm(x))))


def by_loops(block, x, memory, real=None):
    """What `Joined` should give, a text, a head and a query at a time."""
    real = torch.ones(memory.shape[:2]).bool() if real is None else real
    y = block.norm_x(x)
    both = torch.cat((block.far(block.norm_memory(memory)), block.own(y)), 1)
    told = torch.zeros_like(x)
    for text, head, i in torch.cartesian_prod(
        torch.arange(len(x)), torch.arange(3), torch.arange(x.shape[1])
    ):
        own = slice(4 * head, 4 * head + 4)
        seen = torch.cat((real[text], torch.arange(x.shape[1]) <= i))
        k, v = both[text, seen].chunk(2, dim=-1)
        q = block.query(y)[text, i, own]
        weights = (k[:, own] @ q / math.sqrt(4)).softmax(0)
        told[text, i, own] = weights @ v[:, own]
    x = x + block.out(told)
    return x + block.down(F.relu(block.up(block.norm(x))))


class Unscaled(Joined):
    def weights(self, scores, seen):
        return super().weights(2 * scores, seen)


class OneHead(Joined):
    def heads(self, *vectors):
        return (v[:, None] for v in vectors)


class NotItself(Joined):
    def seen(self, n, real):
        table = super().seen(n, real)
        table[..., real.shape[1] :] &= ~torch.eye(n).bool()
        return table


class Upside(Joined):
    def seen(self, n, real):
        return super().seen(n, ~real)


class Sigmoid(Joined):
    def weights(self, scores, seen):
        return scores.sigmoid().masked_fill(~seen[:, None], 0)


class NotTold(Joined):
    """What its attention tells is lost."""

    def told(self, x, memory, real):
        return torch.zeros_like(x)


def test_one_that_is_right_is_healthy():
    report = here(Joined().eval(), formula=by_loops, **TOLD)
    assert report.passed, report


@pytest.mark.parametrize(
    "wrong", [Unscaled, OneHead, NotItself, Sigmoid, NotTold]
)
def test_its_numbers_are_held_to_its_formula(wrong):
    """Of a block with a formula of its own only what moves was asked."""
    report = here(wrong().eval(), formula=by_loops, **TOLD)
    assert report.exit_code == 1, report


def test_what_no_change_of_an_input_shows_the_numbers_show():
    block = Unscaled().eval()
    assert here(block, formula="own", **TOLD).passed
    report = here(block, formula=by_loops, **TOLD)
    claims = [found.probe.claim for found in report.findings]
    assert "it is what your formula makes it" in claims, report


def test_a_step_that_most_formulas_have_has_its_name():
    report = here(Sigmoid().eval(), formula=by_loops, **TOLD)
    assert report.mistake.name == "sigmoid instead of softmax", report


def test_a_formula_that_raises_is_asked_after():
    def broken(block, x, memory, real=None):
        raise ValueError("not written yet")

    report = here(Joined().eval(), formula=broken, **TOLD)
    assert "not written yet" in report.question, report


class Encoder(nn.Module):
    """Weights that are softmax, once more by themselves; tokens first."""

    def __init__(self, times=1.0, inverted=False):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.norm, self.times, self.inverted = nn.LayerNorm(D), times, inverted

    def forward(self, src, mask=None):
        x = self.norm(src).transpose(0, 1)
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.mT / math.sqrt(D)
        if mask is not None:
            hidden = mask if self.inverted else ~mask
            scores = scores.masked_fill(hidden, -torch.inf)
        weights = scores.softmax(-1) * (1 + scores.softmax(-1))
        weights = self.times * weights / weights.sum(-1, keepdim=True)
        return src + self.out(weights @ v).transpose(0, 1)


def by_rows(block, src, mask=None):
    """What `Encoder` should give, a query at a time."""
    x = block.norm(src)
    q, k, v = block.qkv(x).chunk(3, dim=-1)
    rows = []
    for i in range(len(src)):
        scores = (q[i] * k).sum(-1) / math.sqrt(D)  # keys, batch
        if mask is not None:
            scores = scores.masked_fill(~mask[i, :, None], -torch.inf)
        weights = scores.softmax(0) * (1 + scores.softmax(0))
        weights = weights / weights.sum(0)
        rows.append((weights[..., None] * v).sum(0))
    return src + block.out(torch.stack(rows))


@pytest.mark.parametrize(
    ("given", "name"),
    [({}, None), ({"times": 2}, ""), ({"inverted": True}, "mask upside down")],
)
def test_a_block_without_a_context_may_be_told_too(given, name):
    report = examine(
        Encoder(**given).eval(),
        kind="encoder-block",
        time_limit=None,
        layout="NBD",
        mask="keep",
        formula=by_rows,
    )
    assert report.passed == (name is None), report
    if name:
        assert report.mistake.name == name, report


class Blanks(nn.Module):
    """What is padding comes out as zeros."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x, padding_mask=None):
        y = by_texts(self, x, padding_mask)
        if padding_mask is None:
            return y
        return y.masked_fill(padding_mask[..., None], 0)


def by_texts(block, x, padding_mask=None):
    """What `Blanks` should give where it is not padding."""
    q, k, v = block.qkv(x).chunk(3, dim=-1)
    scores = (q @ k.mT).square() + 1
    if padding_mask is not None:
        scores = scores * ~padding_mask[:, None]
    return x + block.out(scores @ v / scores.sum(-1, keepdim=True))


def test_what_comes_of_padding_is_nobody_s_business():
    report = examine(
        Blanks().eval(),
        kind="encoder-block",
        time_limit=None,
        layout="BND",
        padding="block",
        formula=by_texts,
    )
    assert report.passed, report


class Unusual(nn.Module):
    """Attention that does not scale, and is let in by a gate."""

    def __init__(self):
        super().__init__()
        self.attend, self.gate = Plainly(), nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        return x + self.gate.tanh() * self.attend(x)


class Plainly(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(D, D) for _ in range(4)
        )

    def forward(self, x):
        scores = self.q_proj(x) @ self.k_proj(x).mT
        return self.out_proj(scores.softmax(-1) @ self.v_proj(x))


def without_a_scale(block, x):
    """What `Unusual` should give."""
    part = block.attend
    scores = part.q_proj(x) @ part.k_proj(x).mT
    shares = scores.exp() / scores.exp().sum(-1, keepdim=True)
    return x + block.gate.tanh() * part.out_proj(shares @ part.v_proj(x))


def test_who_is_right_by_his_formula_is_not_looked_into():
    """Its attention is unlike others', and the formula says so."""
    unusual = Unusual().eval()
    told = {"kind": "encoder-block", "time_limit": None, "layout": "BND"}
    assert not examine(unusual, formula="own", **told).passed
    report = examine(unusual, formula=without_a_scale, **told)
    assert report.passed, report
