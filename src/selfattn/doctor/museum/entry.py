"""A room: one bug of code that people used, made anew in a few lines."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from selfattn.doctor.engine.examination import examine
from selfattn.doctor.report import Report

Thing = TypeVar("Thing", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Room:
    """One bug.

    Args:
        name: what the bug is, in a few words.
        project: whose code it was, as owner/name; or the package's name.
        thread: where it was reported; if nowhere, that version of the package.
        reported: when, as year and month; or in which version it was seen.
        versions: those that the report names, or that it was seen in, if any.
        report: what was reported, retold.
        thing: the bug made anew: a function, or a module's class.
        kind: what the doctor examines it as.
        facts: what the doctor is told.
        named: what the doctor calls it; nothing, if it finds it out and has
            no name for it.
    """

    name: str
    project: str
    thread: str
    reported: str
    versions: str
    report: str
    thing: Callable[..., Any]
    kind: str
    facts: dict[str, Any]
    named: str

    def patient(self) -> Any:
        """The function, or a module with the same weights every time."""
        if not isinstance(self.thing, type):
            return self.thing
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            return self.thing()

    def visit(self, *, time_limit: float | None = None) -> Report:
        """What the doctor says of it."""
        return examine(
            self.patient(),
            kind=self.kind,
            time_limit=time_limit,
            **self.facts,
        )


def room(
    thread: str = "",
    reported: str = "",
    *,
    kind: str,
    named: str,
    versions: str = "",
    **facts: Any,
) -> Callable[[Thing], Thing]:
    """Make a room of a function or class; its docstring retells the report.

    Args:
        thread: the issue or pull request, owner/name#number; none, if nobody
            reported it: then ``versions`` is the package and its version.
        reported: year and month.
        kind: what it is examined as.
        named: what the doctor calls it.
        versions: the versions that the report names, or it was seen in.
        facts: what the doctor is told.
    """
    project, link = reported_in(thread) if thread else seen_in(versions)
    reported = reported or f"seen in version {versions.split()[1]}"

    def put(thing: Thing) -> Thing:
        words = inspect.cleandoc(thing.__doc__ or "")
        thing.room = Room(  # type: ignore[attr-defined]
            as_words(thing.__name__),
            project,
            link,
            reported,
            versions,
            " ".join(words.split()),
            thing,
            kind,
            facts,
            named,
        )
        return thing

    return put


def reported_in(thread: str) -> tuple[str, str]:
    """A thread's project and its address.

    >>> reported_in("a/b#pull-3")
    ('a/b', 'https://github.com/a/b/pull/3')
    """
    project, _, number = thread.partition("#")
    where = "pull" if number.startswith("pull-") else "issues"
    number = number.removeprefix("pull-")
    return project, f"https://github.com/{project}/{where}/{number}"


def seen_in(versions: str) -> tuple[str, str]:
    """A package, and the address of one version of it.

    >>> seen_in("linformer 0.2.3")
    ('linformer', 'https://pypi.org/project/linformer/0.2.3/')
    """
    package, version = versions.split()
    return package, f"https://pypi.org/project/{package}/{version}/"


def as_words(name: str) -> str:
    """The words of a name, whether of a function or of a class.

    >>> as_words("top_left"), as_words("DeviationOfASample")
    ('top left', 'deviation of a sample')
    """
    spaced = re.sub("(?<=[A-Za-z])(?=[A-Z])", " ", name)
    return spaced.replace("_", " ").lower()


def rooms() -> list[Room]:
    """All rooms of the museum, by the modules they stand in."""
    museum, _, _ = __name__.rpartition(".")
    found: dict[str, Room] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        inside = importlib.import_module(f"{museum}.{module.name}")
        for thing in vars(inside).values():
            one = getattr(thing, "__dict__", {}).get("room")
            if isinstance(one, Room):
                found[one.name] = one
    return list(found.values())
