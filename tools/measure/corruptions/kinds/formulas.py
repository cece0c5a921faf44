"""Formulas: a sign, an index, a transpose, an exponent, a number."""

import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tools.accepted.facts import MATHS
from tools.measure.corruptions import texts
from tools.measure.corruptions.corruption import Corruption, kind

RULES: dict[str, list[tuple[str, str]]] = {
    "sign": [(r"\+", "-"), (r"(?<=[\w})] )-", "+"), (r"\\times", "+")],
    "index": [
        (r"_i(?![a-z])", "_j"),
        (r"_j(?![a-z])", "_i"),
        (r"_q(?![a-z])", "_k"),
        (r"_k(?![a-z])", "_v"),
        (r"_\{ij\}", "_{ji}"),
    ],
    "transpose": [(r"\^\\top|\^T|\^\{\\top\}", "")],
    "exponent": [(r"\^2", "^3"), (r"\^\{?-1\}?", ""), (r"\\sqrt", "")],
    "letter": [(r"(?<![\w\\])q(?!\w)", "k"), (r"(?<![\w\\])n(?!\w)", "d")],
    "relation": [
        (r"\\leq?(?!\w)", r"\\geq"),
        (r"<", ">"),
        (r"\\sum", r"\\prod"),
    ],
    "number": [(r"(?<![\w.])[1-8](?![\w.])", "9")],
}


@kind("formulas")
def formulas(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Every formula of every chapter and of the notation."""
    pieces = [*texts.cells(root), *texts.files(root, "book/notation.md")]
    for piece in pieces:
        for formula in MATHS.finditer(piece.text):
            for rule, pairs in RULES.items():
                for old, new in pairs:
                    if not re.search(old, formula.group()):
                        continue
                    other = re.sub(old, new, formula.group(), count=1)
                    text = texts.replaced(piece.text, formula, other)
                    yield Corruption(
                        "formulas",
                        rule,
                        f"{piece.place} at {formula.start()}",
                        formula.group(),
                        other,
                        {piece.path: partial(piece.put, text)},
                    )
