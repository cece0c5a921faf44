"""The experiments: a module a chapter, each with these names.

ABOUT      what is asked, in a sentence
SEEDS      the seeds, at least five
SETTINGS   the settings, a list of keyword arguments of `run`
SMALLEST   the cheapest of them, which the tests run again
TOLERANCE  by how much a number may differ on another machine, and why
run        run(seed, **setting) -> {name: number}
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType


def chapters() -> list[str]:
    """The chapters that have experiments."""
    here = Path(__file__).parent.glob("*.py")
    return sorted(path.stem for path in here if path.stem[0] != "_")


def load(chapter: str) -> ModuleType:
    """The module of a chapter's experiments."""
    if chapter not in chapters():
        raise ValueError(
            f"experiments exist for {', '.join(chapters())}, "
            f"but not for {chapter!r}"
        )
    return importlib.import_module(f"{__name__}.{chapter}")


def run_one(run: Callable[..., dict], setting: dict) -> dict[str, float]:
    """A run with one seed and setting.

    It stands here, as a child process does not find what the command defines.
    """
    return run(**setting)
