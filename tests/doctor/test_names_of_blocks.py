"""What a block calls its texts and masks, and a promise that it breaks."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine

D = 12


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, source, real=None):
        scores = self.q(x) @ self.k(source).mT / math.sqrt(D)
        if real is not None:
            scores = scores.masked_fill(~real[:, None], -torch.inf)
        return self.out(scores.softmax(-1) @ self.v(source))


class Clicks(nn.Module):
    """Two masks that no name tells from each other, one for each text."""

    def __init__(self, crossed=False):
        super().__init__()
        self.crossed = crossed
        self.clicks, self.catalogue = Attention(), Attention()
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))
        self.mlp = nn.Sequential(nn.Linear(D, 7), nn.GELU(), nn.Linear(7, D))

    def forward(self, clicks, catalogue, real=None, on_sale=None):
        first, second, third = self.norms
        y = first(clicks)
        x = clicks + self.clicks(y, y, real)
        sold = real if self.crossed else on_sale
        x = x + self.catalogue(second(x), catalogue, sold)
        return x + self.mlp(third(x))


def clicks(crossed=False, **told):
    return examine(
        Clicks(crossed).eval(),
        kind="decoder-block",
        time_limit=None,
        causal=False,
        formula="own",
        order="pre",
        padding="keep",
        **told,
    )


def test_a_mask_that_was_told_and_is_not_found_is_asked_after():
    """The verdict was ✓: that it was never handed a mask, a line said."""
    report = clicks()
    assert not report.passed and "You told padding" in report.untried, report
    assert "names=…" in report.untried


def test_which_of_two_masks_it_is_may_be_told():
    assert clicks(names={"padding": "on_sale"}).passed


def test_a_name_that_was_told_is_the_one_that_is_tried():
    report = clicks(True, names={"padding": "on_sale"})
    assert not report.passed and "padding" in str(report), report


def test_a_name_that_it_does_not_take_is_refused():
    report = clicks(names={"padding": "mask"})
    assert "takes clicks, catalogue, real, on_sale" in report.question, report


class Turned(nn.Module):
    """The context comes first, and by no name that says so."""

    def __init__(self):
        super().__init__()
        self.block = Clicks()

    def forward(self, *, shelf, basket):
        return self.block(basket, shelf)


def test_texts_may_be_told_by_their_names():
    told = {"formula": "own", "causal": False, "order": "pre"}
    names = {"x": "basket", "context": "shelf"}
    report = examine(
        Turned().eval(),
        kind="decoder-block",
        time_limit=None,
        names=names,
        **told,
    )
    assert report.passed, report


class Blank(nn.Module):
    """What is padding is blanked at the end; or all else, or on its side."""

    def __init__(self, keeps="real"):
        super().__init__()
        self.keeps = keeps
        self.attn, self.norm1, self.norm2 = (
            Attention(),
            *(nn.LayerNorm(D) for _ in range(2)),
        )
        self.conv = nn.Conv1d(D, D, 3, padding="same")

    def forward(self, x, mask=None):
        real = None if mask is None else ~mask
        x = self.norm1(x + self.attn(x, x, real))
        if mask is not None:
            x = x.masked_fill(mask[..., None], 0)
        x = self.norm2(x + F.gelu(self.conv(x.mT)).mT)
        if mask is None:
            return x
        if self.keeps == "on its side":
            return x.masked_fill(mask[:, None], 0)
        hidden = mask if self.keeps == "real" else ~mask
        return x.masked_fill(hidden[..., None], 0)


def blank(keeps):
    return examine(
        Blank(keeps).eval(),
        kind="encoder-block",
        time_limit=None,
        formula="own",
        order="post",
        padding="block",
    )


def test_who_blanks_what_is_real_is_ill():
    """All that was asked of padding was that it moves nothing real, which
    holds where nothing real is left.
    """
    assert blank("real").passed
    report = blank("padding")
    assert report.exit_code == 1, report
    claims = [finding.probe.claim for finding in report.findings]
    assert claims == ["beside padding, what is real is heard"], report


def test_a_mask_that_was_told_and_always_raises_is_asked_after():
    """It was called healthy; but it may take its mask in another way."""
    report = blank("on its side")
    assert report.exit_code == 3, report
    assert "You told padding" in report.different, report


class Pads(nn.Module):
    """One mask for pairs, and one for padding, which it does not use."""

    def __init__(self, used):
        super().__init__()
        self.used = used
        self.attn, self.norm1, self.norm2 = (
            Attention(),
            *(nn.LayerNorm(D) for _ in range(2)),
        )
        self.up, self.down = nn.Linear(D, 7), nn.Linear(7, D)

    def forward(self, x, src_mask=None, src_key_padding_mask=None):
        pads = src_key_padding_mask if self.used else None
        real = None if pads is None else ~pads
        x = x + self.attn(self.norm1(x), self.norm1(x), real)
        return x + self.down(F.relu(self.up(self.norm2(x))))


@pytest.mark.parametrize("used", [True, False])
def test_padding_is_handed_to_what_is_called_so(used):
    """The mask for pairs got it, and who raised there was not asked."""
    report = examine(
        Pads(used).eval(),
        kind="encoder-block",
        time_limit=None,
        formula="own",
        order="pre",
        padding="block",
    )
    assert report.passed == used, report


class Contacts(nn.Module):
    """A mask by a name that nobody would guess, beside a cache."""

    def __init__(self):
        super().__init__()
        self.attn, self.norm1, self.norm2 = (
            Attention(),
            *(nn.LayerNorm(D) for _ in range(2)),
        )
        self.up, self.down = nn.Linear(D, 7), nn.Linear(7, D)

    def forward(self, residues, *, contact_block=None, cache=None):
        x, real = self.norm1(residues), contact_block
        told = self.attn(x, x, None if real is None else ~real)
        residues = residues + told
        fed = self.down(F.relu(self.up(self.norm2(residues))))
        return residues + fed, cache


def test_a_cache_is_no_mask():
    """Of two arguments neither was taken for the mask that was told."""
    report = examine(
        Contacts().eval(),
        kind="encoder-block",
        time_limit=None,
        formula="own",
        order="pre",
        padding="block",
    )
    assert report.passed, report
    assert "a mask for padding" not in report.not_asked
