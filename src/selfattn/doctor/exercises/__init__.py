"""The exercises of the book, by chapters.

A chapter's exercises are in the module of its name or, when that would be too
long, in a package of that name, one module for each.
"""

import difflib
import importlib
import pkgutil

from selfattn.doctor.exercise import Exercise


def in_chapter(chapter: str) -> dict[str, Exercise]:
    """The exercises of one chapter, by their full names."""
    modules = [importlib.import_module(f"{__name__}.{chapter}")]
    for part in pkgutil.iter_modules(getattr(modules[0], "__path__", [])):
        whole = f"{modules[0].__name__}.{part.name}"
        modules.append(importlib.import_module(whole))
    found = (x for module in modules for x in vars(module).values())
    return {x.name: x for x in found if isinstance(x, Exercise)}


def chapters() -> list[str]:
    """The chapters that have exercises."""
    return [module.name for module in pkgutil.iter_modules(__path__)]


def names() -> list[str]:
    """The full names of all exercises, "<chapter>/<name>"."""
    return [name for chapter in chapters() for name in in_chapter(chapter)]


def find(name: str) -> Exercise:
    """The exercise of this name.

    Raises:
        LookupError: if there is none; it lists those there are.
    """
    chapter = str(name).partition("/")[0]
    if chapter in chapters() and name in in_chapter(chapter):
        return in_chapter(chapter)[name]
    raise LookupError(unknown(name))


def unknown(name: str) -> str:
    """What to say when there is no exercise of this name."""
    near = difflib.get_close_matches(str(name), names(), n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    listed = "".join(f"\n  {one}" for one in names())
    return f"There is no exercise {name!r}.{meant} There are:{listed}"
