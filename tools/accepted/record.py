"""The record of what was accepted: a line a fact, a file a subject."""

from collections.abc import Iterator
from pathlib import Path

from tools.accepted import files, pages, rows, words
from tools.accepted.facts import Facts, digest

RECORD = "tests/accepted"
HOW = "read it again, and then `make accept` (tools.build.accept)"


def facts(root: Path) -> dict[str, Facts]:
    """All facts of a tree, by the name of the file that records them."""
    found: dict[str, Facts] = {}
    for part in (pages, rows, words, files):
        found |= part.readers(root)
    return found


def recorded(root: Path, name: str) -> dict[str, str]:
    """The digest of each fact that was accepted, by where it stands."""
    path = root / RECORD / f"{name}.txt"
    if not path.exists():
        return {}
    lines = path.read_text("utf-8").splitlines()
    return {key: mark for mark, key in (x.split(" ", 1) for x in lines)}


def write(root: Path, name: str, known: Facts) -> None:
    """Write the digests of what is accepted from now on."""
    path = root / RECORD / f"{name}.txt"
    path.parent.mkdir(exist_ok=True)
    lines = [f"{digest(known[key])} {key}\n" for key in sorted(known)]
    path.write_text("".join(lines), "utf-8")


def unaccepted(root: Path, name: str, known: Facts) -> Iterator[str]:
    """Each fact that is not as it was accepted, one sentence each."""
    before = recorded(root, name)
    for key in sorted(before.keys() - known.keys()):
        yield f"{name}: {key}: is gone; {HOW}"
    for key, fact in sorted(known.items()):
        if key not in before:
            yield f"{name}: {key}: is new; {HOW}"
        elif before[key] != digest(fact):
            yield f"{name}: {key}: has changed; {HOW}"
