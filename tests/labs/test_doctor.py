"""The lab on debugging: the mistakes of its page are those of the bank."""

import math
import re

import pytest
import torch
from page_numbers import settings_of

from selfattn.labs.doctor import (
    BANK,
    MISTAKES,
    MOST_FEATURES,
    MOST_TOKENS,
    NONE,
    PROBES,
    DoctorLab,
    probes,
    seen,
)
from selfattn.labs.machinery.settings import SettingError

START = DoctorLab().values()
TOKENS, FEATURES = range(1, MOST_TOKENS + 1), range(1, MOST_FEATURES + 1)
EVERYWHERE = settings_of(
    START,
    MISTAKES, TOKENS, TOKENS, FEATURES, FEATURES,
    ["none", "causal", "padding"],
)  # fmt: skip

# A score is a sum of four quarters, exact; the quotient, the exponential and
# a sum of five lose a few times 2.2e-16 of numbers below 1.5.
CLOSE = 1e-12


def same(page, ours):
    """Whether the page's rows are a tensor's; JSON writes NaN as null."""
    if page is None or ours is None:
        return page is None and ours is None
    rows = [[math.nan if x is None else x for x in row] for row in page]
    table = torch.tensor(rows, dtype=torch.float64)
    return table.shape == ours.shape and torch.allclose(
        table, ours, rtol=CLOSE, atol=CLOSE, equal_nan=True
    )


def compare(results, settings):
    """Raise AssertionError unless the page computes as the bank."""
    panel = {mistake: probes(mistake) for mistake in MISTAKES}
    for values, theirs in zip(settings, results, strict=True):
        ours = seen(**values)
        assert same(theirs["right"], ours.right), values
        assert same(theirs["given"], ours.given), values
        assert theirs["seen"] == ours.differs, values
        if theirs["wrong"] is not None:
            assert theirs["wrong"] == ours.wrong().tolist(), values
        assert theirs["probes"] == panel[values["mistake"]], values


def test_it_computes_as_the_bank_at_every_setting(in_node, unopened):
    assert len(EVERYWHERE) == 6_912  # all of them
    calls = [["compute", values] for values in EVERYWHERE]
    compare(in_node("doctor", calls), EVERYWHERE)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("divided((q) => q[0].length)", "divided((q) => q.length)"),
        ("j <= i + n_k - n_q + 1", "j <= i + n_k - n_q + 2"),
        ("mask.map((row) => row.map((x) => !x))", "mask"),
        ("row.map(() => NaN)", "row.map(() => 0)"),
        ("j < i + n_k - n_q", "j < i"),
        ("softmax(scaled(q, v), mask), k)", "softmax(scaled(q, v), mask), v)"),
        ("const TOLERANCE = 1e-9", "const TOLERANCE = 1e9"),
        ("!(Math.abs(given", "(Math.abs(given"),
    ],
)  # fmt: skip
def test_one_wrong_operation_is_seen(planted, right, wrong):
    some = EVERYWHERE[::19]
    with pytest.raises(AssertionError):
        compare(planted("doctor", right, wrong, some), some)


def test_what_is_right_is_seen_nowhere():
    right = [values for values in EVERYWHERE if values["mistake"] == NONE]
    assert not any(seen(**values).differs for values in right)


def test_every_mistake_is_the_doctors_and_is_seen_by_a_probe():
    assert set(MISTAKES) - {NONE} <= set(BANK)
    for mistake in MISTAKES[1:]:
        assert any(probes(mistake)), mistake


def test_one_probe_sees_all_and_the_others_are_blind_to_some():
    found = [probes(mistake) for mistake in MISTAKES[1:]]
    saw = {
        title: sum(row[place] for row in found)
        for place, (title, _, _) in enumerate(PROBES)
    }
    best = saw.pop("more queries than keys, causal")
    assert best == len(found) == 15
    assert max(saw.values()) < 15


@pytest.mark.parametrize(
    ("mistake", "blind", "sharp"),
    [
        ("no scale", {"d_k": 1}, {"d_k": 2}),
        ("divided by d", {"d_k": 1}, {"d_k": 3}),
        ("scaled by the width of v", {"d_k": 3, "d_v": 3}, {"d_v": 3}),
        ("scaled by the number of keys", {"n_k": 3, "d_k": 3}, {}),
        ("softmax over queries", {"n_q": 1, "n_k": 1}, {}),
        ("mask after softmax", {"mask": "none"}, {"mask": "padding"}),
        ("first on first", {"mask": "causal"}, {"mask": "causal", "n_q": 2}),
        ("weights returned", {"n_k": 1, "d_k": 1, "d_v": 3}, {}),
        ("empty row gives nan", {"mask": "causal"},
         {"mask": "causal", "n_q": 4}),
    ],
)  # fmt: skip
def test_the_blind_spots_that_the_chapter_names(mistake, blind, sharp):
    one = START | {"mistake": mistake}
    differs = seen(**one | blind).differs
    assert differs == (mistake == "weights returned")
    assert seen(**one | sharp).differs


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    assert_links_bring_back(DoctorLab(), EVERYWHERE[::97])


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("n_q=4&d_v=1", {"n_q": 4, "d_v": 1}, ""),
        ("mistake=typo", {}, "mistake must be one of none"),
        ("mask=window", {}, "mask must be one of none, causal"),
        ("n_k=9", {"n_k": 4}, "n_k must lie between 1 and 4"),
    ],
)
def test_a_bad_link_is_mended_and_said(
    assert_link_is_mended, link, changed, complaint
):
    assert_link_is_mended(DoctorLab(), link, changed, complaint)


def test_a_bad_setting_is_refused_in_python():
    with pytest.raises(SettingError, match=re.escape("n_q must lie between")):
        DoctorLab(n_q=5)
    with pytest.raises(SettingError, match="mistake must be one of"):
        DoctorLab(mistake="typo")


def test_the_repr_is_the_call_that_makes_it():
    assert repr(DoctorLab()) == "DoctorLab()"
    some = DoctorLab(mistake="no scale", n_q=1, mask="causal")
    assert eval(repr(some)).values() == some.values()


def test_the_picture_and_its_words_are_of_this_setting():
    some = DoctorLab()
    assert "6 wrong numbers" in some.describe()
    left, right = some.figure().axes
    numbers = [f"{x:.3f}" for x in some.seen().right.flatten().tolist()]
    assert [text.get_text() for text in left.texts] == numbers
    assert all(text.get_text()[0] == "✗" for text in right.texts)
    raises = DoctorLab(mistake="weights on their side", n_q=2)
    assert "an error" in raises.describe()
    assert raises.figure().axes[1].get_title() == "It raises an error"
    other = DoctorLab(mistake="weights returned", n_k=4)
    assert "the shape (3, 4)" in other.describe()
    assert other.figure().axes[1].get_title() == "Wrong shape"
