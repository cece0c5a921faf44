"""How often corruptions are caught: by kind, with intervals."""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tools.measure.corruptions.checks import RECORD
from tools.measure.corruptions.trial import Outcome

Z = 1.959964  # 95 % of a normal distribution


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The interval in which a share lies with 95 %; it never leaves 0 to 1."""
    if not of:
        return 0.0, 1.0
    share, z = hits / of, Z * Z / of
    middle = share + z / 2
    half = Z * math.sqrt(share * (1 - share) / of + z / (4 * of))
    low, high = (middle - half) / (1 + z), (middle + half) / (1 + z)
    return max(0.0, low), min(1.0, high)


def rates(outcomes: Iterable[Outcome]) -> dict[str, dict[str, Any]]:
    """For each kind how many there were, what found them, what nothing did."""
    found: dict[str, dict[str, Any]] = {}
    for outcome in outcomes:
        row = found.setdefault(
            outcome.corruption.kind,
            {"tried": 0, "by a test": Counter(), "by the record": 0},
        )
        row["tried"] += 1
        if outcome.caught == RECORD:
            row["by the record"] += 1
        elif outcome.caught:
            row["by a test"][outcome.caught] += 1
    for row in found.values():
        row["by a test"] = dict(row["by a test"].most_common())
        caught = sum(row["by a test"].values()) + row["by the record"]
        low, high = wilson(caught, row["tried"])
        row["caught"] = caught
        row["interval"] = [round(low, 3), round(high, 3)]
    return found


def edits(outcomes: Iterable[Outcome]) -> dict[str, dict[str, int]]:
    """Of edits that ought to pass: how many did not, and how many are shown.

    An edit that only the record finds is one that `make accept` shows and
    lets pass; one that a test finds is a false red.
    """
    found: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        row = found.setdefault(
            outcome.corruption.rule, {"tried": 0, "shown": 0, "red": 0}
        )
        row["tried"] += 1
        row["shown"] += outcome.caught == RECORD
        row["red"] += outcome.caught not in ("", RECORD)
    return found


def table(kinds: dict[str, dict[str, Any]]) -> str:
    """The rates as text, a line a kind."""
    lines = [f"{'kind':28}{'tried':>6}{'tests':>7}{'record':>7}{'missed':>7}"]
    for name, row in kinds.items():
        tests = sum(row["by a test"].values())
        missed = row["tried"] - row["caught"]
        low, high = row["interval"]
        lines.append(
            f"{name:28}{row['tried']:6}{tests:7}{row['by the record']:7}"
            f"{missed:7}  {row['caught'] / row['tried']:4.0%}"
            f" ({low:.0%} to {high:.0%})"
        )
    return "\n".join(lines)
