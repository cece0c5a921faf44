"""Guards on the map in CONTRIBUTING.md: its folders, and its order of imports.

The map is a table. A line of it is a room: the folders and files that its
first cell names, ``folder/`` with what lies in it and ``folder/**/`` with the
folders in it, too; a file goes with the line that names it most exactly. A
line may import from itself and from the lines before it.
"""

import ast
import functools
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

TOPS = (".ci", ".github", "book", "src", "tests", "tools")
# Where Python looks for modules, with what stands before the module's name.
ROOTS = ("src", "book/extensions", "tests/assertions", "tests", ".")
BUILT = {"__pycache__", ".ipynb_checkpoints"}
FAMILIES = "src/selfattn/doctor/kinds/"

Room = list[str]
Import = ast.Import | ast.ImportFrom


def rooms(root: Path) -> list[Room]:
    """The names in the first cell of each line of the map, in its order."""
    text = (root / "CONTRIBUTING.md").read_text("utf-8")
    table = text.split("## The house", 1)[1].split("\n## ", 1)[0]
    rows = [row for row in table.splitlines() if row.startswith("| `")]
    return [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in rows]


def fits(name: str, path: str) -> bool:
    """Whether a name of the map is that of a file, or of its folder."""
    if name.endswith("/**/"):
        return path.startswith(name.removesuffix("**/"))
    if name.endswith("/"):
        return path.rpartition("/")[0] + "/" == name
    return path == name


def place(path: str, house: list[Room]) -> int | None:
    """The number of the room that names a file most exactly, if one does."""
    found = [
        (len(name.removesuffix("**/")), not name.endswith("**/"), number)
        for number, room in enumerate(house)
        for name in room
        if fits(name, path)
    ]
    return max(found)[2] if found else None


def files(root: Path) -> Iterator[str]:
    """Every file of the tree, as a path from its root."""
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            name = path.relative_to(root)
            if path.is_file() and not BUILT & set(name.parts):
                yield name.as_posix()


def unmapped(root: Path) -> list[str]:
    """Every folder with files in it is on the map."""
    house = rooms(root)
    bare = {
        path.rpartition("/")[0]
        for path in files(root)
        if place(path, house) is None
    }
    return [f"{folder}/: on no line of the map" for folder in sorted(bare)]


def stale(root: Path) -> list[str]:
    """Every name on the map is that of something, and stands there once."""
    there = list(files(root))
    names = [name for room in rooms(root) for name in room]
    gone = [n for n in names if not any(fits(n, path) for path in there)]
    twice = sorted({n for n in names if names.count(n) > 1})
    return [f"{n}: not in the tree" for n in gone] + [
        f"{n}: twice on the map" for n in twice
    ]


def module_paths(root: Path) -> dict[str, str]:
    """The file of each module that can be imported, by the module's name."""
    found: dict[str, str] = {}
    python = [path for path in files(root) if path.endswith(".py")]
    for start in reversed(ROOTS):
        before = "" if start == "." else f"{start}/"
        for path in python:
            if path.startswith(before):
                inner = path.removeprefix(before).removesuffix(".py")
                name = inner.removesuffix("/__init__").replace("/", ".")
                found[name] = path
    return found


def arrows(root: Path) -> Iterator[tuple[str, str]]:
    """Which file imports which, at any place in it."""
    known = module_paths(root)
    for path in sorted({*known.values()}):
        for node in imports((root / path).read_text("utf-8")):
            for name in named(node, known):
                if known.get(name, path) != path:
                    yield path, known[name]


@functools.cache
def imports(text: str) -> tuple[Import, ...]:
    """The imports of a file, at any place in it; each text is read once."""
    return tuple(
        node for node in ast.walk(ast.parse(text)) if isinstance(node, Import)
    )


def named(node: Import, known: dict[str, str]) -> Iterator[str]:
    """The modules that a statement imports: of a package, what is taken."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module:
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in known else node.module


def imports_of_later_lines(root: Path) -> list[str]:
    """Nothing imports from a line after its own."""
    where = functools.cache(functools.partial(place, house=rooms(root)))
    found = []
    for one, other in arrows(root):
        here, there = where(one), where(other)
        if here is not None and there is not None and here < there:
            found.append(f"{one}: imports {other}, of a later line")
    return found


def families_apart(root: Path) -> list[str]:
    """No family of kinds imports another, unless that has an earlier line."""
    house = rooms(root)
    found = []
    for one, other in arrows(root):
        inner = [p.removeprefix(FAMILIES) for p in (one, other)]
        mine, theirs = (path.partition("/")[0] for path in inner)
        within = one.startswith(FAMILIES) and other.startswith(FAMILIES)
        if (
            within
            and mine != theirs
            and place(one, house) == place(other, house)
        ):
            found.append(f"{one}: imports {other}, of another family")
    return found


def circles(root: Path) -> list[str]:
    """No module imports one that imports it, by whatever way."""
    graph: dict[str, set[str]] = {}
    for one, other in arrows(root):
        graph.setdefault(one, set()).add(other)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        return [" <- ".join(circle.args[1])]
    return []
