"""Guards on the record of conclusions: each tried, tested, and on its page.

In which settings a row holds is tried by its test in ``tests/conclusions``;
here it is whether the record, the tests, the runs and the pages agree.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from record import (
    COMPUTED,
    Conclusion,
    prose,
    read_record,
    runs_of,
    said,
    within,
)

FEWEST_NUISANCES, FEWEST_VALUES = 2, 3
MOST_ROWS = 10  # a chapter; what else it infers is hedged, or cut
UNTRAINED = {COMPUTED, "cost", "devices", "overview", "stacks"}
BUDGETS = {"rate", "steps"}
# Experiments whose runs cannot bear a conclusion yet, and why not; the pages
# say of them what came out, and infer nothing.
WITHOUT_ROWS: dict[str, str] = {}


def conclusion_breaks(root: Path) -> list[str]:
    """All that is wrong between record, tests, runs and pages."""
    book = root / "book"
    rows = read_record(book / "conclusions")
    found = [fault for row in rows for fault in faults(row)]
    for row in rows:
        found += unlike_its_runs(row, book / "measurements")
        found += unlike_its_page(row, book)
    found += unlisted_links(rows, book)
    found += unlike_the_tests(rows, root / "tests" / "conclusions")
    found += without_rows(rows, root / "tools/measure/experiments")
    many = Counter(row.chapter for row in rows)
    found += [f"{c}: {n} rows" for c, n in many.items() if n > MOST_ROWS]
    ids = [row.id for row in rows]
    return found + [f"{i}: twice" for i in {*ids} if ids.count(i) > 1]


def faults(row: Conclusion) -> Iterator[str]:
    """What is wrong with one row by itself."""
    chapter = row.chapter.rpartition("/")[2]
    if not re.fullmatch(rf"{chapter}-[a-z-]+", row.id):
        yield f"{row.id}: an id is chapter, dash, word"
    if bool(row.not_in) != bool(row.instead):
        yield f"{row.id}: where it fails, the page says something instead"
    if re.search(r"\bbecause\b", row.says) and not row.instead_of:
        yield f"{row.id}: a cause, and no rival explanation"
    if row.proved:
        if row.source or row.varied or row.held:
            yield f"{row.id}: proved, and tried all the same"
        return
    many = [v for v in row.varied.values() if len(v) >= FEWEST_VALUES]
    if len(many) < FEWEST_NUISANCES:
        yield f"{row.id}: {len(many)} nuisances with {FEWEST_VALUES} values"
    if row.source not in UNTRAINED and not BUDGETS & {*row.varied, *row.over}:
        yield f"{row.id}: trained, at one rate and one budget"
    if not row.held:
        yield f"{row.id}: nothing was held"
    if sum(row.stands()) <= len(row.settings()) / 2:
        yield f"{row.id}: it holds in half of its settings or fewer"
    for part in row.not_in:
        if not any(within(setting, part) for setting in row.settings()):
            yield f"{row.id}: {part} is none of its settings"


def unlike_its_runs(row: Conclusion, folder: Path) -> Iterator[str]:
    """What was varied is what the committed runs have, all of it."""
    if row.proved or row.source == COMPUTED:
        return
    if not (folder / f"{row.source}.json").exists():
        yield f"{row.id}: no runs of {row.source}"
        return
    runs = runs_of(row, folder)
    for name, values in row.varied.items():
        had = {run[name] for run in runs if name in run}
        if had and had != set(values):
            yield f"{row.id}: the runs have {name} {sorted(had)}"
    for name in row.over:
        if len({run.get(name) for run in runs}) < FEWEST_VALUES:
            yield f"{row.id}: not over {FEWEST_VALUES} values of {name}"


def unlike_its_page(row: Conclusion, book: Path) -> Iterator[str]:
    """The page has the row's sentence, in its words, and the exception."""
    text = prose(book / f"{row.chapter}.ipynb")
    on_page = [words for words, name in said(text) if name == row.id]
    if not on_page:
        yield f"{row.id}: not on the page of {row.chapter}"
    for words in on_page:
        if words != row.says:
            yield f"{row.id}: the page says {words!r}, and `make accept` helps"
    if row.instead not in " ".join(text.split()):
        yield f"{row.id}: the page does not say {row.instead!r}"


def unlisted_links(rows: list[Conclusion], book: Path) -> Iterator[str]:
    """Every link to a conclusion has a row of its chapter."""
    known = {(row.chapter, row.id) for row in rows}
    for path in sorted(book.rglob("*.ipynb")):
        chapter = path.relative_to(book).with_suffix("").as_posix()
        for _, name in said(prose(path)):
            if (chapter, name) not in known:
                yield f"{chapter}: {name} is in no row of its"


def unlike_the_tests(rows: list[Conclusion], tests: Path) -> Iterator[str]:
    """Each row has a test in its chapter's file, and each test a row."""
    promised = {(row.chapter, row.test) for row in rows}
    there = {
        (chapter_of(path.relative_to(tests)), node.name)
        for path in sorted(tests.rglob("test_*.py"))
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    for chapter, test in sorted(promised - there):
        yield f"{chapter}: no {test}"
    for chapter, test in sorted(there - promised):
        yield f"{chapter}: {test} is in no row"


def chapter_of(path: Path) -> str:
    """The chapter that a file of tests is for: efficient/test_flash.py."""
    return path.with_suffix("").as_posix().replace("test_", "")


def without_rows(rows: list[Conclusion], experiments: Path) -> Iterator[str]:
    """Every experiment bears a row, or is listed above."""
    names = {path.stem for path in experiments.glob("[a-z]*.py")}
    bearing = {row.source for row in rows}
    for name in sorted(names - bearing - set(WITHOUT_ROWS)):
        yield f"{name}: an experiment without rows"
    for name in sorted(bearing & set(WITHOUT_ROWS)):
        yield f"{name}: has rows, and is listed as without"
