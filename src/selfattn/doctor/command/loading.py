"""The thing that a command names: imported, or read from a file."""

import importlib
import importlib.util
import os
import sys
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from selfattn.doctor.command.arguments import THING
from selfattn.doctor.door.making import made
from selfattn.doctor.engine.isolation import RefusedError, Stage, Watch
from selfattn.doctor.kind import Kind
from selfattn.doctor.patient import Facts, unseen
from selfattn.doctor.sayings import FUNCTION, WRITTEN


def load(name: str, watch: Watch) -> Any:
    """What "package.module:Thing" or "path.py:Thing" stands for.

    Raises:
        RefusedError: if there is no such file, module or thing. Whatever
            else comes of the import is its own, and is not caught.
    """
    where, _, inside = name.rpartition(":")
    found: Any = load_module(where, watch)
    for part in inside.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise RefusedError(f"There is no {part!r} in {where}") from None
    if issubclass(type(found), ModuleType):
        raise RefusedError(
            f"What is examined is a thing in a module, but {inside!r} in "
            f"{where} is a module itself"
        )
    return found


def load_made(name: str, watch: Watch) -> Any:
    """The same; of a class, one that is made by the names it asks for."""
    return made(load(name, watch))


class Named:
    """A function by the name that a command gives it: loaded when called."""

    def __init__(self, name: str):
        """Keep the name; what it stands for is the child's to import."""
        self.name = name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function."""
        return self.function(*arguments, **named)

    @cached_property
    def function(self) -> Any:
        """What the name stands for."""
        return load(self.name, unseen)


def with_functions(facts: Facts, kind: Kind) -> Facts:
    """The facts, with functions in the place of names of such."""
    functions = {
        name
        for name, fact in kind.facts.items()
        if fact.saying in (FUNCTION, WRITTEN)
    }
    return {
        name: Named(x) if name in functions and is_place(x) else x
        for name, x in facts.items()
    }


def is_place(word: Any) -> bool:
    """Whether a word tells of a thing in a module or a file."""
    return isinstance(word, str) and THING.fullmatch(word) is not None


def load_module(where: str, watch: Watch) -> ModuleType:
    """The module that a name or the path of a file stands for."""
    watch(Stage("while it was imported"))
    sys.argv = [where]  # as if it ran by itself: it may read its arguments
    found = from_file(where) if where.endswith(".py") else from_module(where)
    watch(Stage(""))
    return found


def from_file(where: str) -> ModuleType:
    """A module from a file, as if it was imported from beside it."""
    path = Path(where)
    if not path.is_file():
        if os.path.lexists(path):  # a folder, say, or a link to itself
            raise RefusedError(f"{where} is there, but it is no file")
        raise RefusedError(f"There is no file {where}")
    sys.path.insert(0, str(path.parent.resolve()))  # as Python does for it
    name = path.stem
    while name in sys.modules:  # it may be named like one of ours
        name += "_"
    spec = importlib.util.spec_from_file_location(name, where)
    if spec is None or spec.loader is None:
        raise RefusedError(f"No module can be read from {where}")
    # Dataclasses and pickle look for the module of a class under its name.
    found = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(found)
    except ImportError as error:
        if "relative import" not in str(error):
            raise
        return from_package(path.resolve())
    return found


def from_package(path: Path) -> ModuleType:
    """A module by its place in the packages that its file lies in.

    Raises:
        RefusedError: if it lies in none.
    """
    names = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    if folder == path.parent:
        raise RefusedError(
            f"{path.name} imports from the package that it lies in, but there "
            f"is no __init__.py in {folder}"
        )
    sys.path.insert(0, str(folder))
    return importlib.import_module(".".join(names))


def from_module(where: str) -> ModuleType:
    """A module by its name, from here or wherever Python looks."""
    sys.path.insert(0, "")  # as Python itself does for -c
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        # What the module itself looks for in vain is another matter.
        if error.name and f"{where}.".startswith(f"{error.name}."):
            raise RefusedError(str(error)) from None
        raise
