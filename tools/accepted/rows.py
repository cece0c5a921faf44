"""Facts of the ledgers: claims with their tests, conclusions, references."""

import ast
import functools
import json
import re
import tomllib
from pathlib import Path

from tools.accepted.facts import Facts

ENTRY = re.compile(r"^@(\w+)\{([^,\s]+),(.*?)^\}", re.MULTILINE | re.DOTALL)


def rows(path: Path, kind: str) -> list[dict]:
    """The rows of one file of a ledger."""
    return tomllib.loads(path.read_text("utf-8")).get(kind, [])


def functions(path: Path) -> dict[str, str]:
    """The text of each function of a module, decorators included."""
    return of_text(path.read_text("utf-8")) if path.exists() else {}


@functools.cache
def of_text(text: str) -> dict[str, str]:
    """The same of a module's text."""
    lines = text.splitlines()
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            marks = node.decorator_list
            first = min([node.lineno, *(mark.lineno for mark in marks)])
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return found


def of_ledger(root: Path, ledger: str, kind: str) -> Facts:
    """Each row beside the test that settles it: they are read together."""
    facts: Facts = {}
    for path in sorted((root / "book" / ledger).rglob("*.toml")):
        chapter = path.relative_to(root / "book" / ledger).with_suffix("")
        tests = functions(
            (root / "tests" / ledger / chapter.parent).joinpath(
                f"test_{chapter.name}.py"
            )
        )
        for row in rows(path, kind):
            test = row.get("test", "no test")
            words = json.dumps(row, ensure_ascii=False, sort_keys=True)
            facts[f"{row['id']} · {test}"] = (
                f"{words} {tests.get(test, 'not found')}"
            )
    return facts


def references(path: Path) -> Facts:
    """Every field of every entry of the bibliography."""
    entries = ENTRY.findall(path.read_text("utf-8"))
    return {name: f"{kind} {fields}" for kind, name, fields in entries}


def readers(root: Path) -> dict[str, Facts]:
    """The facts of the ledgers, by the name of their record."""
    return {
        "claims": of_ledger(root, "claims", "claim"),
        "conclusions": of_ledger(root, "conclusions", "conclusion"),
        "references": references(root / "book" / "references.bib"),
    }
