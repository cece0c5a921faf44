"""How long a first reading takes: the one measure, with its numbers.

The main way of a chapter is what a first reader has before them: no
exercises, no boxes of claims, nothing that is folded as a second reading or
an answer, and of the code neither what a tag hides nor the imports with
which a page begins. The site writes these minutes under a chapter's title,
and a guard holds chapters to them; so this needs no Sphinx.

Words and lines are not all that takes time. A figure is looked at for as long
as it takes to find in it what its caption says, and a *Predict* to commit
oneself to a guess, 20 seconds each; what a cell prints is compared with the
sentence after it, 10 seconds; a lab is tried, two minutes for its tasks.
With that, four chapters come to what people needed who read them for the
first time, 33 to 38 minutes; with words and lines alone they came to 25 to
29, which promised too much.
"""

import re
from collections.abc import Iterator
from itertools import takewhile

WORDS_A_MINUTE, CODE_LINES_A_MINUTE = 200, 12
SECONDS = {"figure": 20, "prediction": 20, "output": 10, "lab": 120}
WIDGET = "application/vnd.jupyter.widget-view+json"
HIDDEN = {"hide-input", "hide-cell"}

HEADING = re.compile(r"^(#+) (.*)$", re.M)
ASIDE = re.compile(r"\(second reading\)$|^Exercises$")
FOLDED = re.compile(
    r"^(:::+)\{admonition\}[^\n]*\n:class: (?:second-reading|answer)\n"
    r".*?^\1 *$",
    re.M | re.S,
)
PREDICT = "> **Predict.**"
CLAIMS = re.compile(r"(?:> )?\*\*Claims? settled")
BEGINS = re.compile(r"import |from |torch\.manual_seed\(")
SHOWN = re.compile(r"\$\$.*?\$\$", re.S)
FORMULA = re.compile(r"(?<!\\)\$[^$]+\$")
LINK = re.compile(r"\]\([^)]*\)")


def first_minutes(notebook: dict) -> float:
    """The main way: what is read in it, and what else takes time."""
    parts = (part for part in in_order(notebook) if not put_away(part))
    return reading_alone(notebook) + sum(map(seconds, parts)) / 60


def reading_alone(notebook: dict) -> float:
    """The main way's words and visible lines of code, and nothing else."""
    said = sum(map(words, main_way(notebook)))
    return minutes(said, sum(map(lines, visible_code(notebook))))


def all_minutes(notebook: dict) -> float:
    """Everything: folds, exercises, claims and hidden code too."""
    said, code, seen = 0, 0, 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            blocks = list(paragraphs(cell["source"]))
            said += sum(map(words, blocks))
            seen += sum(map(seconds, blocks))
        elif cell["cell_type"] == "code":
            code += lines(cell)
            seen += seconds(cell)
    return minutes(said, code) + seen / 60


def seconds(part: str | dict) -> int:
    """What a part of a chapter takes beside the reading."""
    if isinstance(part, str):
        return SECONDS["prediction"] * part.startswith(PREDICT)
    kinds = {kind for out in part["outputs"] for kind in out.get("data", {})}
    if WIDGET in kinds:
        return SECONDS["lab"]
    if any(kind.startswith("image/") for kind in kinds):
        return SECONDS["figure"]
    return SECONDS["output"] * bool(part["outputs"])


def minutes(said: int, code: int) -> float:
    """So many words and lines of code take so long."""
    return said / WORDS_A_MINUTE + code / CODE_LINES_A_MINUTE


def main_way(notebook: dict) -> Iterator[str]:
    """The paragraphs of the main way; a displayed formula is one, ``$$``."""
    return (part for part in in_order(notebook) if isinstance(part, str))


def visible_code(notebook: dict) -> Iterator[dict]:
    """The cells of the main way whose code is seen."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] != "raw"]
    first = next((n for n, c in enumerate(cells) if is_code(c)), 0)
    folded = [id(cell) for cell in takewhile(begins, cells[first:])]
    for part in in_order(notebook):
        if isinstance(part, str) or id(part) in folded or hidden(part):
            continue
        yield part


def in_order(notebook: dict) -> Iterator[str | dict]:
    """The paragraphs and the code cells of the main way."""
    aside, table_too = 0, False
    for cell in notebook["cells"]:
        if is_code(cell) and not aside:
            yield cell
        if cell["cell_type"] != "markdown":
            continue
        for block in paragraphs(FOLDED.sub("", cell["source"])):
            if heading := HEADING.match(block):
                level, title = len(heading[1]), heading[2]
                if not aside or level <= aside:
                    aside = level if ASIDE.search(title) else 0
            of_claims = CLAIMS.match(block) or (table_too and block[:1] == "|")
            table_too = bool(CLAIMS.match(block)) and block[0] != ">"
            if not aside and not of_claims:
                yield block


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a text; a heading is one, a displayed formula too."""
    text = HEADING.sub(r"\n\g<0>\n", SHOWN.sub("\n\n$$\n\n", text))
    blocks = (block.strip() for block in re.split(r"\n\s*\n", text))
    return (block for block in blocks if block)


def words(block: str) -> int:
    """How many words a paragraph has; a formula in it is one."""
    text = LINK.sub("]", FORMULA.sub("x", block))
    return sum(any(map(str.isalnum, word)) for word in text.split())


def put_away(part: str | dict) -> bool:
    """Whether it is a cell that a tag folds with all that it prints."""
    tags = part["metadata"].get("tags", []) if is_code(part) else []
    return "hide-cell" in tags


def lines(cell: dict) -> int:
    """How many lines of code a cell has; blank ones are not counted."""
    return sum(bool(line.strip()) for line in cell["source"].splitlines())


def is_code(part: str | dict) -> bool:
    """Whether it is a cell of code."""
    return not isinstance(part, str) and part["cell_type"] == "code"


def hidden(cell: dict) -> bool:
    """Whether a tag hides its code."""
    return bool(HIDDEN & set(cell["metadata"].get("tags", [])))


def begins(cell: dict) -> bool:
    """Whether it is a cell that imports or seeds, and prints nothing."""
    seeds = is_code(cell) and BEGINS.match(cell["source"])
    return bool(seeds) and not cell["outputs"] and not hidden(cell)
