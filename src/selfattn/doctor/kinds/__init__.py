"""The kinds of things that can be examined, each in a module of its own."""

import difflib
import importlib
import pkgutil

from selfattn.doctor.kind import Kind


def kinds() -> dict[str, Kind]:
    """All kinds, by their names."""
    found: dict[str, Kind] = {}
    for module in pkgutil.iter_modules(__path__):
        inside = importlib.import_module(f"{__name__}.{module.name}")
        found |= {
            x.name: x for x in vars(inside).values() if isinstance(x, Kind)
        }
    return found


def find_kind(name: str) -> Kind:
    """The kind of this name.

    Raises:
        LookupError: if there is none; it lists those there are.
    """
    known = kinds()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(str(name), known, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    listed = "".join(f"\n  {one}: {known[one].asks}" for one in known)
    raise LookupError(f"There is no kind {name!r}.{meant} There are:{listed}")
