"""Facts of the package: what its docstrings state, what the doctor says."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.accepted.facts import NUMERAL, Facts, listed

STATED = re.compile(
    rf"""
    \((?:[^()\n]|\n\ *)*[,…](?:[^()\n]|\n\ *)*\) # a shape
    | ``?[^`\n]+``? # code
    | \b(?:True|False|None|default)\b
    | {NUMERAL.pattern}
    """,
    re.VERBOSE | re.IGNORECASE,
)
# All that these parts say is for the reader to see; a shorter string of the
# doctor's is a name.
SPEAKING = {"doctor": ("advice", 12), "plots": ("labels", 1)}
SPEAKING["labs"] = SPEAKING["plots"]
Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def documented(
    tree: ast.AST, name: str = ""
) -> Iterator[tuple[str, Documented]]:
    """Whatever may have a docstring, by its name in the module."""
    if isinstance(tree, Documented):
        yield name, tree
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Documented):
            inner = f"{name}.{node.name}".lstrip(".")  # type: ignore[union-attr]
            yield from documented(node, inner)


def strings(tree: ast.AST, shortest: int) -> list[str]:
    """All that a part of the package says, docstrings included."""
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and len(node.value) >= shortest
    ]


def of_module(path: Path, name: str) -> tuple[str, Facts]:
    """What each docstring of a module states, or all that the module says.

    With the name of the record that it goes to.
    """
    tree = ast.parse(path.read_text("utf-8"))
    facts: Facts = {}
    part = name.partition("/")[0]
    if part in SPEAKING:
        record, shortest = SPEAKING[part]
        for top in tree.body:
            if isinstance(top, ast.Import | ast.ImportFrom):
                continue
            key = getattr(top, "name", "module")
            said = [facts[key]] if key in facts else []
            if said := said + strings(top, shortest):
                facts[key] = listed(said)
        return record, facts
    for name, node in documented(tree):
        found = [m.group() for m in STATED.finditer(docstring(node))]
        if found:
            facts[name or "module"] = listed(found)
    return "docstrings", facts


def docstring(node: Documented) -> str:
    """A docstring without its examples, which are run."""
    text = ast.get_docstring(node) or ""
    return re.sub(r"^ *>>> .*?(?:\n\s*\n|\Z)", "", text, flags=re.M | re.S)


def readers(root: Path) -> dict[str, Facts]:
    """The facts of the package's docstrings, and of the doctor's words."""
    found: dict[str, Facts] = {}
    package = root / "src" / "selfattn"
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).with_suffix("").as_posix()
        record, facts = of_module(path, name)
        together = found.setdefault(record, {})
        together |= {f"{name}: {key}": fact for key, fact in facts.items()}
    return found
