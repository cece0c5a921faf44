"""Guards on one notebook: how its cells are written, run and shown."""

import ast
import copy
import json
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.build.notebooks import (
    STAND_IN,
    WIDGET_STATE,
    WIDGET_VIEW,
    normalise,
)

TAGS = {"hide-input", "hide-cell", "raises-exception", "nbval-ignore-output"}
IGNORED = "nbval-ignore-output"
HIDDEN = {"hide-input", "hide-cell"}
LONGEST_CELL, LONGEST_IMPORTS, SHORTEST_ALT = 15, 8, 40  # lines, characters
LARGEST_SHARE_IGNORED = 0.05
ROWS_OF_A_TABLE = 4
# Cells that may be folded away although they are no solution; cells whose
# output is not compared. Whoever adds one, adds its id here.
FOLDED = {"01cfe696", "038f49b2", "a21400e8", "e2a7c855"}
UNCOMPARED = {"519f839f"}
SOLUTION = re.compile(r"^#+ +Solution", re.MULTILINE)
ANSWER = ":class: answer"  # of an admonition, which is folded
HEADING = re.compile(r"^#+ ", re.MULTILINE)

MACHINE = re.compile(
    r"/(?:home|root|Users|tmp|var|work|usr|opt|mnt)/|[A-Z]:\\|site-packages"
    r"|ipykernel_\d|\b0x[0-9a-f]{6,}"
)
TIMING = re.compile(
    r"\d\s?(?:ns|µs|us|ms|s|sec|seconds|minutes)\b|it/s|\bCPU times|\bWall"
)
DEVICE = re.compile(
    r"\bcuda\b|\bmps\b|NVIDIA|GeForce|Tesla|\b[AH][12]00\b|Intel|Xeon|\bAMD\b"
)
UNANSWERED = re.compile(r"\s*○ [\w/]+: Not answered yet\s*")
MAGIC = re.compile(r"^\s*[!%?]", re.MULTILINE)
NBVAL_COMMENT = re.compile(r"#\s*(?:NBVAL|PYTEST_VALIDATE)\w*")


def tags(cell: NotebookNode) -> set[str]:
    """The tags of a cell."""
    return set(cell.metadata.get("tags", []))


