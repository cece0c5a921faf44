"""Figures of the chapter on looking inside."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from selfattn.plots.colours import NEUTRAL, K, Q, V

LAYERS = {"1": (Q, "o"), "2": (K, "s")}  # colour and mark of a block's heads
CURVES = {  # of probes: colour, line
    "trained": (K, "o-"),
    "untrained": (NEUTRAL, "s--"),
    "control": (V, "^:"),
}


def heads(
    axes: Any,
    weights: Tensor,
    words: Sequence[str],
    names: Sequence[str],
) -> Any:
    """A heat map for every head, with the words on the outer edges.

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
        ax.imshow(table.tolist(), cmap="Greys", vmin=0, vmax=1)
        ax.set_title(f"head {name}", fontsize=10)
        ax.set_xticks([])
        ax.set_yticks([])
    for row in axes:
        row[0].set_yticks(places, words, fontsize=9)
        row[0].set_ylabel("query")
    for ax in axes[-1]:
        ax.set_xticks(places, words, rotation=90, fontsize=9)
        ax.set_xlabel("key")
    return axes


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
    placed: list[tuple[float, float]] = []
    for weight, loss, name in sorted(zip(weights, losses, names, strict=True)):
        colour, mark = LAYERS[name.split(".")[0]]
        ax.plot(weight, loss, mark, color=colour)
        # Where heads crowd, their names stand above each other.
        crowd = sum(
            weight - x < 0.08 and abs(loss - y) < 0.3 for x, y in placed
        )
        placed.append((weight, loss))
        beside = (-7, 6 + 11 * crowd)
        ax.annotate(
            name, (weight, loss), beside, textcoords="offset points", size=9
        )
    ax.axhline(whole, color=NEUTRAL, lw=1, ls="--")
    ax.margins(y=0.1)  # room for the highest name
    ax.set(
        xlabel="weight on what has to be looked up",
        ylabel="loss without the head",
        xlim=(-0.05, 1.1),
    )
    return ax


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
