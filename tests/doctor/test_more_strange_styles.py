"""Sound code in styles that were new to the doctor, and what it said of it.

It accused an attention of ignoring a mask that its block never hands it, a
block whose sublayers are side by side, and a table that is weighed; and it
had no diagnosis of blocks that make their attention's mask themselves.
"""

import functools
import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.kinds.blocks.handed_on import meant

here = functools.partial(examine, time_limit=None)


def on_a_graph(q, k, v, adjacency=None, seen=True):
    """All are (batch, tokens, heads, features)."""
    scores = torch.einsum("bnhd,bmhd->bhnm", q, k) / math.sqrt(q.shape[-1])
    if adjacency is not None:
        scores = scores.masked_fill(adjacency != seen, -torch.inf)
    weights = scores.softmax(dim=-1).nan_to_num()
    return torch.einsum("bhnm,bmhd->bnhd", weights, v)


def test_who_tells_what_a_mask_says_need_not_call_it_one():
    """It found no way to try it, as no argument was called like a mask."""
    told = {"layout": "BNHD", "mask": "keep", "mask_axes": "NN"}
    told |= {"kind": "attention", "empty_row": "zeros"}
    told |= {"call": {"seen": True}}
    report = here(on_a_graph, **told)
    assert report.passed, report
    assert "a mask" not in report.not_asked
    upside_down = here(on_a_graph, **{**told, "call": {"seen": False}})
    assert upside_down.mistake.name == "mask upside down"
    unsaid = here(on_a_graph, kind="attention", layout="BNHD")
    assert "a mask" in unsaid.not_asked


def rms_from_one(x, weight):
    size = x.square().mean(dim=-1, keepdim=True)
    return x * torch.rsqrt(size + 1e-6) * (1 + weight)


def test_an_eps_is_seen_where_the_gain_is_kept_less_one():
    """Its eps seemed a quarter of one, and so it was no norm at all."""
    types = ("float32", "float64", "bfloat16")
    report = here(rms_from_one, kind="rms-norm", gain="one plus", dtypes=types)
    assert report.passed, report
    asked = here(rms_from_one, kind="rms-norm")
    assert "gain='one plus'" in asked.different
    assert here(rms_from_one, kind="rms-norm", gain="itself").exit_code == 1


def rms_with_eps_outside(x, weight):
    size = x.square().mean(dim=-1, keepdim=True)
    return x / (size.sqrt() + 1e-6) * weight


def test_whose_eps_is_told_and_elsewhere_is_examined_all_the_same():
    """It was asked to be a norm, as its eps was not seen."""
    report = here(rms_with_eps_outside, kind="rms-norm", eps=1e-6)
    assert report.mistake.name == "eps outside the root"


class Weighed(nn.Module):
    """A table that is added as loud as was learnt."""

    def __init__(self, start=0.5, later=0):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor([start]))
        self.later = later
        table = torch.sin(torch.arange(24.0).view(12, 2) + 1).repeat(1, 3)
        self.register_buffer("table", table)

    def forward(self, x):
        n = x.shape[1]
        if n + self.later > len(self.table):
            raise ValueError("no row is left")
        return x + self.alpha * self.table[self.later : n + self.later]


def test_a_table_may_be_weighed_by_a_number_that_is_learnt():
    """Its numbers were called wrong: the bare table was expected."""
    report = here(Weighed(), kind="positions")
    assert report.passed, report
    assert here(Weighed(later=1), kind="positions").exit_code == 1


class WaveTable(nn.Module):
    """Sines and cosines, weighed by a number that is learnt."""

    def __init__(self, base=10000.0, start=0.5):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(start))
        rate = base ** -(torch.arange(3) / 3)
        angle = torch.arange(12.0)[:, None] * rate
        table = torch.stack((angle.cos(), angle.sin()), dim=-1).flatten(1)
        self.register_buffer("table", table)

    def forward(self, x):
        if x.shape[1] > len(self.table):
            raise ValueError("no row is left")
        return x + self.alpha * self.table[: x.shape[1]]


def test_waves_that_are_weighed_are_waves():
    """As they were not as loud as ours, no mistake in them had a name."""
    right = WaveTable().table.view(12, 3, 2).flip(-1).flatten(1) / 2
    report = here(WaveTable(), kind="positions", table=right)
    assert report.mistake.name == "sine and cosine exchanged"


