"""The lab on Linformer: its numbers are the package's, at every setting."""

import pytest
import torch
from page_numbers import settings_of
from torch.testing import assert_close

from selfattn import LinformerAttention, attention
from selfattn.efficient.linformer import MeanPooling
from selfattn.labs.linformer import (
    LinformerLab,
    N,
    directions,
    random_mixtures,
    seen,
)

NAMES = LinformerLab.settings()
EVERYWHERE = settings_of(
    NAMES,
    ["any order", "neighbours alike"], [1, 2, 8, 16],
    ["means", "random"], [1, 9], [0, 9, 15], [0.0, 4.0, 12.0], [3, 11],
)  # fmt: skip


def compare(results, settings):
    """Raise AssertionError unless the page's numbers are the package's."""
    for values, theirs in zip(settings, results, strict=True):
        mine = seen(**values)._asdict()
        assert theirs.keys() == mine.keys()
        for name, numbers in mine.items():
            close = pytest.approx(numbers, rel=1e-9, abs=1e-12)
            assert theirs[name] == close, (values, name)


def test_it_computes_as_the_package_at_every_setting(in_node, unopened):
    settings = [s for s in EVERYWHERE if s["length"] > 0]
    calls = [["compute", values] for values in settings]
    compare(in_node("linformer", calls), settings)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("/ Math.SQRT2", "/ 2"),
        ("=== row ? m / N : 0", "=== row ? 1 : 0"),
        ("/ Math.sqrt(m)));", "/ m));"),
        ("slice(token + 1)", "slice(token)"),
        ("share * mix[row][j]", "mix[row][j]"),
        ("mix.map(read)", "mix.map((row) => x[mix.indexOf(row)])"),
        ("START * draw", "START + draw"),
        ("weights.map((w, j) => w * x[j][c])", "weights.map((w) => w)"),
    ],
)
def test_one_wrong_operation_is_seen(planted, right, wrong):
    some = [s for s in EVERYWHERE if s["length"] > 0][::5]
    with pytest.raises(AssertionError):
        compare(planted("linformer", right, wrong, some), some)


@pytest.mark.parametrize("kind", ["means", "random"])
@pytest.mark.parametrize("mixtures", [1, 4, 16])
def test_its_output_is_that_of_the_module(kind, mixtures):
    x = directions("any order", 11)
    drawn = random_mixtures(3, mixtures)
    mix = MeanPooling(mixtures) if kind == "means" else drawn.__matmul__
    whole = attention(4 * x, x, x)
    output = LinformerAttention(mix)(4 * x, x, x)
    for token in (0, 9, 15):
        now = seen(
            text="any order", mixtures=mixtures, kind=kind, draw=3,
            token=token, length=4.0, last=11,
        )  # fmt: skip
        stands = torch.tensor(now.stands, dtype=torch.float64)
        assert_close(stands @ x, output[token])
        off = (output - whole)[token].norm() / whole[token].norm()
        assert now.off == pytest.approx(off.item(), abs=1e-12)
        later = stands.abs()[token + 1 :].sum() / stands.abs().sum()
        assert now.later == pytest.approx(later.item())
        assert now.best == int((x @ x[token]).argmax())


def test_random_mixtures_are_of_variance_one_over_their_number():
    for m in (4, 16):
        drawn = torch.stack([random_mixtures(i, m) for i in range(1, 10)])
        assert drawn.shape == (9, m, N)
        assert abs(drawn.var().item() * m - 1) < 0.1
        assert abs(drawn.mean().item() * m**0.5) < 0.1


def test_the_picture_is_told_in_words():
    told = LinformerLab(mixtures=16).describe()
    assert "token 10 asks" in told and "their output is 0.00" in told.lower()


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    assert_links_bring_back(LinformerLab(), EVERYWHERE[::17])


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("mixtures=8&token=0", {"mixtures": 8, "token": 0}, ""),
        ("draw=12", {"draw": 9}, "draw must lie between 1"),
        ("mixtures=3", {}, "mixtures must be"),
        ("kind=x", {}, "kind must be"),
        ("n=3", {}, "no setting “n”"),
    ],
)
def test_a_link_is_mended(assert_link_is_mended, link, changed, complaint):
    assert_link_is_mended(LinformerLab(), link, changed, complaint)
