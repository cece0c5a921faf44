"""What nobody promised, and what is promised by how a thing is made."""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.engine.matching import Seen
from selfattn.doctor.engine.outcome import Outcome
from selfattn.doctor.engine.visits import sole_form
from selfattn.doctor.probes import Probe
from selfattn.positions import rope_halves

here = functools.partial(examine, time_limit=None)


class Laid(nn.Linear):
    """A map that, by a view, lays all tokens on each other, as GPT-2's do."""

    def forward(self, x):
        flat = x.view(-1, self.in_features)
        return super().forward(flat).view(*x.shape[:-1], -1)


class Contiguous(nn.Module):
    """Attention of two heads that only takes what lies as it was made."""

    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = Laid(6, 18), Laid(6, 6)
        self.num_heads = 2

    def forward(self, x):
        q, k, v = (
            t.unflatten(-1, (2, 3)).transpose(1, 2)
            for t in self.c_attn(x).split(6, dim=-1)
        )
        heads = (q @ k.mT / 3**0.5).softmax(dim=-1) @ v
        return self.c_proj(heads.transpose(1, 2).reshape(x.shape))


class Deranged(Contiguous):
    """It reads the memory, in whatever order the tokens lie there."""

    def forward(self, x):
        if not x.is_contiguous():
            x = x.mT.reshape(-1).view(x.shape)
        return super().forward(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(6), nn.LayerNorm(6)
        self.attn = Contiguous()
        self.mlp = nn.Sequential(Laid(6, 24), nn.GELU(), Laid(24, 6))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


@pytest.mark.parametrize("told", [{}, {"layout": "BND"}, {"takes": []}])
def test_who_refuses_another_order_of_memory_is_not_ill(told):
    """GPT-2's attention was called ill: its model never hands it such x."""
    torch.manual_seed(0)
    report = here(Contiguous(), kind="self-attention", **told)
    assert report.passed, report
    assert "tokens in another order of memory" in report.not_asked


def test_a_block_may_refuse_another_order_of_memory():
    torch.manual_seed(0)
    report = here(Block(), kind="encoder-block")
    assert report.passed, report


def test_who_is_wrong_in_another_order_of_memory_is_ill():
    torch.manual_seed(0)
    report = here(Deranged(), kind="self-attention", layout="BND")
    assert report.exit_code == 1
    assert "the order in memory" in str(report)


def without_cosines(x):
    a, b = rope_halves(torch.ones_like(x)).chunk(2, dim=-1)
    sines = ((b - a) / 2).repeat(1, 1, 1, 2)
    a, b = x.chunk(2, dim=-1)
    assert x.ndim == 4, "(batch, heads, tokens, features)"
    return torch.cat((-b, a), dim=-1) * sines


def test_the_only_form_that_it_takes_is_no_assumption():
    """All that failed asked for heads, so it was only asked after heads."""
    report = here(without_cosines, kind="rope")
    assert report.mistake.name == "sines without cosines"
    assert (report.different, report.exit_code) == ("", 1)


def test_what_every_probe_needs_is_the_form_that_it_has():
    asked = [("heads", "offset"), ("heads",), ("float64", "heads")]
    probes = [Probe("it holds", {}, needs=needs) for needs in asked]
    assert sole_form([Seen(one, Outcome()) for one in probes]) == {"heads"}
    assert sole_form([]) == set()


def heads_in_front(q, k, v):
    assert q.ndim == 4, "(batch, heads, tokens, features)"
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return (weights @ v).transpose(0, 1)


def test_a_layout_with_heads_that_was_found_promises_heads():
    """Its output had heads in front, which nobody was said to mind."""
    report = here(heads_in_front, kind="attention")
    assert report.facts["layout"] == "BHND"
    assert report.exit_code == 1


class Added(nn.Module):
    """Positions, and a dropout that is made and may be used."""

    def __init__(self, share=0.1, used=True):
        super().__init__()
        self.register_buffer("table", torch.randn(20, 6))
        self.drop, self.used = nn.Dropout(share), used

    def forward(self, x):
        x = x + self.table[: x.shape[1]]
        return self.drop(x) if self.used else x


class AddedAsFloat(Added):
    def forward(self, x):
        return super().forward(x).float()


def test_who_holds_a_dropout_promises_to_use_it():
    """Nobody looked at positions in training: it passed as healthy."""
    positions = functools.partial(here, kind="positions")
    assert positions(Added()).passed
    assert positions(Added(share=0.0, used=False)).passed
    for told in ({}, {"layout": "BND"}, {"dropout": 0.1}):
        report = positions(Added(used=False), **told)
        assert report.mistake.name == "dropout never begins"
        assert report.exit_code == 1


def test_positions_that_change_the_type_are_asked_after():
    """A block was told so; who adds positions passed as healthy."""
    positions = functools.partial(here, kind="positions")
    report = positions(AddedAsFloat(), layout="BND")
    assert report.mistake.name == "another type returned"
    assert report.exit_code == 3
    assert positions(AddedAsFloat(), dtypes=["bfloat16"]).exit_code == 1
    assert positions(AddedAsFloat(), dtypes=["float32"]).passed


class Turned(nn.Module):
    """Queries with heads are turned by tables that are kept in float32."""

    def __init__(self):
        super().__init__()
        rates = 10000.0 ** (-torch.arange(4) / 4)
        angles = torch.arange(20)[:, None] * rates.repeat(2)
        self.cos, self.sin = angles.cos(), angles.sin()

    def forward(self, x):
        _, _, n, _ = x.shape
        a, b = x.chunk(2, dim=-1)
        other = torch.cat((-b, a), dim=-1)
        return x * self.cos[:n] + other * self.sin[:n]


class TurnedInItsType(Turned):
    def forward(self, x):
        return super().forward(x).type_as(x)


def test_a_table_of_rotations_that_changes_the_type_is_asked_after():
    """Of who takes heads alone, no other type was asked: it was healthy."""
    report = here(Turned(), kind="rope", layout="BHND")
    assert report.exit_code == 3
    assert "bfloat16 stays bfloat16" in report.different
    assert here(TurnedInItsType(), kind="rope", layout="BHND").passed


class Attention(nn.Module):
    """Causal attention of two heads, as small models have it."""

    def __init__(self, wrong=""):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(6, 18), nn.Linear(6, 6)
        self.num_heads, self.wrong = 2, wrong

    def forward(self, x):
        q, k, v = (
            t.unflatten(-1, (2, 3)).transpose(1, 2)
            for t in self.c_attn(x).chunk(3, dim=-1)
        )
        v = k if self.wrong == "keys are the values" else v
        scores = q @ k.mT / (1 if self.wrong == "no scale" else 3**0.5)
        past = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        weights = scores.masked_fill(~past, -torch.inf).softmax(dim=-1)
        return self.c_proj((weights @ v).transpose(1, 2).flatten(-2))


class Decoder(nn.Module):
    """A block with that attention."""

    def __init__(self, wrong=""):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(6), nn.LayerNorm(6)
        self.attn = Attention(wrong)
        self.mlp = nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.Linear(9, 6))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


@pytest.mark.parametrize("told", [{}, {"order": "pre"}])
def test_the_attention_in_a_block_is_asked_alone(told):
    """A block was healthy, and its attention lacked the scale.

    It joins its parts as it should, and what these compute is their own.
    """
    torch.manual_seed(0)
    block = functools.partial(here, kind="encoder-block", **told)
    assert block(Decoder()).passed
    report = block(Decoder("no scale"))
    assert report.mistake.name == "no scale"
    assert report.exit_code == 3 and "inside=False" in report.different
    assert report.inside == {"attn": "different from the usual: no scale"}
    assert block(Decoder("no scale"), inside=False).passed
    assert block(Decoder("no scale"), scale=1.0).passed
    assert block(Decoder(), scale=1.0).exit_code == 1
    report = block(Decoder("keys are the values"))
    assert report.mistake.name == "keys are the values"
    assert report.exit_code == 1
