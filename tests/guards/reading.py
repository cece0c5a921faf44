"""Guards on the first reading: short, its equation early, a recall box.

What the main way of a chapter is, and how long it takes, is told by
`first_reading`, which the site asks as well.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

import torch
from first_reading import first_minutes, main_way, words
from nbformat import NotebookNode

from guards.prose import RECALL
from selfattn import attention_steps

MOST_WORDS, EQUATION_BY, LINES_OF_RECALL = 3500, 900, 6
MOST_MINUTES = 30
WITHOUT_EQUATION = {"bench", "intro"}
# Chapters that a reader without any experience reads in so many minutes,
# with their figures, their predictions and their lab.
TIMED = {"masks", "scaling", "positions", "layers"}
# Chapters that do not hold a rule yet: this list may only become shorter.
TOO_LONG: set[str] = set()
EQUATION_LATE: set[str] = set()
NO_RECALL: set[str] = set()
SLOW: set[str] = set()

# The running numbers: the queries, keys and values of three tokens.
NUMBERS = {
    "queries": [[1, 0], [0, 2], [2, 1]],
    "keys": [[1, 1], [2, 0], [0, 1]],
    "values": [[1, 0], [0, 2], [3, 1]],
}

VECTOR = re.compile(r"\(([-−.\d, ]+)\)")


def too_long(name: str, notebook: NotebookNode) -> list[str]:
    """The main way has at most so many words."""
    total = sum(map(words, main_way(notebook)))
    return told(name, TOO_LONG, total <= MOST_WORDS, f"{total} words")


def too_slow(name: str, notebook: NotebookNode) -> list[str]:
    """A first reading of the main way takes at most so many minutes."""
    if name not in TIMED:
        return []
    taken = first_minutes(notebook)
    return told(name, SLOW, taken <= MOST_MINUTES, f"{taken:.1f} minutes")


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
