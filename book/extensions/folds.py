"""What a first reading leaves out, folded: one line until it is opened.

Six things fold by themselves, and stay plain in Jupyter: a box, or a table,
that begins with "Claims settled"; a section whose title ends in "(second
reading)"; an admonition of a class in `FOLDED`; what a section with the
title "Solution" says, between its cells, which have folds of their own;
what the cell of an exercise "Fix: ..." prints, which is the remedy; and the
first cells of a page, as long as they import or seed, and print nothing.
"""

import re
from itertools import groupby, takewhile

from docutils import nodes
from first_reading import BEGINS
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

SETTLED = re.compile(r"Claims? settled")
SECOND = re.compile(r"\s*\(second reading\)$")
FIX = "Fix: "
FOLDED = {"second-reading", "answer"}


class fold(nodes.General, nodes.Element):  # noqa: N801, as docutils names them
    """A `<details>`: its ``line`` is seen, its children when it is open."""


def visit_fold(self, node: fold) -> None:
    """Open it, with its line."""
    line = self.encode(node["line"])
    self.body.append(self.starttag(node, "details", ""))
    self.body.append(f"<summary>{line}</summary>\n")


def depart_fold(self, node: fold) -> None:
    """Close it."""
    self.body.append("</details>\n")


class Folds(SphinxPostTransform):
    """Fold boxes of claims, second readings and answers in one page."""

    default_priority = 20  # after the badges, at 8, which are counted here

    def run(self, **kwargs: object) -> None:
        """Fold from the inside out, so that a fold may be within another."""
        for paragraph in list(self.document.findall(nodes.paragraph)):
            if begins_with_claims(paragraph):
                fold_claims(paragraph)
        for box in list(self.document.findall(nodes.admonition)):
            if FOLDED & set(box["classes"]):
                fold_box(box)
        for section in list(self.document.findall(nodes.section)):
            if SECOND.search(section[0].astext()):
                fold_section(section)
            if section[0].astext() == "Solution":
                fold_solution(section)
            if section[0].astext().startswith(FIX):
                fold_remedy(section)
        fold_imports(self.document)


def begins_with_claims(paragraph: nodes.paragraph) -> bool:
    """Whether a paragraph opens a box or a table of settled claims."""
    first = next((part for part in paragraph if part.astext()), None)
    return isinstance(first, nodes.strong) and bool(
        SETTLED.match(first.astext())
    )


def fold_claims(paragraph: nodes.paragraph) -> None:
    """Fold the quotation around a paragraph, or it and the table after it."""
    parent, place = paragraph.parent, paragraph.parent.index(paragraph)
    if isinstance(parent, nodes.block_quote):
        inside = parent.children
        parent, place, many = parent.parent, parent.parent.index(parent), 1
    else:
        following = next(iter(parent[place + 1 : place + 2]), None)
        many = 2 if isinstance(following, nodes.table) else 1
        inside = parent[place : place + many]
    folded = fold("", *inside, classes=["claims-box"])
    folded["line"] = how_many(folded)
    parent[place : place + many] = [folded]


def how_many(folded: fold) -> str:
    """The line over a box: how many claims are in it."""
    claims = {
        link["refuri"]
        for link in folded.findall(nodes.reference)
        if "claim" in link["classes"]
    }
    many = "1 claim" if len(claims) == 1 else f"{len(claims)} claims"
    return f"{many} of introductions settled here"


def fold_box(box: nodes.admonition) -> None:
    """Fold an admonition under its title."""
    title, *inside = box.children
    kept = [name for name in box["classes"] if name in FOLDED]
    folded = fold("", *inside, classes=kept, line=title.astext())
    box.replace_self(folded)


def fold_section(section: nodes.section) -> None:
    """Fold all of a section but its title."""
    title, *inside = section.children
    last = title[-1]
    if isinstance(last, nodes.Text):
        title[-1] = nodes.Text(SECOND.sub("", last))
    section["classes"].append("on-second-reading")
    folded = fold("", *inside, classes=["second-reading"])
    folded["line"] = "Second reading"
    section[1:] = [folded]


def fold_solution(section: nodes.section) -> None:
    """Fold what a solution says, each run of it between two cells."""
    title, *inside = section.children
    section[:] = [title]
    for said, found in groupby(inside, is_said):
        parts = list(found)
        if said:
            parts = [fold("", *parts, classes=["answer"], line="Answer")]
        section.extend(parts)


def fold_remedy(section: nodes.section) -> None:
    """Fold what is said of the code that is to be mended."""
    for cell in section.children:
        outputs = cell.children if isinstance(cell, nodes.container) else ()
        for place, part in enumerate(outputs):
            if "cell_output" in part.get("classes", ()):
                folded = fold("", part, classes=["hide", "remedy"])
                folded["line"] = "Show what is wrong with it"
                cell[place] = folded


def fold_imports(document: nodes.document) -> None:
    """Fold the cells with which a page begins, one after the other."""
    first = next(document.findall(is_cell), None)
    if first is None or not begins(first):
        return
    parent, place = first.parent, first.parent.index(first)
    cells = [*takewhile(begins, parent[place:])]
    folded = fold("", *cells, classes=["hide", "imports"])
    folded["line"] = "Imports and settings"
    parent[place : place + len(cells)] = [folded]


def is_cell(node: nodes.Node) -> bool:
    """Whether it is a cell of code with its outputs."""
    return isinstance(node, nodes.container) and "cell" in node["classes"]


def begins(node: nodes.Node) -> bool:
    """Whether it is a cell that imports or seeds, and prints nothing."""
    hidden = {"tag_hide-cell", "tag_hide-input"}
    return (
        is_cell(node)
        and not hidden & set(node["classes"])
        and len(node.children) == 1
        and bool(BEGINS.match(node.astext()))
    )


def is_said(node: nodes.Node) -> bool:
    """Whether it is neither a cell nor a fold nor a part of its own."""
    apart = (fold, nodes.admonition, nodes.container, nodes.section)
    return not isinstance(node, (*apart, nodes.Invisible))


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about folds."""
    app.add_node(fold, html=(visit_fold, depart_fold))
    app.add_post_transform(Folds)
    app.add_css_file("folds.css")
    # First, for others fold by it.
    app.add_js_file("phone-folds.js", loading_method="defer", priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
