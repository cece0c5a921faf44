"""A corruption is applied to a copy, looked at, and taken back."""

import functools
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.measure.corruptions.checks import RECORD, findings
from tools.measure.corruptions.corruption import Corruption, Maker

BUILT = ("__pycache__", "_build", ".git", ".venv", ".*_cache", ".hypothesis")


@dataclass(frozen=True)
class Outcome:
    """What became of one corruption: the tests that found it, and how."""

    corruption: Corruption
    tests: dict[str, list[str]]

    @property
    def caught(self) -> str:
        """The first test that computes it, else the record, or nothing."""
        found = [test for test in self.tests if test != RECORD]
        return found[0] if found else RECORD if self.tests else ""


def copy_of(root: Path, folder: Path) -> Path:
    """A copy of the tree, without what was built."""
    tree = folder / "tree"
    shutil.copytree(root, tree, ignore=shutil.ignore_patterns(*BUILT))
    return tree


def tried(tree: Path, corruption: Corruption) -> Outcome:
    """Apply a corruption to the copy, ask every test, and take it back."""
    before = healthy(tree, tuple(corruption.files))
    kept: dict[Path, bytes | None] = {}
    for name, content in corruption.files.items():
        path = tree / name
        kept[path] = path.read_bytes() if path.exists() else None
        content = content() if callable(content) else content
        if content is None:
            path.unlink()
        elif isinstance(content, str):
            path.write_text(content, "utf-8")
        else:
            path.write_bytes(content)
    try:
        found = findings(tree, [*corruption.files])
        new = {
            test: [one for one in said if one not in before.get(test, ())]
            for test, said in found.items()
        }
        return Outcome(
            corruption, {t: said for t, said in new.items() if said}
        )
    finally:
        for path, old in kept.items():
            if old is None:
                path.unlink()
            else:
                path.write_bytes(old)


@functools.cache
def healthy(tree: Path, names: tuple[str, ...]) -> dict[str, list[str]]:
    """What the tests find in these files before anything is corrupted.

    A tree that somebody works on may be red, or not accepted yet.
    """
    return findings(tree, [name for name in names if (tree / name).exists()])


def sample(
    make: Maker, root: Path, seed: int, most: int, half: str = ""
) -> Iterator[Corruption]:
    """At most so many of what one maker makes, the rules dealt out evenly."""
    rng = random.Random(f"{seed} {make.__module__} {make.__name__}")
    by_rule: dict[str, list[Corruption]] = {}
    for made in make(root, rng):
        if not half or made.half == half:
            by_rule.setdefault(made.rule, []).append(made)
    for many in by_rule.values():
        rng.shuffle(many)
    taken = 0
    while taken < most and any(by_rule.values()):
        for many in by_rule.values():
            if many and taken < most:
                yield many.pop()
                taken += 1
