"""Figures of the page on Linformer: mixtures, spectra, and what they cost."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from statistics import median
from typing import Any

from matplotlib.axes import Axes

from selfattn.plots.colours import (
    NEUTRAL,
    OUTPUT,
    K,
    Q,
    V,
    each_with_a_look,
)
from selfattn.plots.drawing import WIDTH, Drawing, Real

Runs = Iterable[dict[str, Any]]
LOOKS = [(K, "-", "s"), (Q, "--", "o"), (V, ":", "^"), (NEUTRAL, "-.", "D")]
HIGH = 150  # of one panel in the picture of who sees whom
# What is drawn of a model: its words, and the name of its share.
PUT_IN = (
    ("nearest of the rank, put in", "nearest"),
    ("means, put in", "means"),
    ("random mixtures, put in", "random"),
)


def mixing(mixtures: Mapping[str, Sequence[Sequence[Real]]]) -> Drawing:
    """Queries above, mixtures between, keys below; lines as heavy as weights.

    Args:
        mixtures: by a name, how much of each key is in each mixture.
    """
    picture = Drawing("mixing", HIGH * len(mixtures), mixtures=dict(mixtures))
    for panel, (name, rows) in enumerate(mixtures.items()):
        top, n, m = HIGH * panel, len(rows[0]), len(rows)
        step, gap = (WIDTH - 20) / n, (WIDTH - 20) / m
        most = max(abs(x) for row in rows for x in row)
        keys = [10 + step * (j + 0.5) for j in range(n)]
        between = [10 + gap * (i + 0.5) for i in range(m)]
        picture.text(WIDTH / 2, top + 12, name, bold=True)
        for x in between:
            for query in keys:
                ends = (query, top + 36), (x, top + 74)
                picture.line(*ends, width=0.5)
        for x, row in zip(between, rows, strict=True):
            for key, weight in zip(keys, row, strict=True):
                if weight:
                    ends = (x, top + 88), (key, top + 124)
                    picture.line(*ends, width=2.4 * abs(weight) / most)
        for colour, down, places in (
            ("q", 24, keys),
            ("v", 74, between),
            ("k", 124, keys),
        ):
            for x in places:
                picture.box(x - 6, top + down, 12, 12, colour=colour, shade=1)
    return picture


def spectra(
    ax: Axes, curves: Mapping[str, Sequence[Real]]
) -> dict[str, list[float]]:
    """How much of the singular values is in the first ones.

    Args:
        ax: where to draw.
        curves: the singular values, largest first, by a name.

    Returns:
        What is drawn: for each name, the shares of the first one, two, …
    """
    drawn = {}
    for (name, sizes), look in each_with_a_look(curves.items(), LOOKS):
        colour, dashes, _ = look
        whole = sum(sizes)
        shares = [float(x / whole) for x in accumulate(sizes)]
        places = [(i + 1) / len(sizes) for i in range(len(sizes))]
        ax.plot(places, shares, dashes, color=colour, label=name)
        drawn[name] = shares
    ax.axvline(0.25, color=NEUTRAL, lw=0.8, ls=":")
    ax.set(xlabel="share of all singular values, largest first", ylim=(0, 1))
    ax.set_ylabel("share of their sum")
    ax.legend(frameon=False, fontsize=9)
    return drawn


def in_order(
    ax: Axes, runs: Runs, *, task: str, rate: float, steps: int
) -> dict[str, list[float]]:
    """Right tokens by how many mixtures: put in, and trained in.

    Args:
        ax: where to draw.
        runs: those of lists backwards and sorted.
        task: which of the two.
        rate: the learning rate whose runs are drawn.
        steps: after which budget.

    Returns:
        For each curve, the medians of its seeds.
    """
    where = {"task": task, "rate": rate}
    mine = [run for run in runs if where.items() <= run.items()]
    whole = [run for run in mine if run["k"] == 0]
    counts = sorted({run["k"] for run in mine} - {0})
    trained = {
        k: [r[f"right, {steps}"] for r in mine if r["k"] == k] for k in counts
    }
    curves = {"mixtures, trained in": trained}
    swaps = [k for k in (2, 4, 8) if f"means {k}, {steps}" in whole[0]]
    for words, name in PUT_IN:
        curves[words] = {
            k: [run[f"{name} {k}, {steps}"] for run in whole] for k in swaps
        }
    drawn = {}
    for (words, dots), look in zip(curves.items(), LOOKS, strict=True):
        colour, dashes, mark = look
        middles = [median(many) for many in dots.values()]
        ax.plot([*dots], middles, dashes, color=colour, label=words)
        for k, many in dots.items():
            ax.plot([k] * len(many), many, mark, color=colour, ms=3)
        drawn[words] = middles
    level = median(run[f"right, {steps}"] for run in whole)
    ax.axhline(level, color=OUTPUT, lw=0.8, ls=":")
    ax.set_xscale("log", base=2)
    ax.set_xticks([2, 4, 8, 16], ["2", "4", "8", "16"])
    ax.set(xlabel="mixtures", ylim=(0, 1.05), title=task)
    return drawn | {"attention": [level]}


def recalled(
    ax: Axes, runs: Runs, *, rate: float, steps: int
) -> dict[int, list[float]]:
    """Right values by mixtures for each pair, a line a number of pairs.

    Args:
        ax: where to draw.
        runs: those of recall.
        rate: the learning rate whose runs are drawn.
        steps: after which budget.

    Returns:
        For each number of pairs, the medians of its seeds.
    """
    mine = [r for r in runs if r["rate"] == rate and r["k"] > 0]
    drawn = {}
    pairs = sorted({run["pairs"] for run in mine})
    for n, (colour, dashes, mark) in each_with_a_look(pairs, LOOKS):
        counts = sorted({r["k"] for r in mine if r["pairs"] == n})
        dots = [
            [
                r[f"right, {steps}"]
                for r in mine
                if r["pairs"] == n and r["k"] == k
            ]
            for k in counts
        ]
        shares = [k / n for k in counts]
        middles = drawn[n] = [median(many) for many in dots]
        ax.plot(shares, middles, dashes, color=colour, label=f"{n} pairs")
        for x, many in zip(shares, dots, strict=True):
            ax.plot([x] * len(many), many, mark, color=colour, ms=3)
    ax.set_xscale("log", base=2)
    ax.set_xticks([0.25, 0.5, 1], ["1/4", "1/2", "1"])
    ax.set(xlabel="mixtures for each pair", ylim=(0, 1.05))
    ax.set_ylabel("values that are right")
    ax.legend(frameon=False)
    return drawn