class Attends(nn.Module):
    """Heads of two maps; a mask may be given, unless it is causal anyway."""

    def __init__(self, d=12, causal=False, deaf=False):
        super().__init__()
        self.q, self.kv = nn.Linear(d, d), nn.Linear(d, 2 * d)
        self.out = nn.Linear(d, d)
        self.causal, self.deaf = causal, deaf

    def forward(self, x, context=None, mask=None):
        context = x if context is None else context
        k, v = self.kv(context).chunk(2, dim=-1)
        parts = self.q(x), k, v
        q, k, v = (t.unflatten(-1, (3, -1)).transpose(1, 2) for t in parts)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if self.causal:
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        if mask is not None and not self.deaf:
            scores = scores.masked_fill(~mask, -torch.inf)
        y = scores.softmax(dim=-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


def network(d=12):
    return nn.Sequential(nn.Linear(d, 20), nn.ReLU(), nn.Linear(20, d))


class Decoder(nn.Module):
    """Its own attention is causal by itself, and is handed no mask."""

    def __init__(self, deaf=False, d=12):
        super().__init__()
        self.own_attn = Attends(d, causal=True)
        self.cross_attn = Attends(d, deaf=deaf)
        self.mlp = network(d)
        self.norm1, self.norm2, self.norm3 = (
            nn.LayerNorm(d) for _ in range(3)
        )

    def forward(self, x, memory, memory_mask=None):
        x = x + self.own_attn(self.norm1(x))
        x = x + self.cross_attn(self.norm2(x), memory, memory_mask)
        return x + self.mlp(self.norm3(x))


def test_of_a_part_that_is_handed_no_mask_none_is_asked():
    """A causal attention was ill for a mask that nobody hands to it."""
    told = {"kind": "decoder-block", "order": "pre", "mask": "keep"}
    report = here(Decoder(), **told)
    assert report.passed, report
    deaf = here(Decoder(deaf=True), **told)
    assert deaf.mistake.name == "mask ignored"
    assert [*deaf.inside] == ["cross_attn"]


@pytest.mark.parametrize("heads", [(), (1, 1)])
def test_what_a_mask_says_that_is_handed_on_is_read(heads):
    hidden = torch.ones(2, 5, dtype=torch.bool)
    hidden[:, -1] = False
    handed = hidden.view(2, *heads, 5)
    axes = {"mask_axes": "B11N" if heads else "BN"}
    assert meant(handed, hidden) == {"mask": "keep", **axes}
    assert meant(handed.float(), hidden) == {"mask": "keep", **axes}
    assert meant(~handed, hidden) == {"mask": "block", **axes}
    assert meant(-1e9 * ~handed, hidden) == {"mask": "add", **axes}
    assert meant(hidden[:1].expand(5, -1), hidden) == {}


class Encoder(nn.Module):
    """What is padding is told to an attention that must be told."""

    def __init__(self, d=12, beside=False, flipped=False):
        super().__init__()
        self.attn, self.mlp = MustBeTold(d), network(d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.beside, self.flipped = beside, flipped

    def forward(self, x, mask=None):
        given = x
        real = x.new_ones(x.shape[:2]) if mask is None else mask
        real = real.bool()
        if self.flipped and mask is not None:
            real = ~real
        x = x + self.attn(self.norm1(x), real[:, None, None])
        return x + self.mlp(self.norm2(given if self.beside else x))


class MustBeTold(Attends):
    def forward(self, x, mask):
        return super().forward(x, None, mask)


@pytest.mark.parametrize(
    "told", [{}, {"order": "pre", "padding": "keep", "layout": "BND"}]
)
def test_a_mask_that_a_block_makes_goes_to_its_attention(told):
    """The reference was called without it, raised, and no word was said."""
    report = here(Encoder(), kind="encoder-block", **told)
    assert report.passed, report
    assert {**report.facts, **told}["padding"] == "keep"
    assert report.not_asked["a mask"] == "its mask is for padding"
    assert "a mask for padding" not in report.not_asked


def test_what_a_mask_for_padding_says_is_seen():
    report = here(Encoder(flipped=True), kind="encoder-block")
    assert report.passed, report
    assert report.facts["padding"] == "block"


def test_sublayers_side_by_side_of_which_nobody_told_are_asked_after():
    """They were called a mistake; whole families of models have them."""
    both = Encoder(beside=True)
    asked = here(both, kind="encoder-block")
    assert asked.different.endswith('say order="parallel".')
    assert asked.mistake.name == "side by side"
    assert here(both, kind="encoder-block", order="parallel").passed
    wrong = here(both, kind="encoder-block", order="pre")
    assert wrong.mistake.name == "side by side"
    assert not wrong.different


class TwoStreams(nn.Module):
    """Each half of x hears from the other."""

    def __init__(self, d=6, stale=False):
        super().__init__()
        self.attn, self.mlp, self.stale = Attends(d), network(d), stale
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x, pad=None):
        one, two = x.chunk(2, dim=-1)
        seen = None if pad is None else ~pad[:, None, None]
        one = one + self.attn(self.norm1(two), None, seen)
        if self.stale:
            return torch.cat((one, two), dim=-1)
        return torch.cat((one, two + self.mlp(self.norm2(one))), dim=-1)


def test_a_block_may_be_wider_than_its_norms():
    """Its width was not seen; and of one of which nothing was told, the
    doctor had trouble of its own."""
    own = {"kind": "encoder-block", "formula": "own", "padding": "block"}
    report = here(TwoStreams(), **own)
    assert report.passed, report
    assert "a mask for padding" not in report.not_asked
    assert here(TwoStreams(stale=True), **own).exit_code == 1
    asked = here(TwoStreams(), kind="encoder-block")
    why = "12 features, and its norms take 6"
    assert asked.passed and asked.facts["formula"] == "own", asked
    assert any(why in words for words in asked.not_asked.values())


@pytest.mark.parametrize("axes", ["NN", "B11N"])
def test_a_layer_that_must_be_told_its_mask_is_told_that_all_is_seen(axes):
    """Without a mask it was called without one, and raised on each probe."""
    told = {"kind": "self-attention", "mask_axes": axes, "mask": "keep"}
    told |= {"n_heads": 3, "layout": "BND", "causal": False}
    report = here(MustBeTold(), **told)
    assert report.passed, report
    assert here(MustBeTold(deaf=True), **told).exit_code == 1


def test_a_mask_of_other_axes_than_it_takes_is_not_tried():
    """Each way to read a mask took its time; some came to no end."""
    read = find_kind("self-attention").read
    by_keys = read(MaskOfKeys(), {})
    assert by_keys.candidates["mask_axes"] == ["BN"]
    told = read(MaskOfKeys(), {"mask_axes": "BNN"})
    assert "mask_axes" not in told.candidates


class MaskOfKeys(Attends):
    def forward(self, x, mask=None):
        seen = None if mask is None else mask[:, None, None]
        if seen is not None and seen.shape[-2:] != (1, x.shape[1]):
            raise ValueError(seen.shape)
        return super().forward(x, None, seen)
