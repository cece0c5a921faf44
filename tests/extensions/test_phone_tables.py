"""Which tables a phone shows row by row."""

import pytest
from docutils import nodes
from docutils.utils import new_document
from phone_tables import LETTERS, StackOnPhones, is_shown, is_wide, part


def table(*rows):
    """A table of cells, each a list of nodes or a text."""
    body = nodes.tbody()
    for row in rows:
        cells = [
            cell if isinstance(cell, nodes.Node) else nodes.Text(cell)
            for cell in row
        ]
        body += nodes.row("", *(nodes.entry("", cell) for cell in cells))
    return nodes.table("", nodes.tgroup("", body))


LONG = "x" * (LETTERS - 5)


@pytest.mark.parametrize(
    ("row", "wide"),
    [
        ((LONG, "xx"), False),
        ((LONG, "xxxxxx"), True),
        ((LONG, "a b c d e f"), False),  # words go on in the next line
        ((nodes.literal("", "x" * 6 + "_x" * 9), "x" * 20), False),  # parts
        ((nodes.literal("", LONG), "x" * 20), True),  # a name without any
        ((nodes.math("", "x" * 20), nodes.math("", "x" * 20)), True),
        ((nodes.math("", r"\operatorname{x}" * 9), "x"), False),
    ],
)
def test_the_longest_words_of_its_columns_must_fit(row, wide):
    assert is_wide(table(["a", "b"], row)) is wide


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("causal_mask", "causal_|mask"),
        ("MultiHeadAttention", "Multi|Head|Attention"),
        ("torch.nn(x, dim=-1)", "torch.|nn(|x, dim=-1)"),
        ("__init__", "__|init__"),
        ("_", "_"),
    ],
)
def test_a_name_goes_on_between_its_parts(name, parts):
    """A reader saw ``causal_ma`` and ``sk`` in two lines."""
    literal = nodes.literal("", name)
    part(literal)
    breaks = {"<wbr>": "|"}
    shown = [breaks.get(child.astext(), child.astext()) for child in literal]
    assert "".join(shown) == parts


def test_the_hidden_name_of_a_claims_test_is_left_whole():
    """It is there for screen readers, which would spell its parts."""
    hidden = nodes.inline("", "", literal := nodes.literal("", "a_b"))
    assert is_shown(literal)
    hidden["classes"].append("claim-test")
    assert not is_shown(literal)


@pytest.mark.parametrize(
    ("code", "whole"),
    [("d_model / 64", True), ("q @ k.mT / d_k**0.5", False)],
)
def test_short_code_in_a_sentence_is_on_one_line(code, whole):
    """A line ended behind ``d_model /``."""
    document = new_document("a page")
    document += nodes.paragraph("", "", literal := nodes.literal("", code))
    StackOnPhones(document).run()
    assert ("one-line" in literal["classes"]) is whole
