"""What the doctor once missed, or called by another name."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.blocks.parts import attentions
from selfattn.doctor.kinds.cached_decoder.signs import sign
from selfattn.doctor.patient import Patient

here = functools.partial(examine, time_limit=None)
KNOWN = {"layout": "BND", "mask_axes": "BNN", "dtypes": ["float32"]}


def by_numbers(fill):
    """Attention whose mask, as ones and zeros, is turned and multiplied."""

    def attention(q, k, v, mask=None):
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores + (1 - mask.to(scores.dtype)) * fill
        return scores.softmax(dim=-1) @ v

    return attention


def test_a_small_fill_is_no_mask_that_is_added():
    """-inf stays -inf, however it is multiplied; so it was called healthy."""
    report = here(by_numbers(-4.0), kind="attention", **KNOWN)
    assert report.mistake.name == "masked with too small a number", report
    assert report.facts["mask"] == "keep"


def test_what_is_added_counts():
    """Told to be added: a number in the mask is one in the scores."""

    def plain(q, k, v, mask=None):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def doubled(q, k, v, mask=None):
        return plain(q, k, v, None if mask is None else 2 * mask)

    assert here(plain, kind="attention", mask="add", **KNOWN).passed
    report = here(doubled, kind="attention", mask="add", **KNOWN)
    [found] = report.findings
    assert found.probe.claim.startswith("what a mask adds to a score counts")
    assert report.exit_code == 1


class Layer(nn.Module):
    """A layer of three heads, of which a step may be another."""

    def __init__(self):
        super().__init__()
        for name in ("to_q", "to_k", "to_v", "to_out"):
            setattr(self, name, nn.Linear(12, 12))
        self.heads = 3

    def prepared(self, x):
        return x

    def compared(self, q, k):
        return q @ k.mT / 2

    def attend(self, x, context, hidden):
        x, context = self.prepared(x), self.prepared(context)
        cut = (3, 4)
        q = self.to_q(x).unflatten(-1, cut).transpose(1, 2)
        k = self.to_k(context).unflatten(-1, cut).transpose(1, 2)
        v = self.to_v(context).unflatten(-1, cut).transpose(1, 2)
        scores = self.compared(q, k)
        if hidden is not None:
            scores = scores.masked_fill(hidden, -torch.inf)
        return self.to_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class OfKeys(Layer):
    """A mask of keys alone, under the name that it has across."""

    def forward(self, x, encoder_hidden_states, encoder_attention_mask=None):
        seen = encoder_attention_mask
        hidden = None if seen is None else ~seen[:, None, None, :]
        return self.attend(x, encoder_hidden_states, hidden)


class TooLate(OfKeys):
    """The same mask, after the softmax."""

    def forward(self, x, encoder_hidden_states, encoder_attention_mask=None):
        return super().forward(x, encoder_hidden_states)


def test_a_mask_of_keys_alone_is_found_by_its_name():
    report = here(OfKeys(), kind="cross-attention", layout="BND")
    assert report.passed, report
    assert report.facts["mask"] == "keep"
    assert report.facts["mask_axes"] == "BN"
    report = here(TooLate(), kind="cross-attention", **OF_KEYS)
    assert report.exit_code == 1, report


class Normed(Layer):
    """Norms what comes in, or queries and keys."""

    def __init__(self, inside):
        super().__init__()
        self.norm, self.inside = nn.LayerNorm(4 if inside else 12), inside

    def prepared(self, x):
        return x if self.inside else self.norm(x)

    def compared(self, q, k):
        pair = (self.norm(q), self.norm(k)) if self.inside else (q, k)
        return super().compared(*pair)

    def forward(self, x, mask=None):
        hidden = None if mask is None else ~mask[:, None, None, :]
        return self.attend(x, x, hidden)


OF_KEYS = {
    **{"layout": "BND", "mask": "keep", "mask_axes": "BN"},
    "dtypes": ["float32"],
}


@pytest.mark.parametrize("inside", [True, False])
def test_a_norm_inside_is_a_variation(inside):
    thing, known = Normed(inside), {**OF_KEYS, "causal": False}
    report = here(thing, kind="self-attention", **known)
    assert report.passed, report
    assert report.facts["formula"] == "own"


def test_attention_is_found_in_a_block_that_calls_it_otherwise():
    class Mixing(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.Linear(8, 8)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.sa = Mixing()
            self.ffwd = nn.Sequential(nn.Linear(8, 9), nn.Linear(9, 8))
            self.ln = nn.LayerNorm(8)
            self.mlp = Mixing()

    assert [*attentions(Block())] == ["sa"]


class Cached(nn.Module):
    """Words with places, one causal layer with a cache."""

    def __init__(self, hide, shift=0):
        super().__init__()
        torch.manual_seed(3)
        self.words, self.places = nn.Embedding(5, 6), nn.Embedding(9, 6)
        self.map = nn.Linear(6, 18)
        nn.init.normal_(self.map.weight, std=0.7)
        self.hide, self.shift = hide, shift

    def forward(self, ids, cache=None):
        n, past = ids.shape[1], 0 if cache is None else cache[0].shape[1]
        moved = self.shift * (past > 0)
        x = self.words(ids) + self.places(torch.arange(n) + past + moved)
        q, k, v = self.map(x).chunk(3, dim=-1)
        if cache is not None:
            k, v = (torch.cat(p, 1) for p in zip(cache, (k, v), strict=True))
        seen = torch.ones(n, past + n).bool().tril(past)
        weights = self.hide(q @ k.mT / 6**0.5, seen).softmax(-1)
        return x + weights @ v, (k, v)


HIDING = {
    "masked with zero": lambda s, seen: s.masked_fill(~seen, 0.0),
    "masked with too small a number": lambda s, seen: s.masked_fill(
        ~seen, -4.0
    ),
    "upside down": lambda s, seen: s.masked_fill(seen, -1e9),
    "not causal": lambda s, seen: s,
}


@pytest.mark.parametrize("name", HIDING)
def test_of_a_cache_it_is_told_how_the_future_is_not_hidden(name):
    """All of them were called “not causal”."""
    report = here(Cached(HIDING[name]), kind="cached-decoder")
    assert report.mistake.name == name, report


@pytest.mark.parametrize("fill", [-6.0, -9.0, -11.0])
def test_what_is_hardly_heard_is_not_masked_after_softmax(fill):
    """So small a change turns nothing much, whichever way it points."""

    def hide(scores, seen):
        return scores.masked_fill(~seen, fill)

    known = "masked with too small a number"
    assert sign(Patient(Cached(hide), {}), None) == known


@pytest.mark.parametrize("shift", [-1, 1])
def test_words_one_place_off(shift):
    def right(scores, seen):
        return scores.masked_fill(~seen, -torch.inf)

    known = "new words at wrong distances"
    assert sign(Patient(Cached(right, shift), {}), None) == known
    assert sign(Patient(Cached(right), {}), None) == ""


@pytest.mark.parametrize("moved", [1, -1])
def test_an_offset_one_off(moved):
    """In float32, as most write it, and only once there is an offset."""

    def rotate(x, offset=0):
        d, n = x.shape[-1], x.shape[-2]
        rate = 1.0 / 10_000 ** (torch.arange(0, d, 2).float() / d)
        first = offset + moved * (offset > 0)
        angle = torch.arange(first, first + n).float()[:, None] * rate
        c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)

    report = here(rotate, kind="rope")
    assert report.mistake.name == "offset off by one", report
    assert report.exit_code == 1
