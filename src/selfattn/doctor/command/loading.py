"""The thing that a command names: imported, or read from a file."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any


def load(name: str) -> Any:
    """What "package.module:Thing" or "path.py:Thing" stands for."""
    where, _, inside = name.rpartition(":")
    if where.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(where).stem, where)
        if spec is None or spec.loader is None:
            raise ImportError(f"no module can be read from {where}")
        found: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    else:
        sys.path.insert(0, "")  # as Python itself does for -c
        found = importlib.import_module(where)
    for part in inside.split("."):
        if not hasattr(found, part):
            raise LookupError(f"There is no {part!r} in {where}")
        found = getattr(found, part)
    return found
