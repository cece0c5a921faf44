"""Figures of the chapter on devices: who sends what to whom; a model's fit."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from selfattn.plots.colours import NEUTRAL, OUTPUT, K, Q, V
from selfattn.plots.drawing import WIDTH, Drawing, Real

Edge = tuple[int, int]
TALL, SIDE = 134, 26  # of a panel, and of a rank's box
STYLES = {1: (NEUTRAL, "D"), 2: (Q, "o"), 4: (K, "s"), 8: (V, "^")}


class Exchange(NamedTuple):
    """One way of sending: its title, who sends to whom, and what."""

    title: str
    edges: Sequence[Edge]  # from a rank to a rank
    what: str
    summed: bool = False  # on the way; then all send to the sum, and get it
    colour: str = "faint"


def who_sends(exchanges: Sequence[Exchange], n_ranks: int) -> Drawing:
    """A panel an exchange: ranks that send above, ranks that get below."""
    picture = Drawing(
        "who-sends", TALL * len(exchanges) - 6, exchanges=list(exchanges)
    )
    middles = [WIDTH / n_ranks * (rank + 0.5) for rank in range(n_ranks)]
    for place, exchange in enumerate(exchanges):
        top = TALL * place
        sends, gets = top + 46, top + 98
        picture.text(0, top + 10, exchange.title, anchor="start", bold=True)
        picture.text(WIDTH, top + 10, exchange.what, anchor="end")
        if exchange.summed:
            draw_sum(picture, middles, sends, gets, exchange.colour)
        else:
            for a, b in exchange.edges:
                ends = (middles[a], sends), (middles[b], gets)
                picture.line(*ends, colour=exchange.colour, arrow=True)
        for rank, x in enumerate(middles):
            for y in (sends - SIDE + 2, gets):
                picture.box(x - SIDE, y, 2 * SIDE, SIDE - 2, colour="ink")
                picture.text(x, y + SIDE / 2 - 1, f"rank {rank}")
    return picture


def draw_sum(
    picture: Drawing,
    middles: Sequence[Real],
    sends: Real,
    gets: Real,
    colour: str,
) -> None:
    """All send to one sum, and all get it."""
    y = (sends + gets) / 2
    for x in middles:
        picture.line((x, sends), (WIDTH / 2, y - 7), colour=colour)
        picture.line((WIDTH / 2, y + 7), (x, gets), colour=colour, arrow=True)
    picture.box(WIDTH / 2 - 12, y - 9, 24, 18, colour="ink")
    picture.text(WIDTH / 2, y, "+")


def forecast(
    ax: Axes,
    runs: Sequence[Mapping],
    model: Mapping[tuple[int, int], Real],
    fitted: Sequence[int],
) -> Axes:
    """Measured times by length, one mark a run, and what a model says.

    Args:
        ax: where to draw.
        runs: each with its ranks, its n and its ms.
        model: what the model says, by ranks and n.
        fitted: the lengths by which the model was fitted; only beyond the
            longest of them does it forecast.
    """
    for ranks in sorted({run["ranks"] for run in runs}):
        colour, mark = STYLES[ranks]
        mine = [run for run in runs if run["ranks"] == ranks]
        ax.plot(
            [run["n"] for run in mine],
            [run["ms"] for run in mine],
            mark,
            color=colour,
            fillstyle="none",
            markersize=4,
            label=f"{ranks} rank" + "s" * (ranks > 1),
        )
        line = sorted((n, ms) for (p, n), ms in model.items() if p == ranks)
        ax.plot(*zip(*line, strict=True), color=colour, lw=1)
    ax.axvline(max(fitted) * 2**0.25, color=OUTPUT, lw=0.8, ls=":")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ns = sorted({run["n"] for run in runs})
    ax.set_xticks(ns, [f"{n:,}" for n in ns])
    ax.set(xlabel="tokens of all ranks", ylabel="CPU time of a rank, ms")
    ax.legend(frameon=False)
    return ax
