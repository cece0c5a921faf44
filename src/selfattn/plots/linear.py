"""Figures of the page on linear attention."""

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
from selfattn.plots.drawing import CELL, Drawing

Real = float | int
LOOKS = [(K, "-", "s"), (Q, "--", "o"), (V, ":", "^"), (NEUTRAL, "-.", "D")]
HIGH = 92  # of one token in the picture of the memory


def memory(
    words: Sequence[str],
    states: Sequence[Sequence[Sequence[Real]]],
    outputs: Sequence[Sequence[Real]],
) -> Drawing:
    """Who sees whom: keys and values write, queries read, and none meet.

    Args:
        words: the tokens.
        states: the memory after each of them.
        outputs: what each one's query reads, divided.
    """
    picture = Drawing(
        "memory", 20 + HIGH * len(words), states=states, outputs=outputs
    )
    wide, high = CELL
    across, deep = wide * len(states[0][0]), high * len(states[0])
    left, middle = 124, 124 + across / 2
    picture.text(36, 10, "writes", bold=True)
    picture.text(300, 10, "reads", bold=True)
    for place, word in enumerate(words):
        y = 24 + HIGH * place
        half = y + 16 + deep / 2
        picture.text(36, y + 8, word)
        picture.box(14, half - 11, 22, 22, colour="k", shade=0.8)
        picture.box(38, half - 11, 22, 22, colour="v", shade=0.8)
        picture.line((66, half), (left - 6, half), arrow=True)
        if place:
            picture.line((middle, y - 26), (middle, y - 11), arrow=True)
        picture.table(
            left, y + 3, states[place], title=f"S after {word}", digits=0
        )
        picture.line((left + across + 6, half), (258, half), arrow=True)
        picture.box(264, half - 11, 22, 22, colour="q", shade=0.8)
        told = ", ".join(f"{x:.2f}" for x in outputs[place])
        picture.text(300, half + 24, f"({told})".replace("-", "−"))
    return picture


def band(
    ax: Axes,
    xs: Sequence[Real],
    curves: Mapping[str, Sequence[Sequence[Real]]],
    *,
    xlabel: str,
    ylabel: str,
) -> Axes:
    """Medians, with all that was drawn between the least and the most.

    Args:
        ax: where to draw.
        xs: what was changed.
        curves: at each of these the numbers of all draws, by a name.
        xlabel: what was changed, in words.
        ylabel: what was measured.
    """
    for (name, many), look in each_with_a_look(curves.items(), LOOKS):
        colour, dashes, mark = look
        ordered = [sorted(draws) for draws in many]
        middles = [draws[len(draws) // 2] for draws in ordered]
        ax.plot(
            xs, middles, dashes, marker=mark, ms=4, color=colour, label=name
        )
        least, most = [x[0] for x in ordered], [x[-1] for x in ordered]
        ax.fill_between(xs, least, most, color=colour, alpha=0.2, lw=0)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend(frameon=False)
    return ax


def recall(
    axes: Sequence[Axes],
    runs: Sequence[Mapping],
    *,
    arms: Sequence[str],
    read: str,
) -> Sequence[Axes]:
    """Right values by the number of pairs: a panel a number of features.

    Args:
        axes: one for each number of features.
        runs: of the committed experiment, a dot each.
        arms: what to show, in this order.
        read: the name of the share that is right.
    """
    widths = sorted({run["d"] for run in runs})
    for ax, d in zip(axes, widths, strict=True):
        for arm, (colour, dashes, mark) in each_with_a_look(arms, LOOKS):
            mine = [r for r in runs if r["arm"] == arm and r["d"] == d]
            pairs = sorted({run["pairs"] for run in mine})
            shares = [
                sorted(r[read] for r in mine if r["pairs"] == p) for p in pairs
            ]
            middles = [one[len(one) // 2] for one in shares]
            ax.plot(pairs, middles, dashes, color=colour, label=arm)
            dots = [
                (p, x)
                for p, one in zip(pairs, shares, strict=True)
                for x in one
            ]
            ax.plot(*zip(*dots, strict=True), mark, ms=4, color=colour)
        ax.axvline(d, color=OUTPUT, lw=0.8, ls=":")
        ax.set_xscale("log", base=2)
        ax.set_xticks(pairs, [str(p) for p in pairs])
        ax.set(title=f"{d} features", xlabel="pairs", ylim=(0, 1.05))
    axes[0].set_ylabel("values that are right")
    axes[0].legend(frameon=False, fontsize=9)
    return axes
