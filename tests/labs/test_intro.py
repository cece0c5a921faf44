"""The lab of the first page computes what the package computes."""

import itertools
import re
import string

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from page_numbers import assert_close

from selfattn.labs.intro import (
    EDGE,
    LONGEST,
    STILL,
    IntroLab,
    letter_arrow,
    steps,
    vectors,
    word_arrow,
)
from selfattn.labs.machinery.settings import SettingError

START = IntroLab().values()
SENTENCES = ["cat", "a b", "listen to silent", "the cat sat on the mat"]
SENTENCES += ["eight words are the most that it takes"]


def compare(in_node, many):
    """Raise AssertionError unless the page computes as the package."""
    calls = [["compute", values] for values in many]
    for values, theirs in zip(many, in_node("intro", calls), strict=True):
        ours = steps(**values)
        q, k, v = vectors(values["words"], values["q"], values["k"])
        assert [theirs["q"], theirs["k"], theirs["v"]] == [q, k, v]
        size = torch.full_like(ours.scores, 2 * EDGE**2)
        assert_close(theirs["scores"], ours.scores, size)
        assert_close(theirs["scaled"], ours.scaled, size)
        assert_close(theirs["weights"], ours.weights, ours.weights)
        assert_close(
            theirs["output"], ours.output, EDGE * ours.weights.sum(-1)[:, None]
        )


def every_setting():
    """Every length, who asks, and the switch."""
    for words, causal in itertools.product(SENTENCES, [False, True]):
        for asks in range(len(words.split())):
            yield START | {"words": words, "asks": asks, "causal": causal}


@st.composite
def any_values(draw):
    """Any words, of any alphabet, dragged as far as a link can say."""
    word = st.text(min_size=1, max_size=12).filter(lambda w: w.split() == [w])
    words = draw(st.lists(word, min_size=1, max_size=8))
    far = st.integers(-60, 60).map(lambda tenths: tenths / 10)
    points = st.lists(st.tuples(far, far).map(list), min_size=8, max_size=8)
    return {
        "words": " ".join(words),
        "asks": draw(st.integers(0, len(words) - 1)),
        "causal": draw(st.booleans()),
        "q": draw(points),
        "k": draw(points),
    }


@settings(max_examples=6, deadline=None)
@given(st.lists(any_values(), min_size=40, max_size=60))
def test_it_computes_as_the_package(in_node, many):
    compare(in_node, [*every_setting(), *many])


@settings(max_examples=4, deadline=None)
@given(st.lists(any_values(), min_size=20, max_size=30))
def test_a_link_brings_every_setting_back(assert_links_bring_back, many):
    plain = [
        values
        for values in many
        if re.search(r"[\s\W]", values["words"].replace(" ", "")) is None
    ]
    assert_links_bring_back(IntroLab(), [*every_setting(), *plain])


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("words=a+b&asks=1", {"words": "a b", "asks": 1}, ""),
        ("words=a+b&asks=2", {"words": "a b", "asks": 1}, "between 0 and 1"),
        ("words=", {}, "words must be one to 8 words"),
        ("words=+a++b+", {"words": "a b", "asks": 1}, "words must be"),
        (
            "words=" + "+".join("abcdefghij"),
            {"words": "a b c d e f g h"},
            "words must be one to 8 words of at most 12 characters",
        ),
        ("words=" + 20 * "x", {"words": 12 * "x", "asks": 0}, "12 characters"),
    ],
)
def test_a_bad_link_is_mended_and_said(
    assert_link_is_mended, link, changed, complaint
):
    assert_link_is_mended(IntroLab(), link, changed, complaint)


@pytest.mark.parametrize("words", ["", " ", "a  b", "a " * 8 + "a", 13 * "x"])
def test_words_that_are_none_are_refused_in_python(words):
    with pytest.raises(SettingError, match="words must be one to 8 words"):
        IntroLab(words=words)


def test_fewer_words_take_who_asks_along():
    lab = IntroLab(words="one two three", asks=2)
    lab.words = "one two"
    assert lab.asks == 1


def test_a_word_is_the_sum_of_its_letters_and_no_longer_for_being_long():
    c, a, t = (torch.tensor(letter_arrow(letter)) for letter in "cat")
    exact = (c + a + t) / 3**0.5
    assert (torch.tensor(word_arrow("cat")) - exact).abs().max() <= 0.05001
    assert word_arrow("CAT") == word_arrow("act") == word_arrow("cat")
    lengths = torch.tensor([letter_arrow(x) for x in string.ascii_lowercase])
    assert (lengths.norm(dim=1) - LONGEST).abs().max() < 0.08  # two tenths


def test_a_key_is_the_word_turned_by_a_quarter():
    q, k, v = (torch.tensor(x) for x in vectors("the cat sat", STILL, STILL))
    assert torch.equal(q, v)
    assert (q * k).sum(-1).abs().max() == 0  # nobody listens to itself
    assert torch.equal(k.abs().flip(-1), q.abs())


def test_the_start_is_what_its_picture_says():
    lab = IntroLab()
    weights = lab.steps().weights[lab.asks].tolist()
    assert max(weights) == weights[1] == pytest.approx(0.77, abs=0.005)
    assert "“sat”" in lab.describe() and "cat 0.77" in lab.describe()
    lines, look, mix = lab.figure().axes
    drawn = [line.get_linewidth() / 8 for line in lines.lines]
    assert drawn == pytest.approx(weights)
    assert look.lines[-len(weights) - 1].get_xydata().tolist() == [
        word_arrow("sat")
    ]
    assert mix.lines[-1].get_xydata()[0] == pytest.approx(
        lab.steps().output[lab.asks]
    )
