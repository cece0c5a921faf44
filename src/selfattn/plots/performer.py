"""Figures of the page on Performer."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from selfattn.plots.colours import NEUTRAL, K, Q, V

Real = float | int
LARGEST = 260  # of a dot, in points squared
EDGE = 5.4  # of the plane
# Words that are clear of the dots beneath, and one above its mark.
HALO = withStroke(linewidth=3, foreground="white")
CLEAR: dict[str, Any] = {"path_effects": [HALO]}
ABOVE: dict[str, Any] = {"textcoords": "offset points", "ha": "center"}


def directions(
    ax: Axes,
    omega: Sequence[Sequence[Real]],
    parts: Sequence[Real],
    query: Sequence[Real],
    key: Sequence[Real],
    *,
    title: str,
) -> Axes:
    """Random directions, as large as what each gives to an estimate.

    Args:
        ax: where to draw.
        omega: the directions, pairs of numbers.
        parts: what each of them gives, none below zero.
        query: as it is compared, after scaling.
        key: likewise.
        title: what is estimated.
    """
    most = max(parts)
    sizes = [2 + LARGEST * part / most for part in parts]
    across, up = zip(*omega, strict=True)
    ax.scatter(across, up, s=sizes, color=V, alpha=0.5, lw=0)
    for point, colour, name in ((query, Q, "q"), (key, K, "k")):
        ax.plot(*zip((0, 0), point, strict=True), color=colour, lw=2)
        at = (point[0], point[1])
        ax.annotate(name, at, color=colour, weight="bold", **CLEAR)
    together = [a + b for a, b in zip(query, key, strict=True)]
    ax.plot(*together, "x", ms=9, mew=2, color=NEUTRAL)
    at = (together[0], together[1])
    bold: dict[str, Any] = {"weight": "bold", **CLEAR}
    ax.annotate("q + k", at, (0, 11), color=NEUTRAL, **ABOVE, **bold)
    ax.set(xlim=(-EDGE, EDGE), ylim=(-EDGE, EDGE), aspect="equal")
    ax.set_title(title)
    return ax


def strip(
    ax: Axes, groups: Mapping[str, Sequence[Real]], *, label: str
) -> Axes:
    """All runs of each group as dots in a row, with a line at the median.

    Args:
        ax: where to draw.
        groups: the numbers of all runs, by a name; the first is on top.
        label: what was measured.
    """
    for row, many in enumerate(groups.values()):
        ordered = sorted(many)
        middle = ordered[len(ordered) // 2]
        ax.plot(ordered, [row] * len(ordered), "o", ms=4, color=Q, alpha=0.7)
        ax.plot([middle] * 2, [row - 0.3, row + 0.3], color=K, lw=2)
    ax.set_yticks(range(len(groups)), list(groups))
    ax.invert_yaxis()
    ax.set_xlabel(label)
    return ax
