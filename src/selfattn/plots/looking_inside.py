"""Figures of the chapter on looking inside."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation
from torch import Tensor

from selfattn.plots.colours import NEUTRAL, K, Q, V
from selfattn.plots.phone import WIDTH, drawn_otherwise, figure_of

LAYERS = {"1": (Q, "o"), "2": (K, "s")}  # colour and mark of a block's heads
CURVES = {  # of probes: colour, line
    "trained": (K, "o-"),
    "untrained": (NEUTRAL, "s--"),
    "control": (V, "^:"),
}
CLOSE = 9  # more words than these stand too close below a map
LOWER = 37.5  # points: more than a word is long
NAME = 20.0  # points from a name of a crowd to the next
ROW = 26.0  # points that their row stands above the highest of the crowd
Point = tuple[float, float, str]  # of a head: weight, loss, name


def heads(
    axes: Any,
    weights: Tensor,
    words: Sequence[str],
    names: Sequence[str],
) -> Any:
    """A heat map for every head, with the words on the outer edges.

    On a phone two stand beside each other, and the words beside each row.

    Args:
        axes: an array of them, a row for each block, a column for each of
            its heads.
        weights: (heads, n, n).
        words: the n words.
        names: of the heads.
    """
    places = range(len(words))
    flat = [ax for row in axes for ax in row]
    for ax, table, name in zip(flat, weights, names, strict=True):
        look = {"cmap": "Greys", "vmin": 0, "vmax": 1, "aspect": "auto"}
        ax.imshow(table.tolist(), **look)
        ax.set_title(f"head {name}", fontsize=10)
        ax.set_xticks([])
        ax.set_yticks([])
    for row in axes:
        row[0].set_yticks(places, words, fontsize=9)
        row[0].set_ylabel("query")
    for ax in axes[-1]:
        ax.set_xticks(places, words, rotation=90, fontsize=9)
        ax.set_xlabel("key")
        if len(words) > CLOSE:
            every_other_below(ax)
    if len(axes[0]) > 2:
        drawn_otherwise(
            figure_of(flat[0]), lambda: two_a_row(weights, words, names)
        )
    return axes


def two_a_row(
    weights: Tensor, words: Sequence[str], names: Sequence[str]
) -> Figure:
    """The same as a phone shows it, with a line for each word."""
    rows = -(-len(names) // 2)
    figure = Figure(
        figsize=(WIDTH, 0.9 + rows * (0.3 + 0.142 * len(words))),
        layout="constrained",
    )
    heads(figure.subplots(rows, 2), weights, words, names)
    return figure


def every_other_below(ax: Axes) -> None:
    """Words that stand too close take turns: each other one is lower."""
    for tick in ax.xaxis.get_major_ticks()[1::2]:
        tick.set_pad(LOWER)
        tick.tick1line.set_markersize(LOWER - 1.5)
        tick.tick1line.set_markeredgecolor(NEUTRAL)


def needs(
    ax: Axes,
    weights: Sequence[float],
    losses: Sequence[float],
    names: Sequence[str],
    *,
    whole: float,
) -> Axes:
    """How much each head looks there, and the loss without it.

    Args:
        ax: where to draw.
        weights: each head's mean weight on what has to be looked up.
        losses: the loss without each.
        names: of the heads, "layer.head".
        whole: the loss with all heads.
    """
    points = sorted(zip(weights, losses, names, strict=True))
    for weight, loss, name in points:
        colour, mark = LAYERS[name.split(".")[0]]
        ax.plot(weight, loss, mark, color=colour)
    for crowd in crowds(points):
        write_names(ax, crowd)
    ax.axhline(whole, color=NEUTRAL, lw=1, ls="--", zorder=1)
    ax.margins(y=0.1)  # room for the highest name
    ax.set(
        xlabel="weight on what has to be looked up",
        ylabel="loss without the head",
        xlim=(-0.05, max(weights) + 0.1),
    )
    return ax


def crowds(points: Sequence[Point]) -> list[list[Point]]:
    """Heads in order of their weights, together where they nearly touch.

    >>> [len(c) for c in crowds([(0.1, 2.0, "1.1"), (0.2, 2.0, "1.2")])]
    [1, 1]
    >>> [len(c) for c in crowds([(0.1, 2.0, "1.1"), (0.12, 2.0, "1.2")])]
    [2]
    """
    found: list[list[Point]] = []
    for point in points:
        last = found[-1][-1] if found else (-1.0, 0.0, "")
        near = point[0] - last[0] < 0.07 and abs(point[1] - last[1]) < 0.3
        if near:
            found[-1].append(point)
        else:
            found.append([point])
    return found


def write_names(ax: Axes, crowd: Sequence[Point]) -> None:
    """A name above its point; of a crowd, in a row, a line to each."""
    line = {"arrowstyle": "-", "color": NEUTRAL, "lw": 0.8, "shrinkB": 3}
    one = len(crowd) == 1
    middle = sum(weight for weight, _, _ in crowd) / len(crowd)
    top = max(loss for _, loss, _ in crowd)
    for place, (weight, loss, name) in enumerate(crowd):
        aside = NAME * (place - (len(crowd) - 1) / 2)
        above = ScaledTranslation(
            aside / 72, (6 if one else ROW) / 72, figure_of(ax).dpi_scale_trans
        )
        ax.annotate(
            name,
            (weight, loss),
            (middle, top),
            textcoords=ax.transData + above,
            ha="center",
            size=9,
            arrowprops=None if one else {"relpos": (0.5, 0), **line},
        )


def probes(
    ax: Axes, curves: Mapping[str, Sequence[Sequence[float]]], title: str
) -> Axes:
    """What probes read right, layer by layer: a thin line for every seed.

    Args:
        ax: where to draw.
        curves: under each of the names of `CURVES`, a row of shares for each
            run, the embedding first.
        title: what was read.
    """
    for name, runs in curves.items():
        colour, line = CURVES[name]
        for i, shares in enumerate(runs):
            label = name if i == 0 else None
            ax.plot(shares, line, color=colour, lw=0.8, ms=4, label=label)
    ax.set(title=title, ylim=(0, 1.05), xlabel="blocks passed")
    ax.set_xticks(range(len(next(iter(curves.values()))[0])))
    return ax


def histograms(ax: Axes, tables: Mapping[str, Tensor], bins: int = 40) -> Axes:
    """How queries, keys and values are spread, one outline for each.

    Args:
        ax: where to draw.
        tables: numbers by name, "q", "k" and "v".
        bins: how many columns.
    """
    for name, colour in (("q", Q), ("k", K), ("v", V)):
        ax.hist(
            tables[name].flatten().tolist(),
            bins=bins,
            histtype="step",
            color=colour,
            density=True,
            label=name,
        )
    ax.set(xlabel="component", ylabel="density")
    ax.legend(frameon=False)
    return ax
