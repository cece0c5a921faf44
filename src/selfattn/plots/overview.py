"""Figures of the overview: error against counted cost, and two losses."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from selfattn.plots.colours import NEUTRAL, OUTPUT, K, Q, V

Runs = Iterable[Mapping[str, Any]]
FLOOR = 0.02  # errors below are drawn here


class Look(NamedTuple):
    """How a mechanism is drawn, and in what sizes it was run."""

    colour: str
    mark: str
    sizes: tuple[str, ...]
    dashes: str = "-"
    hollow: bool = False


SIZES = ("16", "64", "256")
# Blue hides pairs by place, green by content; vermillion hears every key.
LOOKS = {
    "flash": Look(OUTPUT, "*", ("",)),
    "window": Look(Q, "o", SIZES),
    "Longformer": Look(Q, "s", SIZES, "--", hollow=True),
    "Swin": Look(Q, "D", SIZES, ":"),
    "strided": Look(Q, "^", ("",)),
    "fixed": Look(Q, "v", ("",), hollow=True),
    "LSH": Look(V, "P", ("1", "4")),
    "Linformer": Look(K, "X", SIZES, "--"),
    "linear": Look(K, "h", ("",), hollow=True),
    "Performer": Look(K, "<", SIZES, ":"),
}


def middle(runs: Runs, name: str) -> float:
    """The median of one number over the seeds."""
    return median(run[name] for run in runs)


def at(runs: Runs, **setting: Any) -> list[Mapping[str, Any]]:
    """The runs of a setting."""
    return [run for run in runs if setting.items() <= run.items()]


def errors(
    ax: Axes, runs: Runs, *, n: int, inputs: str, causal: bool
) -> dict[str, list[tuple[float, float]]]:
    """Error against counted operations, a line a mechanism, a mark a size.

    Args:
        ax: where to draw.
        runs: all of the overview's.
        n: tokens.
        inputs: of which queries and keys.
        causal: in which order.

    Returns:
        For each mechanism the points: operations over those of attention,
        and the median of the errors.
    """
    runs = list(runs)
    off = at(runs, task="error", n=n, inputs=inputs)
    counts = at(runs, task="count", n=n)
    order = ", causal" if causal else ""
    whole = middle(counts, f"attention{order}, operations")
    drawn = {}
    for name, look in LOOKS.items():
        named = [f"{name} {size}".strip() + order for size in look.sizes]
        if named[0] not in off[0]:
            continue
        shares = [middle(counts, f"{x}, operations") / whole for x in named]
        middles = [middle(off, x) for x in named]
        drawn[name] = list(zip(shares, middles, strict=True))
        shown = [max(x, FLOOR) for x in middles]
        # Hollow marks are larger, so that a full one shows inside.
        size, inside = (7, "none") if look.hollow else (4.5, look.colour)
        (line,) = ax.plot(shares, shown, look.dashes, lw=0.9, label=name)
        line.set(color=look.colour, marker=look.mark, ms=size, mfc=inside)
        for share, x in zip(shares, named, strict=True):
            seeds = [max(run[x], FLOOR) for run in off]
            ends = (min(seeds), max(seeds))
            ax.plot([share] * 2, ends, "-", color=look.colour, lw=1)
    ax.axhline(middle(off, f"average{order}"), color=NEUTRAL, lw=1, ls="--")
    ax.set(xscale="log", yscale="log", ylim=(FLOOR * 0.7, 12))
    ax.set(xlim=(0.005, 3))
    ax.minorticks_off()
    return drawn


def panels(
    axes: Sequence[Sequence[Axes]],
    runs: Runs,
    *,
    lengths: Sequence[int],
    inputs: Mapping[str, bool],
) -> dict[tuple[int, str], dict[str, list[tuple[float, float]]]]:
    """A row of panels a kind of inputs, a column a length.

    Args:
        axes: the panels.
        runs: all of the overview's.
        lengths: of the columns.
        inputs: of the rows, and whether in causal order.

    Returns:
        What `errors` returns, by length and inputs.
    """
    runs, found = list(runs), {}
    for (name, causal), row in zip(inputs.items(), axes, strict=True):
        for n, ax in zip(lengths, row, strict=True):
            found[n, name] = errors(ax, runs, n=n, inputs=name, causal=causal)
        row[0].set_ylabel(f"error, {name}")
    for n, ax in zip(lengths, axes[0], strict=True):
        ax.set_title(f"{n:,} tokens")
    for ax in axes[-1]:
        ax.set_xlabel("operations, over attention's")
    return found


def two_losses(
    ax: Axes, runs: Runs, *, arms: Sequence[str], rate: float, steps: int
) -> dict[str, tuple[float, float]]:
    """The loss with a mechanism put in, and with it trained in.

    Args:
        ax: where to draw.
        runs: all of the overview's.
        arms: the mechanisms, in this order.
        rate: the learning rate whose runs are drawn.
        steps: after which budget.

    Returns:
        For each arm the medians: put in, and trained in.
    """
    mine = at(runs, task="letters", rate=rate)
    drawn = {}
    for place, arm in enumerate(arms):
        names = (f"{arm} put in, {steps}", f"{arm}, {steps}")
        drawn[arm] = (middle(mine, names[0]), middle(mine, names[1]))
        for name, colour, mark, beside in zip(
            names, (K, V), ("s", "o"), (-0.12, 0.12), strict=True
        ):
            seeds = [run[name] for run in mine]
            ax.plot(
                [place + beside] * len(seeds), seeds, mark, color=colour, ms=4
            )
    whole = middle(mine, f"attention, {steps}")
    ax.axhline(whole, color=NEUTRAL, lw=1, ls="--")
    ax.set_xticks(range(len(arms)), arms)
    ax.set(ylabel="loss per letter, nats", xlim=(-0.5, len(arms) - 0.5))
    ax.plot([], [], "s", color=K, label="put in")
    ax.plot([], [], "o", color=V, label="trained in")
    ax.legend(frameon=False)
    return drawn
