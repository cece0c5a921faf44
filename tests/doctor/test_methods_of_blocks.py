"""Attention that is a method of a block of its own formula.

It was asked alone only if it took queries, keys and values, and of its mask
nothing: one that took tokens was healthy without a scale. And where the
future was seen, that was said to be a missing mask, whatever it came of.
"""

import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

D, HEADS = 12, 2
SCALES = {"multiplied by the root": math.sqrt(6)}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Scaled(nn.Module):
    """Its attention is a method of tokens, and all it says is scaled."""

    def __init__(self, slip=""):
        super().__init__()
        self.heads, self.slip = HEADS, slip
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, 9), nn.GELU(), nn.Linear(9, D))
        self.one = nn.Parameter(torch.ones(D) / 2)
        self.two = nn.Parameter(torch.ones(D) / 3)

    def attention(self, x):
        b, n, d = x.shape
        qkv = self.qkv(x).view(b, n, 3, HEADS, d // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.mT * SCALES.get(self.slip, (d // HEADS) ** -0.5)
        axis = -2 if self.slip == "softmax over queries" else -1
        out = scores.softmax(axis) @ v
        return self.proj(out.transpose(1, 2).reshape(b, n, d))

    def forward(self, x):
        x = x + self.one * self.attention(self.norm1(x))
        return x + self.two * self.mlp(self.norm2(x))


class Flat(nn.Module):
    """A decoder block whose maps lie flat; its method takes a mask."""

    def __init__(self, slip=""):
        super().__init__()
        self.slip = slip
        self.ln1, self.ln2, self.ln3 = (nn.LayerNorm(D) for _ in range(3))
        self.c_attn, self.c_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.to_q, self.to_kv = nn.Linear(D, D), nn.Linear(D, 2 * D)
        self.x_proj = nn.Linear(D, D)
        self.fc, self.fc_out = nn.Linear(D, 9), nn.Linear(9, D)

    def attend(self, q, k, v, mask=None):
        q, k, v = (
            t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (q, k, v)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            hidden = 0.0 if self.slip == "masked with zero" else -torch.inf
            scores = scores.masked_fill(~mask, hidden)
        axis = -2 if self.slip == "softmax over queries" else -1
        return (scores.softmax(axis) @ v).transpose(1, 2).flatten(2)

    def forward(self, x, memory):
        n = x.shape[1]
        past = torch.ones(n, n, dtype=torch.bool).tril()
        past = None if self.slip == "the future is seen" else past
        q, k, v = self.c_attn(self.ln1(x)).chunk(3, dim=-1)
        x = x + self.c_proj(self.attend(q, k, v, past))
        k, v = self.to_kv(memory).chunk(2, dim=-1)
        x = x + self.x_proj(self.attend(self.to_q(self.ln2(x)), k, v))
        return x + self.fc_out(torch.relu(self.fc(self.ln3(x))))


class Bare(Flat):
    """The same, but nothing in it can be asked alone."""

    def attend(self, *three):
        return Flat.attend(self, *three)


def here(block):
    kind = "encoder-block" if isinstance(block, Scaled) else "decoder-block"
    told = {"causal": True} if kind == "decoder-block" else {}
    facts = {"formula": "own", "order": "pre", "n_heads": HEADS, **told}
    return examine(block, kind=kind, layout="BND", time_limit=None, **facts)


@pytest.mark.parametrize("block", [Scaled, Flat, Bare])
def test_sound_ones_are_healthy(block):
    report = here(block())
    assert report.passed, report


@pytest.mark.parametrize(
    ("block", "slip"),
    [
        (Scaled, "multiplied by the root"),
        (Scaled, "softmax over queries"),
        (Flat, "masked with zero"),
        (Flat, "softmax over queries"),
    ],
)
def test_what_a_method_does_is_told(block, slip):
    report = here(block(slip))
    assert report.mistake is not None and not report.different, report
    assert report.mistake.name == slip
    assert ("attention" if block is Scaled else "attend") in report.inside


def test_a_mask_that_is_not_made_is_told_where_the_method_is_well():
    report = here(Flat("the future is seen"))
    assert report.mistake is not None, report
    assert report.mistake.name == "the future is seen"


def test_where_no_method_can_be_asked_what_lies_in_the_block_is():
    """A softmax over queries shows the future, too, and is called so."""
    report = here(Bare("softmax over queries"))
    assert report.mistake is not None, report
    assert report.mistake.name == "softmax over queries"
