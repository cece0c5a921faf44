"""The figure of the page on benchmarks."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from selfattn.plots.colours import NEUTRAL, OUTPUT, K, Q, V

STYLES = [(Q, "-", "o"), (K, "--", "s"), (V, "-.", "^"), (NEUTRAL, ":", "D")]


def speeds(ax: Axes, runs: Sequence[dict]) -> Axes:
    """How many times as fast as the first of its race, against the length.

    Args:
        ax: where to draw.
        runs: lines of one race and one pass, as the benches write them;
            whoever comes first is what the others are compared with.
    """
    first, *others = dict.fromkeys(run["who"] for run in runs)
    for name, (colour, dashes, mark) in zip(others, STYLES, strict=False):
        points = [
            (run["n"], run["speed"]) for run in runs if run["who"] == name
        ]
        ax.plot(
            *zip(*sorted(points), strict=True),
            dashes,
            marker=mark,
            markersize=4,
            color=colour,
            label=name,
        )
    ax.axhline(1, color=OUTPUT, lw=0.8, label=first)
    ns = sorted({run["n"] for run in runs})
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(ns, [f"{n:,}" for n in ns], rotation=30)
    ax.set(xlabel="tokens", ylabel="times as fast")
    below = {"loc": "upper left", "bbox_to_anchor": (-0.05, -0.4)}
    ax.legend(frameon=False, fontsize="small", **below)
    return ax
