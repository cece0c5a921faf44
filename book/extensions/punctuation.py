"""Keep a comma with the formula that it follows.

A browser may break a line between a formula and the next character, whatever
that is, so that a line can begin with a comma. Here the two share a span
that does not break between them (`.with-punctuation` in custom.css). Some
browsers break there all the same if the formula itself may break: so a short
formula may not (`.short`).
"""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

AFTER = re.compile(r"[,.;:!?)\]’”%–]+")
BEFORE = re.compile(r"[(\[“‘]+$")
SHORT = 24  # characters of TeX, which no screen is too narrow for


class KeepPunctuation(SphinxPostTransform):
    """Join each inline formula with the punctuation that touches it."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs):
        """Go through one page's formulas."""
        for formula in list(self.document.findall(nodes.math)):
            before, after = touching(formula)
            if before or after:
                join(formula, before, after)


def touching(formula):
    """The punctuation just before and just after a formula."""
    place = formula.parent.index(formula)
    left = formula.parent[place - 1] if place else None
    right = next(iter(formula.parent[place + 1 : place + 2]), None)
    before = isinstance(left, nodes.Text) and BEFORE.search(left)
    after = isinstance(right, nodes.Text) and AFTER.match(right)
    return before[0] if before else "", after[0] if after else ""


def join(formula, before, after):
    """Put the formula and its punctuation into one span.

    Neighbours are found by their places: two texts that read the same are
    equal, so that one would be taken for the other.
    """
    parent, place = formula.parent, formula.parent.index(formula)
    span = nodes.inline("", "", classes=["with-punctuation"])
    if len(formula.astext()) <= SHORT:
        span["classes"].append("short")
    parent[place] = span
    span += [nodes.Text(before), formula, nodes.Text(after)]
    if after:
        parent[place + 1] = nodes.Text(parent[place + 1][len(after) :])
    if before:
        parent[place - 1] = nodes.Text(parent[place - 1][: -len(before)])


def setup(app):
    """Register the transform."""
    app.add_post_transform(KeepPunctuation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
