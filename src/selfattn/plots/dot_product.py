"""Figures of the chapter on queries, keys and values."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from torch import Tensor

from selfattn.plots.colours import NEUTRAL, OUTPUT, K, Q, V

ARM_STYLES = {
    "separate": (Q, "o"),
    "shared": (K, "s"),
    "shared, wider": (K, "^"),
    "shared, self hidden": (V, "D"),
}


def table(
    ax: Axes,
    values: Float[Tensor, "rows columns"],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    colour: str = NEUTRAL,
    decimals: int = 2,
) -> Axes:
    """A matrix as a table of shaded numbers, darker where larger.

    Args:
        ax: where to draw.
        values: the numbers.
        rows: the name of each row.
        columns: the name of each column.
        title: what the table shows.
        colour: of the largest number.
        decimals: how many places to print.

    Raises:
        ValueError: if there is not one name for each row and each column.
    """
    if tuple(values.shape) != (len(rows), len(columns)):
        raise ValueError(
            "rows and columns must name those of values, which are "
            f"{tuple(values.shape)}, but they name {len(rows)} and "
            f"{len(columns)}"
        )
    shades = LinearSegmentedColormap.from_list("shades", ["white", colour])
    low, high = min(0.0, values.min().item()), values.max().item()
    # Twice the range, so that black numbers stay readable on every shade.
    ax.imshow(
        values.tolist(), cmap=shades, vmin=low, vmax=low + 2 * (high - low)
    )
    for i, row in enumerate(values.tolist()):
        for j, value in enumerate(row):
            ax.text(j, i, f"{value:.{decimals}f}", ha="center", va="center")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(title)
    return ax


def lookup_curves(
    ax: Axes,
    angles: Float[Tensor, " n"],
    curves: Mapping[str, Float[Tensor, " n"]],
    cards: Float[Tensor, " n_k"],
    values: Float[Tensor, " n_k"],
) -> Axes:
    """What a look-up returns as the query turns, one curve a sharpness.

    Args:
        ax: where to draw.
        angles: the query's angles, in degrees.
        curves: what is returned at each angle, by the curve's name.
        cards: the keys' angles, in degrees.
        values: the keys' values.
    """
    dashes = [":", "--", "-"]
    for (name, curve), dash in zip(curves.items(), dashes, strict=True):
        ax.plot(
            angles.tolist(), curve.tolist(), dash, color=OUTPUT, label=name
        )
    ax.plot(
        cards.tolist(),
        values.tolist(),
        "o",
        color=V,
        label="key and its value",
    )
    ax.set(
        xlabel="angle of the query (degrees)",
        ylabel="value returned",
        xticks=cards.tolist(),
    )
    ax.grid(axis="x", color=K, alpha=0.4)
    ax.legend(frameon=False, loc="upper left")
    return ax


def value_plane(
    ax: Axes,
    v: Float[Tensor, "n 2"],
    output: Float[Tensor, "n 2"],
    tokens: Sequence[str],
) -> Axes:
    """Values and outputs as points; the outputs lie among the values.

    Args:
        ax: where to draw.
        v: three values.
        output: an output for each token.
        tokens: the tokens' names.
    """
    ax.fill(*v.T.tolist(), color=V, alpha=0.15, label="all mixtures")
    ax.plot(*v.T.tolist(), "o", color=V, label="values")
    ax.plot(*output.T.tolist(), "x", color=OUTPUT, label="outputs")
    for token, value in zip(tokens, v.tolist(), strict=True):
        ax.annotate(token, value, (6, 4), textcoords="offset points")
    # Alternately below and above, so that neighbours do not collide.
    for place, i in enumerate(output[:, 0].argsort().tolist()):
        ax.annotate(
            tokens[i],
            output[i].tolist(),
            (0, -15 if place % 2 == 0 else 7),
            textcoords="offset points",
            ha="center",
            style="italic",
        )
    ax.set(xlabel="first feature", ylabel="second feature", aspect="equal")
    ax.set(xlim=(-0.2, 3.7), ylim=(-0.3, 2.4))
    ax.legend(frameon=False, loc="upper right")
    return ax


def found_by_cycle(ax: Axes, runs: Sequence[Mapping]) -> Axes:
    """Share of queries that look at the right token, by length of cycle.

    Args:
        ax: where to draw.
        runs: rows of the measurement, with arm, cycle, seed and found.
    """
    cycles = sorted({run["cycle"] for run in runs})
    place = np.arange(len(cycles))
    for step, (arm, (colour, mark)) in enumerate(ARM_STYLES.items()):
        shares = [
            [r["found"] for r in runs if (r["arm"], r["cycle"]) == (arm, c)]
            for c in cycles
        ]
        for x, seeds in zip(place + 0.15 * (step - 1.5), shares, strict=True):
            ax.plot(
                [x] * len(seeds),
                seeds,
                mark,
                color=colour,
                markersize=4,
                fillstyle="none",
                label=arm if x < 0.5 else None,
            )
    bound = [1.0 if c == 1 else 1 - 1 / c for c in cycles]
    ax.hlines(bound, place - 0.4, place + 0.4, color=NEUTRAL, label="bound")
    ax.set_xticks(place, [str(c) for c in cycles])
    ax.set(
        xlabel="names in a cycle",
        ylabel="share of queries that find their key",
        ylim=(-0.05, 1.05),
    )
    ax.legend(frameon=False, loc="lower right", fontsize=9)
    return ax
