"""Keep a comma with the formula or the verdict that it follows.

A browser may break a line between a formula and the next character, whatever
that is, so that a line can begin with a comma; and so after the verdict on a
claim. Here the two share a span that does not break between them
(`.with-punctuation` in custom.css). Some browsers break there all the same if
the formula itself may break: so a short formula may not (`.short`). They break
behind a verdict's badge, too, unless what holds the badge may not break.

They break behind a hyphen as well. A name of which a letter or a number is the
last part, such as top-p or GPT-2, is kept whole (`.with-last-letter`). And a
number stays with its unit.
"""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

AFTER = re.compile(r"-th\b[,.;:!?)\]’”]*|[,.;:!?)\]’”%–]+")
BEFORE = re.compile(r"[(\[“‘]+$")
NAME = re.compile(r"(?<![\w-])[A-Za-z]{2,5}-\w(?![\w-])")
UNIT = re.compile(r"(?<=\d) (?=(?:[KMGT]i?B|kB|[mµn]s|s|[kMG]Hz)(?![\w-]))")
SHORT = 24  # characters of TeX, which no screen is too narrow for,
FEW = 20  # and as many signs: a command is one
COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)|[{}^_ ]")
UNTOUCHED = (nodes.literal, nodes.FixedTextElement, nodes.math, nodes.title)
UNTOUCHED = (*UNTOUCHED, nodes.math_block, nodes.raw, nodes.image)


class KeepPunctuation(SphinxPostTransform):
    """Join each formula and verdict with the punctuation that touches it."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs):
        """Go through one page's formulas and verdicts."""
        for node in list(self.document.findall(is_kept)):
            before, after = touching(node)
            if before or after:
                join(node, before, after)
        for text in list(self.document.findall(nodes.Text)):
            if not is_verbatim(text):
                keep_names(with_units(text))


def is_kept(node):
    """Whether this is a formula, or a claim with its verdict."""
    return isinstance(node, nodes.math) or (
        isinstance(node, nodes.inline) and "claim-mention" in node["classes"]
    )


def is_verbatim(text):
    """Whether a text is code or a title, or no words at all."""
    node = text.parent
    while node and not isinstance(node, UNTOUCHED):
        node = node.parent
    return node is not None


def with_units(text):
    """The same text, in which no line ends between a number and its unit."""
    kept = nodes.Text(UNIT.sub("\N{NO-BREAK SPACE}", text))
    if kept == text:
        return text
    text.parent[[one is text for one in text.parent].index(True)] = kept
    return kept


def keep_names(text):
    """Put each name with a last letter in a span that does not break."""
    parts, end = [], 0
    for name in NAME.finditer(text):
        parts.append(nodes.Text(text[end : name.start()]))
        span = nodes.inline(classes=["with-last-letter"])
        span += nodes.Text(name[0])
        parts.append(span)
        end = name.end()
    if parts:
        parts.append(nodes.Text(text[end:]))
        text.parent.replace(text, [part for part in parts if part.astext()])


def is_short(tex):
    """Whether a formula has a place on the narrowest screen."""
    signs = COMMAND.sub(lambda part: part[0][:1].strip("{}^_ "), tex)
    return len(tex) <= SHORT or len(signs) <= FEW


def is_verdict(node):
    """Whether this is the badge of a verdict."""
    return isinstance(node, nodes.inline) and "verdict" in node["classes"]


def touching(node):
    """The punctuation just before and just after a formula or verdict."""
    place = node.parent.index(node)
    left = node.parent[place - 1] if place else None
    right = next(iter(node.parent[place + 1 : place + 2]), None)
    before = isinstance(left, nodes.Text) and BEFORE.search(left)
    after = isinstance(right, nodes.Text) and AFTER.match(right)
    return before[0] if before else "", after[0] if after else ""


def join(node, before, after):
    """Put the formula or verdict and its punctuation into one span.

    Neighbours are found by their places: two texts that read the same are
    equal, so that one would be taken for the other.
    """
    parent, place = node.parent, node.parent.index(node)
    span = nodes.inline("", "", classes=["with-punctuation"])
    if isinstance(node, nodes.math) and is_short(node.astext()):
        span["classes"].append("short")
    for verdict in list(node.findall(is_verdict)):
        verdict.parent.replace(
            verdict, badge := nodes.inline(classes=["badge-only"])
        )
        badge += verdict
    parent[place] = span
    span += [nodes.Text(before), node, nodes.Text(after)]
    if after:
        parent[place + 1] = nodes.Text(parent[place + 1][len(after) :])
    if before:
        parent[place - 1] = nodes.Text(parent[place - 1][: -len(before)])


def setup(app):
    """Register the transform."""
    app.add_post_transform(KeepPunctuation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
