"""A displayed formula is in parts where one would go on in a new line."""

import re

import pytest
from displayed import SHOWN, taken_apart, with_parts
from formulas import BASE, opened

HEAD = (
    '<span class="katex-display"><span class="katex">'
    '<span class="katex-mathml"><math></math></span>'
    '<span class="katex-html" aria-hidden="true">'
)
STRUT = '<span class="strut" style="height:1em;"></span>'
KINDS = {"(": "mopen", ")": "mclose", "))": "mclose", "=": "mrel"}
TAG = re.compile("<[^>]*>")


def sign(text):
    """As KaTeX writes it; a number is a space of so many em."""
    if isinstance(text, float):
        return f'<span class="mspace" style="margin-right:{text}em;"></span>'
    return f'<span class="{KINDS.get(text, "mord")}">{text}</span>'


def base(*signs):
    return f"{BASE}{STRUT}{''.join(map(sign, signs))}</span>"


def parts(*bases):
    """What is in each piece of each part."""
    html = taken_apart("".join(bases))
    return [
        [TAG.sub("", piece).strip() for piece in part.split(BASE)[1:]]
        for part in html.split('<span class="formula-part">')[1:]
    ]


def test_two_equations_are_two_parts():
    found = parts(base("a", "=", 0.2), base("b", ",", 2.0, 0.1, "c"))
    assert found == [["a", "=b,"], ["c"]]


def test_their_distance_stays():
    """The space goes at the end of a line, and is as wide as it was."""
    html = taken_apart(base("a", 2.0, 0.25, "b"))
    assert 'style="word-spacing:2em"> </span>' in html


@pytest.mark.parametrize("closed", [[")", ")"], ["))"]])
def test_within_brackets_no_piece_begins(closed):
    signs = ["(", "a", "(", "b", "=", "c", *closed, "=", "d"]
    assert parts(base(*signs)) == [["(a(b=c))", "=d"]]


def test_a_relation_of_two_signs_is_whole():
    assert parts(base("a", "=", "=", "b")) == [["a", "==b"]]


def test_a_space_at_the_end_makes_no_part():
    assert parts(base("a", 2.0)) == [["a"]]


def test_every_piece_is_as_high_as_its_line():
    html = taken_apart(base("a", "=") + base("b"))
    assert html.count(STRUT) == html.count(BASE) == 2


def test_what_stands_around_a_formula_stays():
    html = f"<p>{HEAD}{base('a')}</span></span></span> and so on"
    assert SHOWN.search(html)
    assert TAG.sub("", "".join(with_parts(html))) == "a and so on"


def test_two_brackets_that_are_written_as_one_are_two():
    assert opened(sign("(") * 2) == 2
    assert opened(sign("))")) == -2
