"""The lab on positions: its numbers are those of the package."""

import itertools
import random
import re

import pytest
import torch
from page_numbers import compare_each

from selfattn.labs.machinery.settings import SettingError
from selfattn.labs.positions import LONGEST, PositionsLab, pair, pictured
from selfattn.positions import alibi_bias, rope, sinusoidal

START = PositionsLab().values()
CHOICES = {
    name: trait.options
    for name, trait in PositionsLab.settings().items()
    if hasattr(trait, "options")
}
TURNS = range(-180, 181, 15)


def some_setting(chance):
    """Any of the lab's settings."""
    n = chance.randint(2, LONGEST)
    return {
        name: chance.choice(options) for name, options in CHOICES.items()
    } | {
        "n": n,
        "query": chance.randrange(n),
        "key": chance.randrange(n),
        "turn": chance.choice(TURNS),
    }


def every_value_and_pair():
    """Every value of every control, and those that meet in a formula paired.

    The key's place is only pointed at; it changes no number.
    """
    values = CHOICES | {"turn": TURNS}
    for encoding in CHOICES["encoding"]:
        fixed = START | {"encoding": encoding}
        for n in range(2, LONGEST + 1):
            for query in {0, n // 3, n - 1}:
                yield fixed | {"n": n, "query": query, "key": n - 1}
        for query in range(LONGEST):
            yield fixed | {"n": LONGEST, "query": query}
        for one, other in itertools.combinations(
            ("d", "base", "heads", "turn"), 2
        ):
            for a, b in itertools.product(values[one], values[other]):
                yield fixed | {one: a, other: b}


def compare(theirs, values):
    """Raise AssertionError unless the page has the package's numbers."""
    ours = pictured(**values)
    # Tables and biases are float32, so right to 6e-8 of their size; angles
    # up to 64 carry 1e-14, and a product adds up d of either.
    rough = values["encoding"] != "rope"
    close = (1.2e-7 if rough else 1e-13) * values["d"]
    size = 1 + LONGEST * (values["encoding"] == "alibi")
    for name, bound in (
        ("turns", 1e-15),
        ("rows", close),
        ("curves", close * size),
    ):
        mine = getattr(ours, name)
        page = torch.tensor(theirs[name], dtype=torch.float64)
        assert page.shape == mine.shape, name
        assert not page.numel() or (page - mine).abs().max() <= bound, name


def test_the_page_computes_as_the_package(in_node, unopened):
    chance = random.Random(0)
    many = [
        *every_value_and_pair(),
        *(some_setting(chance) for _ in range(2000)),
    ]
    calls = [["compute", values] for values in many]
    for start in range(0, len(calls), 1000):
        part = slice(start, start + 1000)
        results = in_node("positions", calls[part])
        compare_each(compare, results, many[part])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("(-2 * i) / d", "-i / d"),
        ("Math.cos(p * w + key)", "Math.cos(p * w - key)"),
        ("Math.sin(p * w)", "Math.sin((p + 1) * w)"),
        ("2 ** ((-8 / below) * (i + 1))", "2 ** ((-8 / heads) * (i + 1))"),
        ("2 * (i - below) + 1", "2 * (i - below) + 2"),
        ("Math.abs(query - j)", "(query - j)"),
        ("sum + asked[f] * row[j]", "sum + row[query] * row[j]"),
    ],
)
def test_a_planted_mistake_is_seen(planted, right, wrong):
    sample = [some_setting(random.Random(x)) for x in range(100)]
    theirs = planted("positions", right, wrong, sample)
    with pytest.raises(AssertionError):
        compare_each(compare, theirs, sample)


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    chance = random.Random(1)
    many = [some_setting(chance) for _ in range(200)]
    assert_links_bring_back(PositionsLab(), many)


def test_the_numbers_are_those_of_the_chapters_functions():
    table = PositionsLab(n=11, d=8, query=3, key=0).pictured()
    assert torch.equal(table.rows, sinusoidal(11, 8).double().T)
    lab = PositionsLab(encoding="rope", n=11, d=8, query=3, key=7, turn=45)
    q, k = pair(0.0, 8), pair(torch.pi / 4, 8)
    score = rope(q[None], offset=3) @ rope(k[None], offset=7).T
    assert lab.pictured().curves[0, 7] == pytest.approx(score.item())
    lab = PositionsLab(encoding="alibi", n=11, heads=4, query=10, key=7)
    expected = alibi_bias(4, 1, 11)[:, 0].double()
    assert torch.equal(lab.pictured().curves, expected)


def test_a_shorter_text_takes_its_positions_along():
    some = PositionsLab(n=40, query=39, key=30)
    some.n = 8
    assert (some.query, some.key) == (7, 7)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"n": 1}, "n must lie between 2 and 64"),
        ({"query": 32}, "query must lie between 0 and 31"),
        ({"d": 3}, "d must be one of 2, 4, 8"),
        ({"encoding": "learned"}, "encoding must be one of 'sinusoidal'"),
        ({"turn": 181}, "turn must lie between -180 and 180"),
    ],
)
def test_a_bad_setting_is_refused_in_python(start, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        PositionsLab(**start)


@pytest.mark.parametrize("encoding", CHOICES["encoding"])
def test_the_still_picture_and_its_words_are_of_this_setting(encoding):
    lab = PositionsLab(encoding=encoding, d=8, heads=4, query=5, key=9)
    heat, chart, dials = lab.figure().axes
    shown = lab.pictured()
    drawn = torch.tensor(heat.images[0].get_array().tolist()).double()
    assert torch.allclose(drawn, shown.rows)
    curve = torch.tensor(chart.lines[0].get_ydata()).double()
    assert torch.allclose(curve, shown.curves[0])
    assert len(dials.lines) == (0 if encoding == "alibi" else 8)
    hands = [max(map(abs, line.get_ydata())) for line in dials.lines]
    assert len(dials.patches) * 2 == len(hands)
    for rim in dials.patches:  # whole, and around its hands
        assert max(hands) <= rim.radius <= dials.get_ylim()[1]
        assert -rim.center[0] + rim.radius <= -dials.get_xlim()[0]
    assert f"{shown.curves[0, 9]:.2f} at 9" in lab.describe()
    again = eval(repr(lab), {"PositionsLab": PositionsLab})
    assert again.values() == lab.values()


def test_further_on_the_product_is_that_of_the_start():
    start, on = PositionsLab(), PositionsLab(query=28, key=20)
    before, after = (
        lab.pictured().curves[0, lab.key].item() for lab in (start, on)
    )
    assert after == pytest.approx(before, abs=1e-5)
    assert f"{before:.2f}" == "4.70"
