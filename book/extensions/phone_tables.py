"""Tables whose words do not fit beside each other on a phone.

A phone shows some forty letters in a line. A table that needs more, even with
one word in a line, gets the class ``stacked``: there its rows are paragraphs,
and each cell says the head of its column (custom.css). A name in code may
go on in the next line, there, where one would part it: ``causal_`` | ``mask``;
and so may one in a sentence that is longer than a phone's line. A short one,
such as ``d_model / 64``, stays on one line (``one-line``).
"""

import math
import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

LETTERS = 36  # of a table's, in 302 pixels
LINE = 24  # letters of code that a phone's line holds, within a fold as well
SHORT = 14  # letters of code in a sentence that no line's end parts
BETWEEN = 1  # two columns keep so many apart
CODE = 1.15  # how wide a letter of code is, beside one of the text
WORDS = re.compile(r"[\s/-]+")
PARTS = re.compile(r"(?<=[_./(=,])(?=[^\W_])|(?<=[a-z])(?=[A-Z])")


class StackOnPhones(SphinxPostTransform):
    """Give the class to the tables that need it."""

    default_priority = 899
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Go through one page's tables."""
        for table in self.document.findall(nodes.table):
            if next(table.findall(nodes.thead), None) and is_wide(table):
                table["classes"].append("stacked")
        for name in list(self.document.findall(is_shown)):
            if in_table(name) or len(name.astext()) > LINE:
                part(name)
            elif len(name.astext()) <= SHORT:
                name["classes"].append("one-line")


def is_wide(table: nodes.table) -> bool:
    """Whether its columns' longest words do not fit into a phone's line."""
    rows = [row.children for row in table.findall(nodes.row)]
    columns = zip(*rows, strict=False)
    needed = [max(map(longest, column)) + BETWEEN for column in columns]
    return sum(needed) > LETTERS


def longest(cell: nodes.Node) -> int:
    """The letters of a cell's longest word."""
    words = [
        math.ceil(CODE * len(piece)) if held_as_code(text) else len(piece)
        for text in cell.findall(nodes.Text)
        for word in WORDS.split(text.astext())
        for piece in (PARTS.split(word) if held_as_code(text) else [word])
        if not isinstance(text.parent, nodes.math)
    ]
    formulas = [
        len(re.sub(r"\\[a-z]+|[{}^_$ ]", "", formula.astext()))
        for formula in cell.findall(nodes.math)
    ]
    return max([*words, *formulas, 0])


def held_as_code(text: nodes.Text) -> bool:
    """Whether a text is code, whose names have parts."""
    return isinstance(text.parent, nodes.literal)


def is_shown(node: nodes.Node) -> bool:
    """Whether a node is code, and not the hidden name of a claim's test."""
    if not isinstance(node, nodes.literal):
        return False
    return "claim-test" not in node.parent["classes"]


def in_table(node: nodes.Node | None) -> bool:
    """Whether a node stands in a table."""
    while node and not isinstance(node, nodes.table):
        node = node.parent
    return node is not None


def part(name: nodes.literal) -> None:
    """Let a line end, on a phone, between two parts of a name."""
    for text in list(name.findall(nodes.Text)):
        first, *others = PARTS.split(text.astext())
        parts: list[nodes.Node] = [nodes.Text(first)]
        for other in others:
            parts += [nodes.raw("", "<wbr>", format="html"), nodes.Text(other)]
        text.parent.replace(text, parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(StackOnPhones)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