def codes(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def data(cell: NotebookNode) -> dict[str, str]:
    """What a cell's outputs show, by kind; texts of one kind joined."""
    shown: dict[str, str] = {}
    for output in cell.get("outputs", []):
        pieces = dict(output.get("data", {}))
        if output.output_type == "stream":
            pieces[output.name] = output.text
        if output.output_type == "error":
            pieces["error"] = f"{output.ename}: {output.evalue}"
        for kind, text in pieces.items():
            if isinstance(text, str):
                shown[kind] = shown.get(kind, "") + text + "\n"
    return shown


def printed(cell: NotebookNode) -> str:
    """All the text that a cell's outputs show."""
    kinds = data(cell)
    return "\n".join(t for k, t in kinds.items() if not k.startswith("image"))


def images(cell: NotebookNode) -> int:
    """How many pictures a cell's outputs show."""
    return sum(
        any(kind.startswith("image/") for kind in output.get("data", {}))
        for output in cell.get("outputs", [])
    )


def not_executed(notebook: NotebookNode) -> list[str]:
    """Every code cell ran, from the first to the last, in order."""
    return [
        f"{cell.id}: execution count {cell.execution_count}, not {place}"
        for place, cell in enumerate(codes(notebook), 1)
        if cell.execution_count != place
    ]


def unexpected_errors(notebook: NotebookNode) -> list[str]:
    """A cell ends in an error exactly when it is meant to."""
    return [
        f"{cell.id}: an error and its tag raises-exception go together"
        for cell in codes(notebook)
        if ("error" in data(cell)) != ("raises-exception" in tags(cell))
    ]


def not_as_written(path: Path) -> list[str]:
    """The file is, to the byte, what `make notebooks` writes."""
    text = path.read_text("utf-8")
    notebook = nbformat.reads(text, as_version=4)
    again = copy.deepcopy(notebook)
    normalise(again)
    if text == nbformat.writes(again) + "\n":
        return []
    return [f"{path.name}: not written by make notebooks"]


def machine_traces(notebook: NotebookNode) -> list[str]:
    """No path, address, time or device of one machine is in an output."""
    found = []
    for cell in codes(notebook):
        rules = [MACHINE]
        if IGNORED not in tags(cell) and "committed" not in cell.metadata:
            rules += [TIMING, DEVICE]
        for rule in rules:
            for trace in rule.findall(printed(cell)):
                found.append(f"{cell.id}: {trace!r} depends on the machine")
    return found


def holes(notebook: NotebookNode) -> list[str]:
    """No cell is skipped; what is not compared says why not."""
    found = []
    for cell in codes(notebook):
        for tag in sorted(tags(cell) - TAGS):
            found.append(f"{cell.id}: a tag that this book has not: {tag}")
        for comment in NBVAL_COMMENT.findall(cell.source):
            found.append(f"{cell.id}: a tag, not a comment: {comment}")
        if IGNORED in tags(cell) and not cell.metadata.get("reason"):
            found.append(f"{cell.id}: not compared, and no reason given")
    return found


def folded_away(notebook: NotebookNode) -> list[str]:
    """Whole cells are hidden under a solution; what is compared is listed.

    A cell after an answer that is folded would give it away.
    """
    found, solution, answer = [], False, False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            answer = ANSWER in cell.source
        if cell.cell_type == "markdown" and HEADING.search(cell.source):
            last = HEADING.split(cell.source)[-1]
            solution = bool(SOLUTION.search(f"# {last}"))
        folded = "hide-cell" in tags(cell) and cell.id not in FOLDED
        if folded and not (solution or answer):
            found.append(f"{cell.id}: hidden, and no solution")
        if IGNORED in tags(cell) and cell.id not in UNCOMPARED:
            found.append(f"{cell.id}: not compared, and not in UNCOMPARED")
    return found


def too_many_ignored(notebooks: list[NotebookNode]) -> list[str]:
    """At most one code cell in twenty of the book goes uncompared."""
    cells = [cell for notebook in notebooks for cell in codes(notebook)]
    ignored = sum(IGNORED in tags(cell) for cell in cells)
    if ignored <= LARGEST_SHARE_IGNORED * len(cells):
        return []
    return [f"{ignored} of {len(cells)} code cells are not compared"]


def badly_written(notebook: NotebookNode) -> list[str]:
    """Plain Python, short, and each cell ends in something to see."""
    found = []
    for place, cell in enumerate(codes(notebook)):
        if MAGIC.search(cell.source) or "filterwarnings" in cell.source:
            found.append(f"{cell.id}: no shell, no magic, no silenced warning")
            continue
        body = ast.parse(cell.source).body
        lines = [line for line in cell.source.splitlines() if line.strip()]
        if place == 0:
            if not all(
                isinstance(s, ast.Import | ast.ImportFrom) for s in body
            ):
                found.append(f"{cell.id}: the first cell imports, no more")
            if len(lines) > LONGEST_IMPORTS:
                found.append(f"{cell.id}: {len(lines)} lines of imports")
        elif not ends_well(body):
            found.append(f"{cell.id}: ends in no expression and no assert")
        if cell.source.rstrip().endswith(";"):
            found.append(f"{cell.id}: a semicolon silences nothing here")
        if len(lines) > LONGEST_CELL and not tags(cell) & HIDDEN:
            found.append(f"{cell.id}: {len(lines)} visible lines")
    return found


def ends_well(body: list[ast.stmt]) -> bool:
    """Whether the last statement shows, holds or defines something."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.For | ast.With):
        return ends_well(last.body)
    shows = ast.Expr | ast.Assert | ast.FunctionDef | ast.ClassDef
    return isinstance(last, shows)


def hidden_without_need(notebook: NotebookNode) -> list[str]:
    """Only the code of figures, labs and printed tables is hidden."""
    return [
        f"{cell.id}: hides its code but shows no figure, lab or table"
        for cell in codes(notebook)
        if "hide-input" in tags(cell)
        and not images(cell)
        and WIDGET_VIEW not in str(cell.outputs)
        and sum(map(bool, printed(cell).split("\n"))) < ROWS_OF_A_TABLE
    ]


def undescribed_figures(notebook: NotebookNode) -> list[str]:
    """One figure a cell, described by hand, readable in the dark."""
    found, seen = [], set()
    for cell in codes(notebook):
        if not images(cell):
            continue
        image = cell.metadata.get("mystnb", {}).get("image", {})
        alt = image.get("alt", "")
        if images(cell) > 1:
            found.append(f"{cell.id}: two figures, which share one alt text")
        if len(alt) < SHORTEST_ALT or alt in seen:
            found.append(f"{cell.id}: no alt text of its own: {alt!r}")
        if "dark-light" not in image.get("classes", ""):
            found.append(f"{cell.id}: its figure lacks the class dark-light")
        seen.add(alt)
    return found


def told_too_soon(notebook: NotebookNode) -> list[str]:
    """Before its reader has tried, an exercise says nothing but its name.

    What the doctor finds in code that is to be mended names the cure, so a
    notebook keeps it folded; a solution is folded as a whole.
    """
    return [
        f"{cell.id}: the answer is to be seen before one has tried"
        for cell in codes(notebook)
        if "exercise=" in cell.source
        and "hide-cell" not in tags(cell)
        and not UNANSWERED.fullmatch("".join(data(cell).values()))
        and not cell.metadata.get("jupyter", {}).get("outputs_hidden")
    ]


def stored_modules(notebook: NotebookNode) -> list[str]:
    """The widget state holds settings, and no module but the stand-in."""
    widgets = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {})
    return [
        f"widget {name}: stores another module than the stand-in"
        for name, model in widgets.get("state", {}).items()
        if model["model_module"] == "anywidget"
        and not STAND_IN.items() <= model["state"].items()
    ]


def odd_metadata(notebook: NotebookNode) -> list[str]:
    """The kernel is python3, and every cell has one id of its own."""
    found = []
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        found.append("the kernel is not python3")
    ids = [cell.get("id") for cell in notebook.cells]
    if None in ids or len(set(ids)) < len(ids):
        found.append("a cell has no id, or that of another")
    if "execution" in json.dumps([c.metadata for c in notebook.cells]):
        found.append("a cell holds the times of a run")
    return found
