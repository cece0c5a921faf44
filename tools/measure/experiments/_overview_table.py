"""Write what the overview's lab shows, from the runs that are committed.

    python -m tools.measure.experiments._overview_table

One size of each mechanism, and the medians over the seeds.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any

from selfattn import labs
from selfattn.measurements import measured
from tools.measure.experiments import overview

PLACE = Path(labs.__file__).with_name("overview_table.json")
SHOWN = (
    *("attention", "flash", "window 64", "Longformer 64", "strided", "fixed"),
    *("Swin 64", "LSH 4", "Linformer 64", "linear", "Performer 64"),
    "average",
)
ORDERS = {"any": "", "causal": ", causal"}


def middle(runs: list[dict], name: str) -> Any:
    """The median over the seeds, or nothing where none of them has it."""
    found = [run[name] for run in runs if name in run]
    return median(found) if found else None


def tables_of(n: int, causal: bool) -> tuple[int, int]:
    """Operations and bytes of attention, whose tables fill a machine."""
    of_a_pair = 21 if causal else 16  # bytes, all that is held at once
    return 4 * n * n * overview.D, of_a_pair * n * n + n


def costs(runs: list[dict], name: str, what: str) -> dict[str, list]:
    """By order: operations or bytes at each length."""
    found = {}
    for order, words in ORDERS.items():
        numbers = []
        for n in overview.COUNTED:
            mine = [run for run in runs if run["n"] == n]
            number = middle(mine, f"{name}{words}, {what}")
            if number is None and name == "attention":
                both = tables_of(n, order == "causal")
                number = dict(zip(("operations", "bytes"), both, strict=True))[
                    what
                ]
            numbers.append(number)
        if None not in numbers:
            found[order] = [round(x) for x in numbers]
    return found


def errors(runs: list[dict], name: str) -> dict[str, dict[str, list]]:
    """By inputs and order: the error at each length."""
    found: dict[str, dict[str, list]] = {}
    for inputs in overview.RANDOM + overview.LAYERS:
        found[inputs] = {}
        for order, words in ORDERS.items():
            numbers = [
                middle(
                    [
                        run
                        for run in runs
                        if run["n"] == n and run["inputs"] == inputs
                    ],
                    f"{name}{words}",
                )
                for n in overview.LENGTHS
            ]
            if None not in numbers:
                found[inputs][order] = numbers
    return found


def table() -> dict[str, Any]:
    """All that the lab shows."""
    runs = measured("overview")["runs"]
    counts = [run for run in runs if run["task"] == "count"]
    off = [run for run in runs if run["task"] == "error"]
    return {
        "lengths": list(overview.COUNTED),
        "measured": list(overview.LENGTHS),
        "inputs": list(overview.RANDOM + overview.LAYERS),
        "mechanisms": {
            name: {
                "operations": costs(counts, name, "operations"),
                "bytes": costs(counts, name, "bytes"),
                "errors": errors(off, name),
            }
            for name in SHOWN
        },
    }


def written(found: dict[str, Any]) -> str:
    """As the file has it, a mechanism a line."""
    rows = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(row)}"
        for name, row in found["mechanisms"].items()
    )
    head = {x: y for x, y in found.items() if x != "mechanisms"}
    told = ",\n".join(
        f" {json.dumps(x)}: {json.dumps(y)}" for x, y in head.items()
    )
    return f'{{\n{told},\n "mechanisms": {{\n{rows}\n }}\n}}\n'


if __name__ == "__main__":
    PLACE.write_text(written(table()), encoding="utf-8")
    print(PLACE.name)
