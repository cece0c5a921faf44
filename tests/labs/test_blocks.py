"""The lab on blocks: who hears whom is what the package's blocks do."""

import itertools
import random

import pytest
from page_numbers import compare_each

from selfattn.labs.blocks import HEARD, BlocksLab, seen

# float64, sums of at most 48 products through two norms.
CLOSE = 1e-10
FLAGS = ("feed_forward", "cross", "causal", "mask_source", "mask_memory")


def any_setting(chance):
    """One of all settings."""
    d_model = chance.choice([4, 8, 12])
    m = chance.randint(1, 5)
    return {
        "d_model": d_model,
        "n_heads": chance.choice([1, 2, 4]),
        "norm": chance.choice(["pre", "post", "none"]),
        "m": m,
        "padded": chance.randint(0, m - 1),
        "n": chance.randint(1, 5),
    } | {name: chance.random() < 0.5 for name in FLAGS}


def settings():
    """Every pair of values of two controls, extremes, and 100 at random."""
    chance = random.Random(0)
    names = {
        "d_model": [4, 8, 12],
        "n_heads": [1, 2, 4],
        "norm": ["pre", "post", "none"],
        "m": [1, 5],
        "n": [1, 5],
    } | {name: [False, True] for name in FLAGS}
    for one, other in itertools.combinations(names, 2):
        for a, b in itertools.product(names[one], names[other]):
            made = any_setting(chance) | {one: a, other: b}
            yield made | {"padded": min(made["padded"], made["m"] - 1)}
    for _ in range(100):
        yield any_setting(chance)


def compare(theirs, values):
    """Raise AssertionError unless the page has what the package has."""
    ours = seen(**values)
    for mine, other in zip(ours.moves, theirs["moves"], strict=True):
        assert other == pytest.approx(mine, abs=CLOSE)
        for x, y in zip(mine, other, strict=True):
            assert (x > HEARD) == (y > HEARD)
    for name in ("future", "padding", "parameters", "shapes"):
        assert theirs[name] == getattr(ours, name), name


def test_the_page_computes_as_the_package(in_node, unopened):
    many = list(settings())
    calls = [["compute", values] for values in many]
    compare_each(compare, in_node("blocks", calls), many)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("+ EPS", ""),
        ("row.slice(h * d, (h + 1) * d)", "row.slice(0, d)"),
        ("causal ? causalMask(n, n)", "true ? causalMask(n, n)"),
        ("mask_memory ? paddingMask(n, m", "true ? paddingMask(n, m"),
        ("heads(x, memory, ", "heads(x, x, "),
        ("sum(x, sublayer(normed(x)))", "sublayer(normed(x))"),
        ("leaks((i, j) => j - m > i)", "leaks(() => true)"),
        ("cross ? 3 : 2", "3"),
    ],
)
def test_a_planted_mistake_is_seen(planted, right, wrong):
    sample = list(itertools.islice(settings(), 30))
    if wrong.startswith("heads"):  # else the mask would not fit
        sample = [values for values in sample if values["m"] == values["n"]]
    theirs = planted("blocks", right, wrong, sample)
    with pytest.raises(AssertionError):
        compare_each(compare, theirs, sample)


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    chance = random.Random(1)
    many = [any_setting(chance) for _ in range(200)]
    assert_links_bring_back(BlocksLab(), many)


def test_fewer_source_tokens_take_their_padding_along():
    some = BlocksLab(m=5, padded=4)
    some.m = 3
    assert some.padded == 2


def test_each_mask_keeps_out_what_it_is_for():
    now = BlocksLab().seen()
    assert (now.future, now.padding) == (0, 0)
    assert BlocksLab(causal=False).seen().future == 6
    assert BlocksLab(mask_memory=False).seen().padding == 4
    assert BlocksLab(mask_source=False).seen().padding == 4
    deaf = BlocksLab(cross=False).seen()
    assert not any(x > HEARD for row in deaf.moves for x in row[:4])


def test_the_still_picture_and_its_words_are_of_this_setting():
    lab = BlocksLab(n=3, causal=False)
    assert repr(lab) == "BlocksLab(n=3, causal=False)"
    assert "3 cells hear a later target token" in lab.describe()
    (ax,) = lab.figure().axes
    assert ax.images[0].get_array().shape == (3, 7)
    assert [t.get_text() for t in ax.get_xticklabels()][3] == "pad"
