"""The kinds of things that can be examined, each in a folder of its own.

A kind's folder has a module `kind`, which puts together what stands beside
it: `calling`, how others write such a thing and how it is called; `reference`,
what a right one does, if no module of the package does it; `probes`, on which
a wrong one shows; and `mistakes`, the wrong ones that have a name. What
kinds of a family share stands one folder up: `layer/calling.py` is that of
`layer/self_attention/kind.py`, too. One mistake has one name, in functions,
layers and mechanisms: so the layers lean on `attention`, and the mechanisms
on both, as all do on the exercises. No other family imports another (the map
in CONTRIBUTING.md has the order).

Where more is to be done there is more: `exercise`, where what a thing is held
to depends on the thing; `properties`, the probes for those whose numbers
nobody knows, with `experiments`, the ways to look at them; `parts`, which
finds the parts of a module; `reading`, what can be read off it. What masks
say is no family's own: `mask_meanings`.

Every module `kind` is found, if its folder has an `__init__`. Nothing else
needs to know of a new kind, but the door, where it shall be guessed unasked.
"""

import difflib
import importlib
import pkgutil

from selfattn.doctor.kind import Kind

WHOLE = "selfattn.doctor.whole.kind"


def kinds() -> dict[str, Kind]:
    """All kinds, by their names."""
    found: dict[str, Kind] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        if module.name.endswith(".kind"):
            kind: Kind = importlib.import_module(module.name).KIND
            found[kind.name] = kind
    return found


def whole_kinds() -> dict[str, Kind]:
    """The kinds of whole models, which are made of all the others."""
    found: dict[str, Kind] = importlib.import_module(WHOLE).KINDS
    return found


def find_kind(name: str) -> Kind:
    """The kind of this name.

    Raises:
        LookupError: if there is none; it lists those there are.
    """
    known = {**kinds(), **whole_kinds()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(str(name), known, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    listed = "".join(f"\n  {one}: {known[one].does}" for one in known)
    raise LookupError(f"There is no kind {name!r}.{meant} There are:{listed}")
