"""The lab on the next letter: its numbers are those of the package."""

import itertools
import random
import re

import pytest
import torch
from page_numbers import compare_each

from selfattn.data.language import CHARACTERS
from selfattn.labs.machinery.settings import SettingError
from selfattn.labs.models import N_LETTERS, STARTS, ModelsLab, all_scores

START = ModelsLab().values()
# float64 carries 2.2e-16; a softmax of 22 and a sum of them lose little.
CLOSE = 1e-13


def some_settings():
    """The corners, every value by itself, and many at random."""
    corners = itertools.product(STARTS, (0.1, 1.0, 3.0), (1, 5, 22), (0.05, 1))
    names = ("start", "temperature", "top_k", "top_p")
    yield from (dict(zip(names, row, strict=True)) for row in corners)
    yield from (START | {"temperature": i / 10} for i in range(1, 31))
    yield from (START | {"top_k": k} for k in range(1, N_LETTERS + 1))
    yield from (START | {"top_p": i / 20} for i in range(1, 21))
    chance = random.Random(0)
    for _ in range(1000):
        yield {
            "start": chance.choice(STARTS),
            "temperature": chance.randint(1, 30) / 10,
            "top_k": chance.randint(1, N_LETTERS),
            "top_p": chance.randint(1, 20) / 20,
        }


def compare(theirs, values):
    """Raise AssertionError unless the page shows what the package has."""
    ours = ModelsLab(**values).seen()
    assert theirs["before"] == pytest.approx(ours.before, abs=CLOSE)
    assert theirs["chances"] == pytest.approx(ours.chances, abs=CLOSE)
    assert theirs["kept"] == ours.kept == sum(theirs["left"])
    assert theirs["lost"] == pytest.approx(ours.lost, abs=CLOSE)
    near = pytest.approx(ours.perplexity, abs=1e-10)
    assert theirs["perplexity"] == near


def test_the_page_computes_as_the_package(in_node, unopened):
    many = list(some_settings())
    calls = [["compute", values] for values in many]
    compare_each(compare, in_node("models", calls), many)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("score / temperature", "score * temperature"),
        ("score >= last", "score > last"),
        ("left[i] = before < p", "left[i] = before + chances[i] <= p"),
        ("scores[b] - scores[a] || a - b", "scores[a] - scores[b]"),
        ("maskedSoftmax(tempered, left)", "maskedSoftmax(scores, left)"),
        ("left[i] ? 0 : p", "left[i] ? p : 0"),
    ],
)
def test_a_planted_mistake_is_seen(planted, right, wrong):
    sample = random.Random(0).sample(list(some_settings()), 80)
    theirs = planted("models", right, wrong, sample)
    with pytest.raises(AssertionError):
        compare_each(compare, theirs, sample)


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    chance = random.Random(1)
    many = chance.sample(list(some_settings()), 200)
    assert_links_bring_back(ModelsLab(), many)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"temperature": 0.0}, "temperature must lie between 0.1 and 3.0"),
        ({"top_k": 0}, "top_k must lie between 1 and 22"),
        ({"top_p": 1.05}, "top_p must lie between 0.05 and 1.0"),
        ({"start": "the z"}, "start must be one of 'the ', 'the c'"),
    ],
)
def test_a_bad_setting_is_refused_in_python(start, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        ModelsLab(**start)


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("top_k=3", {"top_k": 3}, ""),
        ("top_k=99", {"top_k": 22}, "22"),
    ],
)
def test_a_bad_link_is_mended_and_said(
    assert_link_is_mended, link, changed, complaint
):
    assert_link_is_mended(ModelsLab(), link, changed, complaint)


def test_each_beginning_has_a_score_for_each_letter():
    table = all_scores()
    assert list(table) == STARTS
    assert {len(row) for row in table.values()} == {N_LETTERS}


def test_the_model_is_sure_within_a_word_and_not_between():
    within, between = (
        ModelsLab(start=start).seen() for start in ("the c", "the cat ")
    )
    assert CHARACTERS[within.before.index(max(within.before))] == "a"
    assert within.perplexity < 1.2 < 3 < between.perplexity


def test_one_letter_is_left_of_top_1_and_of_a_cold_model():
    for cold in (ModelsLab(top_k=1), ModelsLab(top_p=0.05)):
        assert cold.seen().kept == 1
        assert max(cold.seen().chances) == 1.0
    assert ModelsLab(temperature=0.1).seen().perplexity < 1.5


def test_the_still_picture_has_a_bar_for_each_letter():
    lab = ModelsLab(top_k=4, temperature=1.5)
    (ax,) = lab.figure().axes
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == pytest.approx(lab.seen().chances)
    (own,) = ax.lines
    assert torch.tensor(own.get_ydata().tolist()).sum() == pytest.approx(1)
    assert "4 are left" in lab.describe()


def test_a_low_temperature_is_near_greedy_and_not_greedy():
    """The lab's answer said that a low temperature comes to the same as one
    letter kept. After "the cat ", at its lowest, one letter in twelve is
    another.
    """
    lowest = ModelsLab(start="the cat ", temperature=0.1).seen()
    assert 0.05 < sorted(lowest.chances)[-2] < 0.1
    for one in ({"top_k": 1}, {"top_p": 0.05}):
        assert ModelsLab(start="the cat ", **one).seen().perplexity == 1
