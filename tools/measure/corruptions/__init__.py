"""Corruptions that nobody chose: made by rule, applied to a copy, counted."""

import sys
from pathlib import Path

# What the tests look with is theirs, and is found where they find it.
sys.path += [
    str(Path(__file__).parents[3] / part)
    for part in ("tests", "book/extensions")
]
