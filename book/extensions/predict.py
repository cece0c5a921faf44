"""A question that asks for a prediction, and its answer folded up.

In a notebook a question stands in a quotation that begins with **Predict.**,
and its answer follows: a cell with an output, and a paragraph or a list, or a
paragraph alone; and the list that a paragraph ends by announcing. On the page
it is folded, so that it is not in sight; ``predict.js`` puts a place for the
reader's guess above it, and keeps the guess beside what came out.
"""

import re
from collections.abc import Iterator
from itertools import takewhile

from docutils import nodes
from sphinx.application import Sphinx

MARK = "Predict."
CAPTION = "What to see"
NUMBER = re.compile(
    r"^(?:In )?(?:how (?:many|far|much|large|long)|what share|at which width"
    r"|for what)\b",
    re.IGNORECASE,
)
YES_OR_NO = re.compile(
    r"^(?:[^?]*: )?(?:is|are|was|were|does|do|did|can|will|must|has|have)\b"
    r"(?!.* or )",
    re.IGNORECASE,
)
SKETCH = re.compile(
    r"\b(?:Draw|Sketch) the curve\b"
    r"(?: of (?:the )?([\w ]+) against (?:the )?([^.?]+))?"
)
OPTIONS = re.compile(r": ((?:[^,:?]{1,20}, )+)or ([^,:?]{1,20})\?$")


class Folded(nodes.General, nodes.Element):
    """An answer, out of sight until it is asked for."""


def open_fold(writer, node: Folded) -> None:
    """The fold, with what ``predict.js`` must know of the question."""
    options = "|".join(node["options"])
    writer.body.append(
        f'<details class="predicted" data-kind="{node["kind"]}"'
        f' data-options="{options}"><summary>Reveal</summary>\n'
    )


def close_fold(writer, node: Folded) -> None:
    """The end of the fold."""
    writer.body.append("</details>\n")


def kind_of(question: str) -> tuple[str, list[str]]:
    """What sort of answer a question wants, and its options, if it has any.

    A curve's are the names of its axes: what is drawn, and against what.

    >>> kind_of("It ran once. How many tables does it hold?")
    ('number', [])
    >>> kind_of("How many does it accept: a few, half, or all?")
    ('choice', ['a few', 'half', 'all'])
    >>> kind_of("Draw the curve of the cost against the stride, from 1 to 9.")
    ('sketch', ['cost', 'stride, from 1 to 9'])
    >>> kind_of("Somebody has written it. Does the trip fail?")
    ('choice', ['yes', 'no'])
    """
    if found := SKETCH.search(question):
        return "sketch", [axis for axis in found.groups() if axis]
    if found := OPTIONS.search(question):
        return "choice", [*found[1].rstrip(", ").split(", "), found[2]]
    sentences = re.split(r"(?<=[.?!]) (?=[A-Z(])", question)
    asked = [text for text in sentences if text.endswith("?")]
    if len(asked) == 1 and YES_OR_NO.match(asked[0]):
        return "choice", ["yes", "no"]
    if len(asked) == 1 and NUMBER.match(asked[0]):
        return "number", []
    return "words", []


def fold_answers(app: Sphinx, document: nodes.document, name: str) -> None:
    """Fold up what follows each question."""
    for quote in list(document.findall(nodes.block_quote)):
        if not quote.astext().lstrip().startswith(MARK):
            continue
        if not (answer := list(answer_of(quote))):
            continue
        question = " ".join(quote.astext().split())
        kind, options = kind_of(question.removeprefix(MARK).strip())
        fold = Folded(kind=kind, options=options)
        quote["classes"].append("predict")
        quote.parent.insert(quote.parent.index(quote) + 1, fold)
        for node in answer:
            node.parent.remove(node)
            fold += node


def answer_of(quote: nodes.block_quote) -> Iterator[nodes.Node]:
    """Up to the first cell that shows something, and what is said after.

    Where no cell shows anything, as one that only asserts, up to the first
    paragraph.
    """
    place = quote.parent.index(quote) + 1
    ends = (nodes.section, nodes.block_quote)
    following = list(
        takewhile(
            lambda node: not isinstance(node, ends),
            quote.parent.children[place:],
        )
    )
    shown = [place for place, node in enumerate(following) if shows(node)]
    if not shown:
        kinds = [isinstance(node, nodes.paragraph) for node in following]
        yield from following[: kinds.index(True) + 1 if any(kinds) else 0]
        return
    last = shown[0]
    while last + 1 < len(following) and shows(following[last + 1]):
        last += 1
    yield from following[: last + 1]
    yield from said(following[last + 1 :])


def said(after: list[nodes.Node]) -> list[nodes.Node]:
    """What is said of an output: a paragraph, with its list, or a list.

    What there is to see in a picture, and the same in numbers, goes before.
    """
    lists = (nodes.bullet_list, nodes.enumerated_list)
    seen = bool(after) and after[0].astext().startswith(CAPTION)
    if seen and len(after) > 1 and shows(after[1]):
        return [*after[:2], *said(after[2:])]
    if after and isinstance(after[0], lists):
        return after[:1]
    if not after or not isinstance(after[0], nodes.paragraph):
        return []
    told = after[0].astext().endswith(":") and len(after) > 1
    return after[: 2 if told and isinstance(after[1], lists) else 1]


def shows(node: nodes.Node) -> bool:
    """Whether it is a cell with an output."""
    return isinstance(node, nodes.container) and any(
        "cell_output" in part.get("classes", [])
        for part in node.findall(nodes.container)
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the fold and the hook."""
    app.add_node(Folded, html=(open_fold, close_fold))
    app.connect("doctree-resolved", fold_answers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
