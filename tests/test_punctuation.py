"""The extension that keeps a comma with its formula moves no other comma."""

from docutils import nodes
from punctuation import join, touching


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
    for formula in list(paragraph.findall(nodes.math)):
        join(formula, *touching(formula))
    assert paragraph.astext() == "leaks, True of (q, k)."
    spans = [span.astext() for span in paragraph.findall(nodes.inline)]
    assert spans == ["(q,", "k)."]
