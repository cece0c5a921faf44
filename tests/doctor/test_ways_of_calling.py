"""Things that others call in another way: sound, and with a mistake."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.attention.layouts import LAYOUTS
from selfattn.doctor.kinds.cached_decoder import calling as decoders
from selfattn.doctor.kinds.layer.inputs import inputs_of

here = functools.partial(examine, time_limit=None)


def eager(query, key, value, mask=None, scale=1.0, out="BNHD"):
    """Heads first; in the output, tokens first or heads side by side."""
    scores = scale * query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + mask[:, :, :, : key.shape[-2]]
    output = (scores.softmax(dim=-1) @ value).transpose(1, 2)
    return output if out == "BNHD" else output.flatten(2)


TOLD = {"mask": "add", "mask_axes": "B1NN", "empty_row": "nan"}


@pytest.mark.parametrize("out", ["BNHD", "BND"])
def test_the_axes_of_an_output_are_no_illness(out):
    report = here(functools.partial(eager, out=out), kind="attention", **TOLD)
    assert report.passed, report
    assert report.facts["layout"] == f"BHND to {out}"


def test_in_such_a_layout_a_mistake_is_found():
    told = {**TOLD, "layout": "BHND to BNHD"}
    assert "BHND to BNHD" in LAYOUTS
    twice = functools.partial(eager, scale=0.5)
    report = here(twice, kind="attention", **told)
    assert not report.passed and report.findings and not report.different


class Across(nn.Module):
    """The memory comes first, its lengths say where each text ends."""

    def __init__(self, wrong=False):
        super().__init__()
        self.query, self.key = nn.Linear(6, 8), nn.Linear(7, 8)
        self.value, self.final = nn.Linear(7, 8), nn.Linear(8, 6)
        self.head_count, self.wrong = 2, wrong

    def forward(self, bank, source, bank_lengths=None):
        q, k, v = (
            m(x).unflatten(-1, (2, 4)).transpose(1, 2)
            for m, x in (
                (self.query, source),
                (self.key, bank),
                (self.value, bank),
            )
        )
        scores = q @ k.mT / 2
        if bank_lengths is not None:
            last = bank_lengths[:, None] + self.wrong
            pad = torch.arange(k.shape[2]) >= last
            scores = scores.masked_fill(pad[:, None, None], -math.inf)
        heads = scores.softmax(-1) @ v
        return self.final(heads.transpose(1, 2).flatten(2))


def test_the_input_that_the_output_is_as_long_as_is_x():
    found = inputs_of(Across(), {})
    assert found == {"x": "source", "context": "bank"}
    report = here(Across(), kind="cross-attention", mask="lengths")
    assert report.passed and not report.untried, report


def test_lengths_that_end_too_late_are_found():
    report = here(Across(True), kind="cross-attention", mask="lengths")
    assert report.findings and not report.different, report


class ByGroup(nn.Module):
    """Of each group its queries, then its key, then its value."""

    def __init__(self, wrong=False):
        super().__init__()
        self.attn, self.proj = nn.Linear(12, 24), nn.Linear(12, 12)
        self.head_size, self.wrong = 3, wrong

    def forward(self, x, hide=None):
        qkv = self.attn(x).unflatten(-1, (2, 4, 3)).permute(0, 2, 3, 1, 4)
        q, k, v = qkv.split((2, 1, 1), dim=2)
        if self.wrong:
            k, v = v, k
        seen = None if hide is None else ~hide[:, None, None]
        k, v = k.expand_as(q), v.expand_as(q)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.proj(y.permute(0, 3, 1, 2, 4).flatten(2))


FACTS = {"causal": False, "mask": "block", "mask_axes": "BNN"}


def test_one_map_may_hold_a_group_after_the_other():
    report = here(ByGroup(), kind="self-attention", **FACTS)
    assert report.passed and not report.untried, report
    assert report.facts["packed"] == "by group"


def test_in_it_too_keys_taken_for_values_are_found():
    told = {**FACTS, "packed": "by group"}
    report = here(ByGroup(True), kind="self-attention", **told)
    assert report.findings and not report.different, report


class Places(nn.Module):
    """A decoder of vectors that has an embedding, of positions."""

    def __init__(self):
        super().__init__()
        self.places, self.last = nn.Embedding(16, 6), nn.Linear(6, 6)

    def forward(self, x, scale=1.0, past=None):
        known = past.shape[1] if past is not None else 0
        x = x + self.places(torch.arange(known, known + x.shape[1]))
        every = x if past is None else torch.cat([past, x], dim=1)
        return self.last(scale * x), every


def test_an_embedding_of_positions_takes_no_words():
    assert decoders.read(Places(), {}).facts == {"d_model": 6}
    report = here(Places(), kind="cached-decoder")
    assert report.passed, report
