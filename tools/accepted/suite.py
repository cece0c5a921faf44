"""How much the suite tests: cases, asserts and bounds, function by function.

The suite may grow as it likes. What is on record must be there: a test that
is gone, fewer cases or asserts, another bound are red. To let a test go,
CHANGELOG.md names it, or its file; then `make accept` takes it off.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE = "tests/accepted/suite.txt"
GONE = "gone"
ASSERTING = re.compile(r"assert|raises|warns|expect|check|exits|refused|judge")
EXAMPLES = ("src/selfattn", "book", "README.md")


@dataclass(frozen=True)
class Size:
    """How much a function of the suite tests."""

    cases: int
    asserts: int
    bounds: tuple[float, ...]

    def __str__(self) -> str:
        """As a line of the record ends."""
        numbers = ",".join(f"{bound:g}" for bound in self.bounds)
        return f"{self.cases} {self.asserts} {numbers or '-'}"


def bounds(node: ast.AST) -> tuple[float, ...]:
    """What a function compares with or hands on by name, and all fractions."""
    found: list[float] = []
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, float):
            found.append(part.value)
        elif isinstance(part, ast.Compare):
            found += numbers(part)
        elif isinstance(part, ast.keyword):
            found += numbers(part.value)
    return tuple(sorted(found))


def numbers(node: ast.AST) -> Iterator[float]:
    """The numbers in an expression, but not those of a call within it."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield abs(float(node.value))
    if not isinstance(node, ast.Call):
        for child in ast.iter_child_nodes(node):
            yield from numbers(child)


def asserts(node: ast.AST) -> int:
    """How many asserts a function has, calls of such as assert, and `==`."""
    return sum(
        isinstance(part, ast.Eq)
        or (
            isinstance(part, ast.Assert)
            and not isinstance(part.test, ast.Constant)
        )
        or (
            isinstance(part, ast.Call) and bool(ASSERTING.search(called(part)))
        )
        for part in ast.walk(node)
    )


def called(call: ast.Call) -> str:
    """The last name of what is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def cases(node: ast.AST, constants: dict[str, int]) -> int:
    """With how many parameters a test runs, as far as the text tells."""
    count = 1
    for mark in getattr(node, "decorator_list", []):
        if isinstance(mark, ast.Call) and called(mark) == "parametrize":
            values = mark.args[1] if len(mark.args) > 1 else None
            count *= length(values, constants)
    return count


def length(values: ast.AST | None, constants: dict[str, int]) -> int:
    """How many elements a literal has, or the constant of that name."""
    if isinstance(values, ast.List | ast.Tuple | ast.Set):
        return len(values.elts)
    if isinstance(values, ast.Dict):
        return len(values.keys)
    return constants.get(getattr(values, "id", ""), 1)


def of_file(path: Path) -> Iterator[tuple[str, Size]]:
    """Each function of a file that tests something, by its name."""
    tree = ast.parse(path.read_text("utf-8"))
    constants = {
        target.id: length(node.value, {})
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    top = [n for n in tree.body if not isinstance(n, ast.FunctionDef)]
    told = [
        value for n in top if isinstance(n, ast.Assign) for value in numbers(n)
    ]
    yield "constants", Size(1, 0, tuple(sorted(told)))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            size = Size(cases(node, constants), asserts(node), bounds(node))
            if node.name.startswith("test_") or size.asserts:
                yield node.name, size


def suite(root: Path) -> dict[str, Size]:
    """All that the tests test, and the examples that are run."""
    found: dict[str, Size] = {}
    for path in sorted((root / "tests").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for function, size in of_file(path):
            found[f"{name}::{function}"] = size
    for place in EXAMPLES:
        paths = [root / place, *(root / place).rglob("*")]
        kept = (p for p in paths if p.suffix in (".py", ".md") and p.exists())
        for path in sorted(kept):
            if count := path.read_text("utf-8").count(">>> "):
                name = path.relative_to(root).as_posix()
                found[f"{name}::examples"] = Size(count, 0, ())
    return found


def recorded(root: Path) -> dict[str, Size]:
    """What the suite tested when it was last accepted."""
    found = {}
    for line in (root / FILE).read_text("utf-8").splitlines():
        key, cases, asserts, told = line.rsplit(" ", 3)
        limits = [float(x) for x in told.split(",") if x != "-"]
        found[key] = Size(int(cases), int(asserts), tuple(limits))
    return found


def write(root: Path, known: dict[str, Size]) -> None:
    """Keep what the suite tests now."""
    lines = [f"{key} {size}\n" for key, size in sorted(known.items())]
    (root / FILE).write_text("".join(lines), "utf-8")


def less(before: Size, now: Size | None) -> str:
    """In which way a function tests less, if it does."""
    if now is None:
        return GONE
    if now.cases < before.cases:
        return f"{now.cases} of {before.cases} cases"
    if now.asserts < before.asserts:
        return f"{now.asserts} of {before.asserts} asserts"
    was = Counter(f"{x:g}" for x in before.bounds)
    new = Counter(f"{x:g}" for x in now.bounds)
    if gone := was - new:
        return f"another bound than {', '.join(sorted(gone))}"
    return ""


def shrinking(root: Path) -> Iterator[tuple[str, str]]:
    """Each function that tests less than it did, and in which way.

    One that moved to another file under its name is not gone.
    """
    now = suite(root)
    places: dict[str, list[Size]] = {}
    for key, size in now.items():
        places.setdefault(key.rpartition("::")[2], []).append(size)
    for key, before in recorded(root).items():
        name = key.rpartition("::")[2]
        own = [now[key]] if key in now else []
        if name not in ("constants", "examples"):
            own = own or places.get(name, [])
        if all(less(before, size) for size in own):
            yield key, less(before, own[0] if own else None)


def let_go(root: Path) -> Iterator[str]:
    """The tests that are gone, and the changelog does not say so.

    Where a file has as many cases as before, they have other names now.
    """
    said = (root / "CHANGELOG.md").read_text("utf-8")
    before, now = per_file(recorded(root)), per_file(suite(root))
    for key, how in shrinking(root):
        file, _, name = key.rpartition("::")
        fewer = how == GONE or how.endswith(" cases")
        excused = name in said or Path(file).name in said
        if fewer and not excused and now[file] < before[file]:
            yield key


def per_file(known: dict[str, Size]) -> Counter[str]:
    """How many cases each file has."""
    count: Counter[str] = Counter()
    for key, size in known.items():
        count[key.rpartition("::")[0]] += size.cases
    return count
