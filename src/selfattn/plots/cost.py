"""Figures of the chapter on cost."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from selfattn.plots.colours import (
    NEUTRAL,
    OUTPUT,
    K,
    Q,
    V,
    each_with_a_look,
)

Real = float | int

STYLES = [(K, "-", "s"), (Q, "-", "o"), (V, "--", "^"), (NEUTRAL, ":", "D")]
HEAPS = {
    "default": (K, "s", "memory handed back after each call"),
    "kept": (Q, "o", "memory kept"),
}


def growth(
    ax: Axes,
    ns: Sequence[int],
    curves: Mapping[str, Sequence[Real]],
    *,
    ylabel: str,
    crossing: int | None = None,
) -> Axes:
    """What something costs against the number of tokens, both by powers.

    Args:
        ax: where to draw.
        ns: the numbers of tokens.
        curves: the cost at each of them, by the name of what it is.
        ylabel: the cost's name.
        crossing: where two curves cross, marked by a thin line.
    """
    for (name, costs), style in each_with_a_look(curves.items(), STYLES):
        colour, dashes, mark = style
        ax.plot(
            ns,
            costs,
            dashes,
            marker=mark,
            markersize=4,
            color=colour,
            label=name,
        )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(ns, [f"{n:,}" for n in ns], rotation=30)
    if crossing is not None:
        ax.axvline(crossing, color=OUTPUT, lw=0.8, ls=":")
    ax.set(xlabel="tokens", ylabel=ylabel)
    ax.legend(frameon=False)
    return ax


def naive_to_fused(ax: Axes, runs: Sequence[Mapping]) -> Axes:
    """Naive time over fused time by length, one point a run.

    Args:
        ax: where to draw.
        runs: rows of the measurement, of the part "faults".
    """
    lengths = sorted({run["n"] for run in runs})
    for step, (heap, (colour, mark, words)) in enumerate(HEAPS.items()):
        mine = [run for run in runs if run["what"] == heap]
        shift = 1.05 ** (2 * step - 1)  # side by side
        ax.plot(
            [run["n"] * shift for run in mine],
            [run["ratio"] for run in mine],
            mark,
            color=colour,
            markersize=4,
            fillstyle="none",
            label=words,
        )
    ax.axhline(1, color=OUTPUT, lw=0.8)
    ax.set_xscale("log", base=2)
    ax.set_xticks(lengths, [f"{n:,}" for n in lengths])
    ax.set(
        xlabel="tokens",
        ylabel="time, fused kernel = 1",
        ylim=(0, 1.3 * max(run["ratio"] for run in runs)),  # words on top
    )
    ax.legend(frameon=False, loc="upper left")
    return ax


def roofline(
    ax: Axes,
    *,
    peak: Real,
    bandwidth: Real,
    points: Mapping[str, tuple[Real, Real]],
) -> Axes:
    """What a machine can compute at most, by operations for each byte.

    Args:
        ax: where to draw.
        peak: operations a second, in TFLOP/s.
        bandwidth: of its memory, in TB/s.
        points: operations for each byte, and TFLOP/s reached, by name.
    """
    ridge = peak / bandwidth
    xs = [4, ridge, 32 * ridge]
    ax.plot(xs, [4 * bandwidth, peak, peak], color=OUTPUT, label="the roof")
    for (name, point), style in each_with_a_look(points.items(), STYLES):
        ax.plot(*point, style[2], color=style[0], label=name)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks([4, 16, 64, 256, 1024], ["4", "16", "64", "256", "1024"])
    ax.set_yticks([16, 64, 256, 1024], ["16", "64", "256", "1024"])
    ax.set(xlabel="operations for each byte of traffic", ylabel="TFLOP/s")
    ax.legend(frameon=False, loc="lower right")
    return ax
