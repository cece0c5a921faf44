"""Which tests could see an edit of a file, and what they find in a copy.

The guards are functions of a tree, so they are called here as the tests call
them, on what was edited alone: hundreds of corruptions are judged in minutes.
What needs processes of its own is in `processes`.
"""

import functools
import json
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import nbformat
import yaml
from guards import ON_A_NOTEBOOK, commands, escapes, prose
from guards.claims import ledger_breaks, unheld_in_statements
from guards.conclusions import conclusion_breaks
from guards.labs import stored_labs
from ledger import read_ledger

from tools.accepted import files, pages, rows, suite, words
from tools.accepted.facts import Facts, digest
from tools.accepted.record import recorded
from tools.measure.provenance import ROOT
from tools.verify.pictures import other_pictures

RECORD = "the record"  # what only this finds, an acceptance would let pass
Check = Callable[[Path, str], list[str]]
CHECKS: list[tuple[str, str, Check]] = []  # pattern of paths, test, check


def check(pattern: str, test: str) -> Callable[[Check], Check]:
    """Register what a test looks at in files that fit a pattern."""

    def register(function: Check) -> Check:
        CHECKS.append((pattern, test, function))
        return function

    return register


def findings(root: Path, paths: list[str]) -> dict[str, list[str]]:
    """What each test finds that could see one of these files.

    A test that meets what is no Python any more, or no YAML, raises, and so is
    red.
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        for pattern, test, look in CHECKS:
            try:
                said = look(root, path) if fnmatch(path, pattern) else []
            except (SyntaxError, yaml.YAMLError) as wrong:
                said = [f"{path}: {wrong}"]
            if said:
                found.setdefault(test, []).extend(said)
    return found


@check("*", RECORD)
def unaccepted(root: Path, path: str) -> list[str]:
    """Facts of one file that are not as they were accepted."""
    found = []
    for name, (prefix, facts) in facts_of(root, path).items():
        known = recorded(root, name)
        before = {k: v for k, v in known.items() if k.startswith(prefix)}
        now = {key: digest(fact) for key, fact in facts.items()}
        keys = before.keys() | now.keys()
        found += [k for k in sorted(keys) if before.get(k) != now.get(k)]
    return found


def facts_of(root: Path, path: str) -> dict[str, tuple[str, Facts]]:
    """The records that one file is in: how its keys begin, and its facts."""
    place = root / path
    found: dict[str, tuple[str, Facts]] = {}
    if path.endswith(".ipynb"):
        name = path.removesuffix(".ipynb").replace("/", ".")
        found[name] = "", pages.of_notebook(place)
    elif path.endswith(".md") and (path[:5] == "book/" or path == "README.md"):
        facts = {f"{path}: {k}": f for k, f in pages.of_page(place).items()}
        found["pages"] = f"{path}: ", facts
    elif re.match(r"(?:book|tests)/claims/", path):
        found["claims"] = "", rows.of_ledger(root, "claims", "claim")
    elif re.match(r"(?:book|tests)/conclusions/", path):
        kind = "conclusion"
        found["conclusions"] = "", rows.of_ledger(root, "conclusions", kind)
    elif path.endswith(".bib"):
        found["references"] = "", rows.references(place)
    elif path.startswith("src/selfattn/") and path.endswith(".py"):
        name = path.removeprefix("src/selfattn/").removesuffix(".py")
        record, read = words.of_module(place, name)
        facts = {f"{name}: {k}": f for k, f in read.items()}
        found[record] = f"{name}: ", facts
    for record, patterns in files.RECORDS.items():
        if any(place in root.glob(pattern) for pattern in patterns):
            found[record] = path, {path: files.of_file(place)}
    return found


@check("*.ipynb", "tests/book/test_notebooks.py")
def notebook(root: Path, path: str) -> list[str]:
    """The guards on one notebook, which is written as the command would."""
    read = nbformat.read(root / path, as_version=4)
    found = [fault for guard in ON_A_NOTEBOOK for fault in guard(read)]
    strange = prose.cited_claims(read) - known_claims(root / "book/claims")
    found += [f"{claim}: in no row" for claim in sorted(strange)]
    return found


@check("*.ipynb", "tests/labs/test_stored.py")
def labs(root: Path, path: str) -> list[str]:
    """What is stored of a lab, where that is what was edited."""
    own, stored = root / path, ROOT / path
    if kept(own) == kept(stored):
        return []
    return stored_labs(nbformat.read(own, as_version=4))


def kept(path: Path) -> dict:
    """What a notebook stores of its labs."""
    read = json.loads(path.read_text("utf-8"))
    return read["metadata"].get("widgets", {})


@check("*.ipynb", "the notebooks, executed again")
def executed(root: Path, path: str) -> list[str]:
    """Stored pictures beside those that come out.

    What comes out is what the healthy tree stores: its notebooks are green.
    """
    fresh, stored = (
        {cell["id"]: cell.get("outputs", []) for cell in read["cells"]}
        for read in (
            json.loads((top / path).read_text("utf-8")) for top in (ROOT, root)
        )
    )
    return [
        f"{name}: {why}"
        for name in stored.keys() & fresh.keys()
        if stored[name] != fresh[name]
        for why in other_pictures(fresh[name], stored[name])
    ]


@functools.cache
def known_claims(ledger: Path) -> set[str]:
    """The claims of the ledger; no corruption of a notebook changes it."""
    return {row.id for row in read_ledger(ledger)}


@check("book/*.md", "tests/book/test_pages.py")
def page(root: Path, path: str) -> list[str]:
    """The guards on one page."""
    text = (root / path).read_text("utf-8")
    return prose.unheld_in_page(text) + prose.blocks_not_run(text)


@check("*/claims/*", "tests/book/test_ledger.py")
def claims(root: Path, path: str) -> list[str]:
    """Rows and tests that say different things."""
    found = ledger_breaks(root / "book/claims", root / "tests/claims")
    return found + unheld_in_statements(root)


@check("book/conclusions/*", "tests/book/test_conclusions.py")
def conclusions(root: Path, path: str) -> list[str]:
    """Rows, runs, tests and pages that say different things."""
    return conclusion_breaks(root)


@check("tests/*.py", "tests/book/test_accepted.py")
def gone(root: Path, path: str) -> list[str]:
    """Tests and cases that are gone: no acceptance without the changelog."""
    return [f"{k}: {how}" for k, how in of_suite(root, path) if lost(how)]


@check("tests/*.py", RECORD)
def weaker(root: Path, path: str) -> list[str]:
    """Asserts and bounds that are others."""
    return [f"{k}: {how}" for k, how in of_suite(root, path) if not lost(how)]


def lost(how: str) -> bool:
    """Whether a test, or a case of one, is gone."""
    return how == suite.GONE or how.endswith(" cases")


def of_suite(root: Path, path: str) -> Iterator[tuple[str, str]]:
    """The functions of one file that test less than they did."""
    place = root / path
    now = dict(suite.of_file(place)) if place.exists() else {}
    for key, before in suite.recorded(root).items():
        file, _, name = key.partition("::")
        if file == path and (less := suite.less(before, now.get(name))):
            yield key, less


@check("*", "tests/project/test_commands.py")
def ways_out(root: Path, path: str) -> list[str]:
    """Escapes in a file of the suite, or in an example."""
    place = root / path
    if not place.exists() or place.suffix not in (".py", ".md"):
        return []
    text = place.read_text("utf-8")
    if path.startswith("tests/"):
        return list(escapes.of_tests(path, text))
    return escapes.OPTIONS.findall(text)


@check("tests/claims/*.py", "tests/project/test_commands.py")
def idle(root: Path, path: str) -> list[str]:
    """Tests of claims that assert nothing."""
    return escapes.idle_claims(root / "tests/claims")


@check("[!bst]*", "tests/project/test_commands.py")
def run_whole(root: Path, path: str) -> list[str]:
    """Recipes, steps and options that let something by."""
    guards = (commands.recipes, commands.steps, commands.options)
    return [fault for guard in guards for fault in guard(root)]
