"""The lab of the overview: which mechanisms remain, and at what price.

The reader says how long a text is, in which order it is read, what an error
may be, whether a mask of one's own is wanted and how many bytes there are;
and sees what of eleven mechanisms is left, what each counted, and how far it
was from attention where that was measured.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice, Flag
from selfattn.plots import colours

# Of the runs that are committed for the page, the medians over their seeds;
# tools/measure/experiments/_overview_table.py writes them.
TABLE = json.loads(
    Path(__file__).with_name("overview_table.json").read_text("utf-8")
)
LENGTHS: list[int] = TABLE["lengths"]
MEASURED: list[int] = TABLE["measured"]  # where errors are known
MECHANISMS = [name for name in TABLE["mechanisms"] if name != "average"]
EXACT = ("attention", "flash")  # and the only ones that take any mask
INPUTS: list[str] = TABLE["inputs"]
BOUNDS = {
    "any": None,
    "two thirds": 2 / 3,
    "a third": 1 / 3,
    "a tenth": 0.1,
    "none": 0.0,
}
MEBIBYTES = [1, 8, 64, 512, 4096]


class Row(NamedTuple):
    """What one mechanism comes to."""

    operations: int | None  # none: it has no causal order
    bytes: int | None
    error: float | None  # none: not measured
    why: str  # it drops out; nothing if it remains


class Chosen(NamedTuple):
    """What the lab shows."""

    rows: list[Row]
    remain: int
    cheapest: str  # of those that remain
    nearest: str  # of those that remain and were measured
    average: float | None  # the error of no attention at all


class OverviewLab(Lab):
    """What of eleven mechanisms is left, and what it costs.

    Attributes:
        n: tokens.
        causal: whether nobody sees what comes later.
        inputs: which queries and keys the errors are of.
        error: the largest error, in words.
        mask: whether a mask of one's own is wanted.
        memory: how many mebibytes a head may hold.
    """

    n = Choice(2048, LENGTHS)
    causal = Flag(False)
    inputs = Choice("normal", INPUTS)
    error = Choice("any", list(BOUNDS))
    mask = Flag(False)
    memory = Choice(4096, MEBIBYTES)

    def chosen(self) -> Chosen:
        """What the page shows."""
        return chosen(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.chosen()
        left = [
            name
            for name, row in zip(MECHANISMS, now.rows, strict=True)
            if not row.why
        ]
        return (
            f"A table of eleven mechanisms at {self.n:,} tokens. "
            f"{now.remain} remain: {', '.join(left) or 'none'}."
        )

    def figure(self) -> Figure:
        """Operations of each, those that remain in colour."""
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        ax = figure.subplots()
        now = self.chosen()
        for place, row in enumerate(now.rows):
            colour = colours.NEUTRAL if row.why else colours.Q
            alpha = 0.3 if row.why else 1.0
            ax.barh(place, row.operations or 0, color=colour, alpha=alpha)
        ax.set_yticks(range(len(MECHANISMS)), MECHANISMS)
        ax.invert_yaxis()
        ax.set(xlabel="operations of one head", xscale="log")
        ax.spines[["top", "right"]].set_visible(False)
        return figure


def row_of(name: str, values: dict[str, Any]) -> Row:
    """Costs and error of one mechanism, and why it drops out."""
    known = TABLE["mechanisms"][name]
    order = "causal" if values["causal"] else "any"
    if order not in known["operations"]:
        return Row(None, None, None, "no causal order")
    at = LENGTHS.index(values["n"])
    operations, held = (known[x][order][at] for x in ("operations", "bytes"))
    error = error_of(name, values)
    bound = BOUNDS[values["error"]]
    why = ""
    if values["mask"] and name not in EXACT:
        why = "takes no such mask"
    elif held > values["memory"] * 2**20:
        why = "too many bytes"
    elif bound is not None:
        why = beyond(error, bound)
    return Row(operations, held, error, why)


def beyond(error: float | None, bound: float) -> str:
    """What is wrong with an error, if anything is."""
    if error is None:
        return "error not measured"
    return "error too large" if error > bound else ""


def error_of(name: str, values: dict[str, Any]) -> float | None:
    """The measured error of a mechanism, if there is one."""
    if name in EXACT:
        return 0.0
    order = "causal" if values["causal"] else "any"
    known = TABLE["mechanisms"][name]["errors"][values["inputs"]]
    if order not in known or values["n"] not in MEASURED:
        return None
    return known[order][MEASURED.index(values["n"])]


def chosen(**values: Any) -> Chosen:
    """Go through all mechanisms; see `OverviewLab`."""
    rows = [row_of(name, values) for name in MECHANISMS]
    left = {
        name: row
        for name, row in zip(MECHANISMS, rows, strict=True)
        if not row.why
    }
    return Chosen(
        rows,
        len(left),
        least({name: row.operations for name, row in left.items()}),
        least({name: row.error for name, row in left.items()}),
        error_of("average", values),
    )


def least(numbers: Mapping[str, float | int | None]) -> str:
    """The first name of the least number, of those that there are."""
    known = {name: x for name, x in numbers.items() if x is not None}
    return min(known, key=lambda name: known[name]) if known else ""
