"""Figures of the page on sparse patterns: every seed, and the medians."""

from collections.abc import Mapping, Sequence
from statistics import median

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
Seeds = Sequence[Real]
LOOKS = [(Q, "-", "s"), (K, "--", "o"), (V, ":", "^")]
LOOKS += [(NEUTRAL, "-.", "D"), (OUTPUT, "-", "v")]


def curves(
    ax: Axes,
    xs: Sequence[Real],
    arms: Mapping[str, Sequence[Seeds]],
    *,
    xlabel: str,
    ylabel: str,
) -> dict[str, list[Real]]:
    """A line of medians for each arm, and a dot for each seed.

    Args:
        ax: where to draw.
        xs: what was changed.
        arms: at each of these the numbers of all seeds, by a name.
        xlabel: what was changed, in words.
        ylabel: what was measured.

    Returns:
        For each arm, its medians.
    """
    drawn = {}
    for (name, many), look in each_with_a_look(arms.items(), LOOKS):
        colour, dashes, mark = look
        drawn[name] = [median(seeds) for seeds in many]
        ax.plot(xs, drawn[name], dashes, color=colour, label=name)
        for x, seeds in zip(xs, many, strict=True):
            at = [x] * len(seeds)
            ax.plot(at, seeds, mark, ms=3.5, color=colour, alpha=0.6)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_xticks(xs, [str(x) for x in xs])
    ax.legend(frameon=False, fontsize=9)
    return drawn


def bars(
    ax: Axes, groups: Mapping[str, Sequence[Seeds]], *, ylabel: str
) -> dict[str, list[Real]]:
    """Beside each other the bars of a group: medians, and all seeds as dots.

    Args:
        ax: where to draw.
        groups: for each bar the numbers of all seeds, by the group's name.
        ylabel: what was measured.

    Returns:
        For each group, its medians.
    """
    drawn = {}
    for place, (name, many) in enumerate(groups.items()):
        drawn[name] = [median(seeds) for seeds in many]
        for i, seeds in enumerate(many):
            x = place + 0.3 * (i - (len(many) - 1) / 2)
            colour, _, mark = LOOKS[i]
            ax.bar(x, drawn[name][i], width=0.26, color=colour, alpha=0.35)
            ax.plot([x] * len(seeds), seeds, mark, ms=3.5, color=colour)
    ax.set_xticks(range(len(groups)), [*groups])
    ax.set(ylim=(0, 1.05), ylabel=ylabel)
    return drawn
