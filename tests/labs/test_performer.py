"""The lab on one estimated weight: it is the package's, and the theory's."""

import math

import pytest
import torch
from page_numbers import leaves, settings_of
from torch.testing import assert_close

from selfattn.labs.performer import (
    DRAWS,
    MOST,
    PerformerLab,
    directions,
    seen,
)
from selfattn.random_features import log_features

NAMES = ("length", "angle", "m", "kind", "orthogonal", "draw")
KINDS = ("positive", "trigonometric")
EVERYWHERE = settings_of(
    NAMES,
    [0.0, 0.75, 2.5],
    [0, 60, 180],
    [4, 16],
    KINDS,
    [False, True],
    [1, 9],
)


def compare(results, settings):
    """Raise AssertionError unless the page's numbers are the package's."""
    for values, theirs in zip(settings, results, strict=True):
        mine = seen(**values)._asdict()
        assert theirs.keys() == mine.keys()
        for name, x in mine.items():
            flat, other = ([*leaves(y)] for y in (x, theirs[name]))
            expected = pytest.approx(flat, rel=1e-9, abs=1e-9)
            assert other == expected, (name, values)


def test_it_computes_as_the_package_at_many_settings(in_node, unopened):
    assert len(EVERYWHERE) == 3 * 3 * 2 * 2 * 2 * 2
    calls = [["compute", values] for values in EVERYWHERE]
    compare(in_node("performer", calls), EVERYWHERE)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("(START * draw) % MODULUS", "START % MODULUS"),
        ("i % 2 === 1 ? angle + Math.PI / 2", "i % 2 === 1 ? angle + Math.PI"),
        ("together) - squares - score", "together) - score"),
        ("Math.exp(squares - score)", "Math.exp(-score)"),
        ("dot(omega, apart)", "dot(omega, together)"),
        ("Math.cosh(dot(apart, apart)) - 1", "Math.cosh(dot(apart, apart))"),
        ("sizes.reduce((sum, x) => sum + x, 0),", "m,"),
    ],
)
def test_one_wrong_operation_is_seen(planted, right, wrong):
    with pytest.raises(AssertionError):
        compare(planted("performer", right, wrong, EVERYWHERE), EVERYWHERE)


def test_directions_are_normal_and_at_right_angles_if_asked_to():
    every = [directions(draw, MOST, orthogonal=False) for draw in range(1, 10)]
    many = torch.cat(every)
    assert len(every) == DRAWS
    # Four standard errors of a mean, and of a variance, of so many numbers.
    assert many.mean(dim=0).abs().max() < 4 / len(many) ** 0.5
    assert (many.var(dim=0) - 1).abs().max() < 4 * (2 / len(many)) ** 0.5
    pairs = directions(3, 16, orthogonal=True).view(8, 2, 2)
    assert_close((pairs[:, 0] * pairs[:, 1]).sum(-1), torch.zeros(8).double())
    lengths = directions(3, 16, orthogonal=False).norm(dim=-1)
    assert_close(pairs.norm(dim=-1).flatten(), lengths)


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_over_draws_is_the_exponential_and_the_spread_is_so(kind):
    """Of a short pair, over every draw of 2,500 directions."""
    values = {"length": 0.5, "angle": 60, "kind": kind}
    one = {**values, "m": 2500, "orthogonal": False}
    now = [seen(**one, draw=draw) for draw in range(1, DRAWS + 1)]
    off = sum(x.off for x in now) / DRAWS
    assert abs(off) < 4 * now[0].spread / DRAWS**0.5
    parts = torch.tensor([x.parts for x in now])
    share = parts.std() / 2500**0.5 / now[0].spread
    assert share == pytest.approx(1, abs=0.1)


def test_positive_parts_are_products_of_the_package_s_features():
    now = PerformerLab(length=1.25, angle=90, m=64).seen()
    pair = torch.tensor([now.query, now.key], dtype=torch.float64)
    omega = torch.tensor(now.directions, dtype=torch.float64)
    of_q, of_k = log_features(pair, omega).exp()
    expected = of_q * of_k / math.exp(pair[0] @ pair[1])
    assert_close(torch.tensor(now.parts).double(), expected)


def test_the_picture_is_told_in_words():
    told = PerformerLab().describe()
    assert "of length 0.75, 60 degrees apart, and 16 directions" in told
    assert "Their positive features" in told and "15%" in told
    other = PerformerLab(kind="trigonometric", length=0.0).describe()
    assert "Their trigonometric features" in other
    assert "1.000, as 1.000" in other


def test_the_still_picture_shows_every_direction():
    lab = PerformerLab(m=64)
    [dots] = lab.figure().axes[0].collections
    now = lab.seen()
    assert dots.get_offsets().tolist() == now.directions
    sizes = dots.get_sizes().tolist()
    assert sizes.index(max(sizes)) == now.parts.index(max(now.parts))


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    assert_links_bring_back(PerformerLab(), EVERYWHERE[::5])


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("m=64&orthogonal=true", {"m": 64, "orthogonal": True}, ""),
        ("angle=45", {}, "angle must be one of 0, 30, 60"),
        ("length=3", {"length": 2.5}, "length must lie between 0"),
        ("draw=0", {"draw": 1}, "draw must lie between 1"),
        ("seed=3", {}, "no setting “seed”"),
    ],
)
def test_a_link_is_mended(assert_link_is_mended, link, changed, complaint):
    assert_link_is_mended(PerformerLab(), link, changed, complaint)
