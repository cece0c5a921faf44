"""Figures of the chapter on the scale."""

from collections.abc import Mapping, Sequence

from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from selfattn.plots.colours import NEUTRAL, OUTPUT, K, V

# What the scores are divided by: colour, mark and dashes.
ARM_STYLES = {
    "none": (K, "s", "-"),
    "root": (OUTPUT, "o", "-"),
    "whole": (V, "^", "-"),
    "learned": (NEUTRAL, "D", ":"),
}
ARM_NAMES = {
    "none": "not divided",
    "root": "divided by √d",
    "whole": "divided by d",
    "learned": "times a learned number",
}


def walks(ax: Axes, paths: Float[Tensor, "pairs d"]) -> Axes:
    """Dot products as they grow, one line a pair of random vectors.

    Args:
        ax: where to draw.
        paths: the sum of the first c products, for c = 1 … d.
    """
    d = paths.shape[1]
    features = range(1, d + 1)
    for path in paths.tolist():
        ax.plot(features, path, color=NEUTRAL, lw=1)
    root = [c**0.5 for c in features]
    ax.plot(features, root, color=OUTPUT, label="± √d")
    ax.plot(features, [-x for x in root], color=OUTPUT)
    ax.set(xlabel="features added so far, d", ylabel="q · k so far")
    ax.legend(frameon=False, loc="upper left")
    return ax


def by_width(
    ax: Axes,
    widths: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    *,
    dashed: Mapping[str, Sequence[float]] | None = None,
    title: str,
) -> Axes:
    """One number against the width of the keys, a line for each divisor.

    Args:
        ax: where to draw.
        widths: the widths d_k.
        curves: the number at each width, by what the scores are divided by.
        dashed: a second number for the same divisors, drawn dashed.
        title: what the number is.
    """
    for arm, numbers in curves.items():
        colour, mark, _ = ARM_STYLES[arm]
        ax.plot(
            widths,
            numbers,
            marker=mark,
            markersize=4,
            color=colour,
            label=ARM_NAMES[arm],
        )
    for arm, numbers in (dashed or {}).items():
        ax.plot(widths, numbers, "--", color=ARM_STYLES[arm][0], lw=1)
    ax.set_xscale("log", base=2)
    ax.set(xlabel="$d_k$", title=title)
    ax.set_xticks(widths[::2], [str(d) for d in widths[::2]])
    return ax


def right_by_rate(
    ax: Axes, runs: Sequence[Mapping], *, d_k: int, floor: float
) -> Axes:
    """Right digits against the learning rate, one point a run.

    Args:
        ax: where to draw.
        runs: rows of the measurement, all of one start and optimizer.
        d_k: which width to draw.
        floor: the share that needs no attention, a dashed line.
    """
    ax.axhline(floor, color=NEUTRAL, lw=0.8, linestyle="--")
    rates = sorted({run["rate"] for run in runs})
    for step, (arm, (colour, mark, dashes)) in enumerate(ARM_STYLES.items()):
        mine = [run for run in runs if (run["arm"], run["d_k"]) == (arm, d_k)]
        shift = 1.06 ** (step - 1.5)  # side by side on a logarithmic axis
        ax.plot(
            [run["rate"] * shift for run in mine],
            [run["right"] for run in mine],
            mark,
            color=colour,
            markersize=3,
            label=ARM_NAMES[arm],
        )
        by_rate = [[r["right"] for r in mine if r["rate"] == x] for x in rates]
        ax.plot(
            [rate * shift for rate in rates],
            [sum(right) / len(right) for right in by_rate],
            dashes,
            color=colour,
            lw=1,
        )
    ax.set_xscale("log")
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.minorticks_off()
    ax.set(xlabel="learning rate", title=f"$d_k$ = {d_k}", ylim=(0, 1.05))
    return ax
