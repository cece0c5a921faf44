"""Figures of the chapter on positions."""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from selfattn.plots.colours import (
    NEUTRAL,
    OUTPUT,
    K,
    Q,
    V,
    each_with_a_look,
)

# What is added, what turns, and what goes into the scores.
ARMS = {
    "none": NEUTRAL,
    "sinusoidal": Q,
    "sinusoidal, shifted": Q,
    "learned": Q,
    "RoPE": K,
    "Shaw": V,
    "Transformer-XL": V,
    "T5": V,
    "T5, to 32": V,
    "ALiBi": V,
}
BANDS = ("within", "twice", "four")
MARKS = dict(zip(BANDS, ("o", "s", "^"), strict=True))
NAMES = dict(
    zip(
        BANDS,
        ("in the length trained", "to twice that", "to four times"),
        strict=True,
    )
)
CHANCE = 1 / 16
DASHES = ("-", "--", ":", "-.")


def waves(ax: Axes, table: Float[Tensor, "n d"]) -> Axes:
    """A position table: one row a position, one column a feature.

    Args:
        ax: where to draw.
        table: numbers from -1, white, to 1, black.
    """
    ax.imshow(
        table.tolist(),
        cmap="Greys",
        vmin=-1,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
    )
    ax.set(xlabel="feature", ylabel="position")
    return ax


def by_distance(
    ax: Axes,
    distance: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    *,
    ylabel: str,
) -> Axes:
    """Something that depends on how far a key is from its query.

    Args:
        ax: where to draw.
        distance: key position minus query position.
        curves: a number for each distance, by the curve's name.
        ylabel: what the numbers are.
    """
    for (name, curve), dash in each_with_a_look(curves.items(), DASHES):
        ax.plot(distance, curve, dash, color=OUTPUT, label=name)
    ax.axvline(0, color=Q, lw=1)
    ax.set(xlabel="key position − query position", ylabel=ylabel)
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize=9)
    return ax


def turned(
    ax: Axes,
    before: Float[Tensor, "n 2"],
    after: Float[Tensor, "n 2"],
    names: Sequence[str],
    *,
    colour: str,
    title: str,
) -> Axes:
    """Vectors in the plane before a rotation, dashed, and after it.

    Args:
        ax: where to draw.
        before: the vectors.
        after: the same, turned.
        names: one a vector.
        colour: of the arrows.
        title: what they are.
    """
    for name, (x, y), (u, v) in zip(
        names, before.tolist(), after.tolist(), strict=True
    ):
        ax.plot([0, x], [0, y], "--", color=colour, lw=1.5)
        ax.plot([0, u], [0, v], color=colour, lw=2)
        ax.plot(u, v, "o", color=colour)
        side, ha = (5, "left") if u >= 0 else (-5, "right")  # off the arrow
        up = 4 if v >= 0 else -12
        ax.annotate(
            name, (u, v), (side, up), textcoords="offset points", ha=ha
        )
    ax.axhline(0, color="0.8", lw=0.8, zorder=1)  # under vectors along it
    ax.axvline(0, color="0.8", lw=0.8, zorder=1)
    ax.set(xlim=(-2.8, 2.8), ylim=(-2.8, 2.8), aspect="equal", title=title)
    ax.set(xlabel="first feature", ylabel="second feature")
    return ax


def reach(ax: Axes, runs: Sequence[Mapping[str, Any]]) -> Axes:
    """Share of right answers by encoding, within and beyond the length.

    Each name stands above its row, so that a phone shows all of it.

    Args:
        ax: where to draw.
        runs: rows of the measurement, with arm, seed and the three shares.
    """
    for place, (arm, colour) in enumerate(ARMS.items()):
        seeds = [run for run in runs if run["arm"] == arm]
        for step, (band, mark) in enumerate(MARKS.items()):
            (points,) = ax.plot(
                [run[band] for run in seeds],
                [place + 0.22 * (step - 1)] * len(seeds),
                mark,
                color=colour,
                fillstyle="full" if band == "within" else "none",
                markersize=5,
            )
            points.set_label(NAMES[band] if place == 0 else "_")
        ax.text(0.08, place - 0.46, arm, va="center")
    ax.axvline(CHANCE, color=NEUTRAL, lw=1, ls="--", label="guessing")
    borders = [place - 0.66 for place in range(len(ARMS) + 1)]
    ax.set_yticks(borders, [""] * len(borders))
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="share of right answers", xlim=(-0.03, 1.03))
    ax.set_ylim(borders[-1], borders[0])
    ax.grid(axis="y", color="0.85")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.09)}
    ax.legend(frameon=False, fontsize=9, ncols=2, columnspacing=1, **below)
    return ax
