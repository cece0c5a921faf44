"""Guards on the first reading: short, its equation early, a recall box.

The main way of a chapter is its visible prose: no code, no exercises, no
boxes of claims, and nothing that is folded as a second reading or an answer.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

import torch
from nbformat import NotebookNode

from guards.prose import RECALL
from selfattn import attention_steps

MOST_WORDS, EQUATION_BY, LINES_OF_RECALL = 3500, 900, 6
WITHOUT_EQUATION = {"bench", "intro"}
# Chapters that do not hold a rule yet: this list may only become shorter.
TOO_LONG: set[str] = set()
EQUATION_LATE: set[str] = set()
NO_RECALL: set[str] = set()

# The running numbers: the queries, keys and values of three tokens.
NUMBERS = {
    "queries": [[1, 0], [0, 2], [2, 1]],
    "keys": [[1, 1], [2, 0], [0, 1]],
    "values": [[1, 0], [0, 2], [3, 1]],
}

HEADING = re.compile(r"^(#+) (.*)$", re.M)
ASIDE = re.compile(r"\(second reading\)$|^Exercises$")
FOLDED = re.compile(
    r"^(:::+)\{admonition\}[^\n]*\n:class: (?:second-reading|answer)\n"
    r".*?^\1 *$",
    re.M | re.S,
)
CLAIMS = re.compile(r"(?:> )?\*\*Claims? settled")
SHOWN = re.compile(r"\$\$.*?\$\$", re.S)
FORMULA = re.compile(r"(?<!\\)\$[^$]+\$")
LINK = re.compile(r"\]\([^)]*\)")
VECTOR = re.compile(r"\(([-−.\d, ]+)\)")


def main_way(notebook: NotebookNode) -> Iterator[str]:
    """The paragraphs of the main way; a displayed formula is one, ``$$``."""
    cells = (c.source for c in notebook.cells if c.cell_type == "markdown")
    text = FOLDED.sub("", "\n\n".join(cells))
    text = HEADING.sub(r"\n\g<0>\n", SHOWN.sub("\n\n$$\n\n", text))
    aside, table_too = 0, False
    for block in re.split(r"\n\s*\n", text):
        block = block.strip()
        if heading := HEADING.match(block):
            level, title = len(heading[1]), heading[2]
            if not aside or level <= aside:
                aside = level if ASIDE.search(title) else 0
        of_claims = CLAIMS.match(block) or (table_too and block[:1] == "|")
        table_too = bool(CLAIMS.match(block)) and block[0] != ">"
        if block and not aside and not of_claims:
            yield block


def words(block: str) -> int:
    """How many words a paragraph has; a formula in it is one."""
    text = LINK.sub("]", FORMULA.sub("x", block))
    return sum(any(map(str.isalnum, word)) for word in text.split())


def too_long(name: str, notebook: NotebookNode) -> list[str]:
    """The main way has at most so many words."""
    total = sum(map(words, main_way(notebook)))
    return told(name, TOO_LONG, total <= MOST_WORDS, f"{total} words")


def equation_late(name: str, notebook: NotebookNode) -> list[str]:
    """What stands under "The equation" comes early."""
    if name in WITHOUT_EQUATION:
        return []
    before, there = 0, False
    for block in main_way(notebook):
        if there and block == "$$":
            break
        there = there or bool(re.match(r"#+ The equation", block))
        before += words(block)
    early = there and before <= EQUATION_BY
    return told(name, EQUATION_LATE, early, f"its equation at word {before}")


def no_recall(name: str, notebook: NotebookNode) -> list[str]:
    """A box of six lines gives the running numbers, and they are right."""
    if name in WITHOUT_EQUATION:
        return []
    cells = (c.source for c in notebook.cells if c.cell_type == "markdown")
    box = RECALL.search("\n\n".join(cells))
    listed = box[1].strip().splitlines() if box else []
    whole = len(listed) == LINES_OF_RECALL and all(
        x[:2] == "- " for x in listed
    )
    found = told(name, NO_RECALL, whole, f"{len(listed)} lines of recall")
    return found + [fault for line in listed for fault in misrecalled(line)]


def told(name: str, listed: set[str], holds: bool, what: str) -> list[str]:
    """What is wrong: a rule broken, or a chapter listed that keeps it."""
    if holds == (name not in listed):
        return []
    if holds:
        return [f"{name}: listed as breaking a rule that it keeps: {what}"]
    return [f"{name}: {what}"]


def misrecalled(line: str) -> Iterator[str]:
    """A line of vectors says what the running numbers give."""
    name = re.match(r"- ([A-Z][a-z]+)", line)
    true = recalled().get(name[1].lower()) if name else None
    if true is None:
        return
    said = [
        [Decimal(x.strip().replace("−", "-")) for x in vector.split(",")]
        for vector in VECTOR.findall(line)
    ]
    rounded = [
        [
            round(Decimal(x), -a.as_tuple().exponent)
            for x, a in zip(t, s, strict=False)
        ]
        for t, s in zip(true, said, strict=False)
    ]
    if len(said) != len(true) or said != rounded:
        yield f"recalled {line!r}, but they are {true}"


def recalled() -> dict[str, list[list[float]]]:
    """All that a box may recall, computed from the running numbers."""
    given = {k: torch.tensor(v).double() for k, v in NUMBERS.items()}
    steps = attention_steps(*given.values())
    given |= {"scores": steps.scores, "scaled": steps.scaled}
    given |= {"weights": steps.weights, "outputs": steps.output}
    return {name: x.tolist() for name, x in given.items()}
