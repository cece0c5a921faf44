"""Figures of the chapter on heads."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from selfattn.plots.colours import NEUTRAL, K, Q, V

TOKEN_COLOURS = (Q, K, V)
LAYER_STYLES = {1: (NEUTRAL, "s"), 2: (V, "o")}


def owners(
    ax: Axes, rows: Sequence[Sequence[str]], tokens: Sequence[str], title: str
) -> Axes:
    """A table of features, each cell in the colour of the token it is from.

    Args:
        ax: where to draw.
        rows: what stands in each cell, its token's name first: "cat 3".
        tokens: up to three names.
        title: what the table is.
    """
    colours = dict(zip(tokens, TOKEN_COLOURS, strict=True))
    for i, row in enumerate(rows):
        for j, text in enumerate(row):
            colour = colours[text.split()[0]]
            box = {"boxstyle": "square,pad=0.5", "fc": colour, "alpha": 0.3}
            ax.text(
                j,
                i,
                text,
                ha="center",
                va="center",
                fontsize=9,
                bbox=box | {"ec": "none"},
            )
    ax.set(xlim=(-0.6, len(rows[0]) - 0.4), ylim=(len(rows) - 0.4, -0.6))
    ax.set_axis_off()
    ax.set_title(title, fontsize="medium")
    return ax


def found_by_arm(ax: Axes, runs: Sequence[Mapping]) -> Axes:
    """Share of both digits that are right, one point a run and digit.

    Args:
        ax: where to draw.
        runs: rows of the measurement, with arm, next and previous.
    """
    arms = list(dict.fromkeys(run["arm"] for run in runs))
    for step, (name, colour, mark) in enumerate(
        (("next", Q, "o"), ("previous", K, "x"))
    ):
        points = [(arms.index(r["arm"]), r[name]) for r in runs]
        ax.plot(
            [x + 0.24 * (step - 0.5) for x, _ in points],
            [y for _, y in points],
            mark,
            color=colour,
            fillstyle="none",
            markersize=5,
            label=f"digit of the {name} name",
        )
    ax.axhline(0.1, color=NEUTRAL, linestyle=":", label="guessing")
    ax.set_xticks(range(len(arms)), [a.replace(", ", ",\n") for a in arms])
    ax.set(ylabel="share of digits that are right", ylim=(0, 1.05))
    ax.legend(frameon=False, loc="center", bbox_to_anchor=(0.42, 0.55))
    return ax


def looks_of_heads(ax: Axes, runs: Sequence[Mapping]) -> Axes:
    """Each head of each run, by its weight on two kinds of key.

    Args:
        ax: where to draw.
        runs: rows of the measurement, with "before 1.1", "after 1.1" and so
            on: what is looked at, the layer, the head.
    """
    for layer, (colour, mark) in LAYER_STYLES.items():
        names = [
            name.removeprefix("before ")
            for name in runs[0]
            if name.startswith(f"before {layer}.")
        ]
        ax.plot(
            [run[f"before {name}"] for run in runs for name in names],
            [run[f"after {name}"] for run in runs for name in names],
            mark,
            color=colour,
            fillstyle="none",
            label=f"heads of layer {layer}",
        )
    ax.set(
        xlabel="weight on the token before",
        ylabel="weight on what followed last time",
        xlim=(-0.02, 1),
        ylim=(-0.02, 1),
    )
    ax.legend(frameon=False, loc="upper right")
    return ax
