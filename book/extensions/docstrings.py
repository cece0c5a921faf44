"""A docstring as a page has it: paragraphs, arguments, examples.

The source has lines of 79 letters, which a phone has not: on a page a
paragraph is as wide as the page, an argument is an item of a list, and an
example stands as it would be typed.
"""

import re
from collections.abc import Iterator

from docutils import nodes

BLANK = re.compile(r"\n[ ]*\n")
HEAD = re.compile(r"[A-Z]\w+:")  # of a section: "Args:"
ENTRY = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*): ")  # "name: what it is"
MARKED = re.compile(
    r"``(.+?)``|`(.+?)`|(?<![\w*])\*(\w(?:[^*\n]*\w)?)\*(?![\w*])"
)
LISTS = {"Args:", "Attributes:", "Raises:"}


def drawn(said: str) -> Iterator[nodes.Node]:
    """The nodes of a docstring, in its order."""
    for block in BLANK.split(said):
        first, *rest = block.splitlines()
        if first.startswith(">>>"):
            yield nodes.literal_block(block, block, language="pycon")
        elif HEAD.fullmatch(first):
            yield from section(first, rest)
        elif first.startswith(" "):
            yield nodes.literal_block(block, block, language="none")
        else:
            yield nodes.paragraph("", "", *inline(joined(block)))


def section(head: str, lines: list[str]) -> Iterator[nodes.Node]:
    """What stands under "Args:" and its like."""
    label = nodes.strong("", head.rstrip(":"))
    if head not in LISTS:
        told = inline(joined("\n".join(lines)))
        yield nodes.paragraph("", "", label, nodes.Text(": "), *told)
        return
    yield nodes.paragraph("", "", label)
    entries = nodes.bullet_list(classes=["api-entries"])
    for entry in split(lines):
        entries += nodes.list_item("", nodes.paragraph("", "", *named(entry)))
    yield entries


def split(lines: list[str]) -> list[str]:
    """The entries of a section: each begins where its first line does."""
    start = len(lines[0]) - len(lines[0].lstrip())
    entries: list[str] = []
    for line in lines:
        if line[start : start + 1] == " " and entries:
            entries[-1] += "\n" + line
        else:
            entries.append(line)
    return [joined(entry) for entry in entries]


def named(entry: str) -> list[nodes.Node]:
    """An entry whose name is code."""
    found = ENTRY.match(entry)
    if not found:
        return inline(entry)
    told = inline(entry[found.end() :])
    return [nodes.literal("", found[1]), nodes.Text(": "), *told]


def joined(text: str) -> str:
    """Lines as one."""
    return " ".join(text.split())


def inline(text: str) -> list[nodes.Node]:
    """Text in which backticks mark code, and stars a word."""
    parts: list[nodes.Node] = []
    at = 0
    for found in MARKED.finditer(text):
        parts.append(nodes.Text(text[at : found.start()]))
        code, stressed = found[1] or found[2], found[3]
        parts.append(
            nodes.literal("", code) if code else nodes.emphasis("", stressed)
        )
        at = found.end()
    return [*parts, nodes.Text(text[at:])]
