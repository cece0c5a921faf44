"""The lab on layers: forward and back as the package and autograd do."""

import itertools
import random

import pytest
from page_numbers import compare_each

from selfattn.labs.layers import LEAST, LayersLab, trace

START = LayersLab().values()

# A gradient through twelve blocks is a sum of products of some hundred
# factors; where scores are in the hundreds, they cancel to a few digits less.
CLOSE = 1e-7


def every_setting():
    """The full product of the lab's controls."""
    for depth, residual, norm, work, draw in itertools.product(
        range(1, 13),
        (False, True),
        ("none", "pre", "post"),
        (False, True),
        range(1, 9),
    ):
        yield {
            "depth": depth,
            "residual": residual,
            "norm": norm,
            "feed_forward": work,
            "draw": draw,
        }


def compare(theirs, values):
    """Raise AssertionError unless the page has what the package has."""
    ours = trace(**values)
    for name, numbers in ours._asdict().items():
        # What has sunk from 200 to a billionth keeps the rounding of the 200.
        sunk = LEAST * max(1.0, *(x for x in numbers if x is not None))
        assert theirs[name] == pytest.approx(numbers, rel=CLOSE, abs=sunk)


def test_the_page_computes_as_the_package_everywhere(in_node, unopened):
    everywhere = list(every_setting())
    assert len(everywhere) == 1152  # at most 20,000, so all of them
    calls = [["compute", values] for values in everywhere]
    compare_each(compare, in_node("layers", calls), everywhere)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("+ EPS", ""),
        ("(u - shared - made[i][c] * along)", "(u - shared)"),
        ("p * (pull[i][j] - whole) * scale", "p * pull[i][j] * scale"),
        ("inner[i][c] > 0 ? u : 0", "u"),
        ("residual ? plus(atSum, through)", "residual ? through"),
        ("draw + 5", "draw + 4"),
        (
            'norm === "post" ? normalised(sum)',
            'norm === "x" ? normalised(sum)',
        ),
    ],
)
def test_a_planted_mistake_is_seen(planted, right, wrong):
    sample = random.Random(0).sample(list(every_setting()), 40)
    theirs = planted("layers", right, wrong, sample)
    with pytest.raises(AssertionError):
        compare_each(compare, theirs, sample)


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    many = random.Random(1).sample(list(every_setting()), 200)
    assert_links_bring_back(LayersLab(), many)


def test_the_start_shows_the_collapse():
    found = LayersLab().trace()
    assert found.distinct[0] > 0.5 and max(found.distinct[7:]) < LEAST
    kept = LayersLab(residual=True, norm="pre").trace()
    assert min(kept.distinct) > 0.1 and min(kept.query) > 0.01


def test_the_still_picture_and_its_words_are_of_this_setting():
    lab = LayersLab(depth=3, residual=True, norm="pre")
    assert repr(lab) == "LayersLab(depth=3, residual=True, norm='pre')"
    assert "3 blocks with a residual path, pre-norm" in lab.describe()
    left, right = lab.figure().axes
    assert len(left.lines) == len(right.lines) == 2
    assert len(left.lines[0].get_xdata()) == 4
