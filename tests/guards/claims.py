"""Guards on the ledger: each claim has its verdict, and a test that gives it.

The tests are read as text, so that a copy with a mistake in it can be judged
without running it.
"""

import ast
from collections.abc import Iterator, Set
from decimal import Decimal
from pathlib import Path

import nbformat
from ledger import ID, REASONS, VERDICTS, Claim, read_ledger

from guards.prose import (
    in_cells,
    in_prose,
    is_held,
    is_small_or_year,
    numbers_of,
)
from tools.accepted.rows import functions

# Numbers that a test computes by a formula, and does not write down.
WORKED_OUT = {
    "001-014": {"124.65"},
    "001-074": {"4e-4"},
    "002-025": {"0.9576", "0.0199", "0.0225"},
    "002-094": {"40,000"},
    "002-095": {"153,664"},
    "002-096": {"4,194,304", "4.19"},
    "002-097": {"1.07"},
}
LARGEST_SHARE_WITHOUT_TEST = 0.2

Settled = tuple[str, str, str, str]  # chapter, claim, verdict, test


def settled(tests: Path) -> Iterator[Settled]:
    """What the tests say that they settle, chapter by chapter."""
    for path in sorted(tests.rglob("test_*.py")):
        stem = path.relative_to(tests).with_suffix("").as_posix()
        chapter = stem.replace("test_", "")
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                for claim, verdict in marks(node):
                    yield chapter, claim, verdict, node.name


def marks(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Claim and verdict of each ``@settles(claim, verdict)``."""
    for mark in function.decorator_list:
        match mark:
            case ast.Call(
                func=ast.Name(id="settles"),
                args=[ast.Constant(value=claim), ast.Constant(value=verdict)],
            ):
                yield str(claim), str(verdict)


def ledger_breaks(ledger: Path, tests: Path) -> list[str]:
    """Each row has a test that says the same, or a reason; and no more."""
    rows = read_ledger(ledger)
    said = list(settled(tests))
    found = [fault for row in rows for fault in faults(row)]
    found += [f"{i}: listed twice" for i in twice([row.id for row in rows])]
    found += [f"{i}: settled twice" for i in twice([s[1] for s in said])]
    promised = {
        (row.chapter, row.id, row.verdict, row.test)
        for row in rows
        if row.test
    }
    for chapter, claim, verdict, test in sorted(promised - set(said)):
        found.append(f"{claim}: no {test} of {chapter} finds it {verdict}")
    for chapter, claim, verdict, test in sorted(set(said) - promised):
        found.append(f"{claim}: {chapter}'s {test}, {verdict}, is in no row")
    return found


def faults(row: Claim) -> Iterator[str]:
    """What is wrong with one row by itself."""
    if not ID.fullmatch(row.id):
        yield f"{row.id}: an id is source, dash, three digits"
    if row.verdict not in VERDICTS:
        yield f"{row.id}: {row.verdict} is no verdict"
    if (row.test is None) == (row.reason is None):
        yield f"{row.id}: a test or a reason, one of them"
    if row.reason is not None and row.reason not in REASONS:
        yield f"{row.id}: {row.reason} is no reason"
    if not (row.place and row.quote and row.statement):
        yield f"{row.id}: place, quote and statement are all needed"


def unheld_in_statements(root: Path) -> list[str]:
    """Each number of a statement is in its quote, its test or its chapter."""
    found = []
    held: dict[str, Set[Decimal]] = {}
    for row in read_ledger(root / "book" / "claims"):
        numbers = [
            text
            for text in in_prose(row.statement)
            if not is_small_or_year(text)
            and text not in WORKED_OUT.get(row.id, ())
        ]
        if not numbers:
            continue
        if row.chapter not in held:
            page = root / "book" / f"{row.chapter}.ipynb"
            held[row.chapter] = in_cells(nbformat.read(page, as_version=4))
        chapter = root / "tests" / "claims" / row.chapter
        tests = chapter.with_name(f"test_{chapter.name}.py")
        own = numbers_of(row.quote)
        own |= numbers_of(functions(tests).get(row.test or "", ""))
        found += [
            f"{row.id}: neither its test nor its chapter holds {text}"
            for text in numbers
            if not is_held(text, own | held[row.chapter])
        ]
    return found


def twice(names: list[str]) -> list[str]:
    """The names that come more than once."""
    return sorted({name for name in names if names.count(name) > 1})


def too_many_without_test(ledger: Path) -> list[str]:
    """Reasons are the exception."""
    rows = read_ledger(ledger)
    without = sum(row.test is None for row in rows)
    if without <= LARGEST_SHARE_WITHOUT_TEST * len(rows):
        return []
    return [f"{without} of {len(rows)} claims have no test"]


def unknown_claims(ledger: Path, cited: set[str]) -> list[str]:
    """Every claim that a page links to is in the ledger."""
    known = {row.id for row in read_ledger(ledger)}
    return [f"{claim}: in no row" for claim in sorted(cited - known)]
