"""The extension that keeps a comma with its formula moves no other comma."""

from docutils import nodes
from punctuation import (
    is_kept,
    is_short,
    is_verbatim,
    join,
    keep_names,
    touching,
    with_units,
)


def test_a_comma_goes_with_its_formula_and_equal_ones_stay_where_they_are():
    paragraph = nodes.paragraph(
        "",
        "",
        nodes.literal("", "leaks"),
        nodes.Text(", "),
        nodes.literal("", "True"),
        nodes.Text(" of ("),
        nodes.math("", "q"),
        nodes.Text(", "),
        nodes.math("", "k"),
        nodes.Text(")."),
    )
    for formula in list(paragraph.findall(is_kept)):
        join(formula, *touching(formula))
    assert paragraph.astext() == "leaks, True of (q, k)."
    spans = [span.astext() for span in paragraph.findall(nodes.inline)]
    assert spans == ["(q,", "k)."]


def test_an_ordinal_goes_with_its_formula():
    paragraph = nodes.paragraph(
        "", "", nodes.math("", "p"), nodes.Text("-th.")
    )
    (formula,) = paragraph.findall(is_kept)
    join(formula, *touching(formula))
    assert paragraph[0].astext() == "p-th."


def test_a_name_keeps_its_last_letter_and_other_words_break():
    said = (
        "Top-p, top-k and GPT-2; a beam-search, ready-to-go, e-3, all-to-all"
    )
    code = nodes.literal("", "", nodes.Text("top-p"))
    paragraph = nodes.paragraph("", "", nodes.Text(said), code)
    for text in list(paragraph.findall(nodes.Text)):
        if not is_verbatim(text):
            keep_names(text)
    assert paragraph.astext() == said + "top-p"
    kept = [span.astext() for span in paragraph.findall(nodes.inline)]
    assert kept == ["Top-p", "top-k", "GPT-2"]
    assert code.astext() == "top-p"


def test_a_comma_goes_with_the_verdict_before_it():
    claim = nodes.inline("", "leaks wrong", classes=["claim-mention"])
    paragraph = nodes.paragraph("", "", claim, nodes.Text(", alas"))
    (kept,) = paragraph.findall(is_kept)
    join(kept, *touching(kept))
    assert paragraph.astext() == "leaks wrong, alas"
    assert paragraph[0].astext() == "leaks wrong,"
    assert "short" not in paragraph[0]["classes"]


def test_the_badge_of_a_verdict_is_held_by_what_may_not_break():
    badge = nodes.inline("", "wrong", classes=["verdict", "verdict-wrong"])
    link = nodes.reference("", "leaks ", badge)
    claim = nodes.inline("", "", link, classes=["claim-mention"])
    paragraph = nodes.paragraph("", "", claim, nodes.Text(", alas"))
    join(claim, *touching(claim))
    assert paragraph.astext() == "leaks wrong, alas"
    assert badge.parent["classes"] == ["badge-only"]
    assert badge.parent.parent is link


def test_a_formula_is_short_by_its_signs_and_not_by_its_commands():
    assert is_short(r"\kappa(q, k) = e^{q \cdot k / \sqrt{d}}")
    assert is_short(r"y = \sum_h \mathrm{head}_h W_o^{(h)}")
    assert not is_short("(a, b) + (c, d) + (e, f) = (g, h)")


def test_a_number_stays_with_its_unit():
    """16 stood at the end of a line, and GiB in the next."""
    said = "It takes 16 GiB in 3 ms; 5 sentences, in 2 blocks of 4 kB."
    paragraph = nodes.paragraph("", said, nodes.Text(said))
    text = with_units(paragraph[0])
    assert text is paragraph[0] and with_units(text) is text
    assert text.split(" ")[2:6] == ["16\xa0GiB", "in", "3\xa0ms;", "5"]
    assert text.endswith("4\xa0kB.") and text.replace("\xa0", " ") == said
