"""The figures of the page on benchmarks."""

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from selfattn.plots.colours import (
    NEUTRAL,
    OUTPUT,
    K,
    Q,
    V,
    each_with_a_look,
)

PASSES = {"forward": (Q, "o"), "training": (K, "s")}
COLUMNS = {"speed": "times as fast", "memory": "times the memory"}
TICKS = (1 / 4, 1 / 2, 1, 2, 4, 8, 16)
FUSED = "_scaled_dot_product_flash_attention_for_cpu"
KINDS = {
    "mm, addmm": ("mm", "addmm"),
    "bmm, baddbmm, the fused kernel": ("bmm", "baddbmm", FUSED),
}
# Hollow where memory is new each time.
WAYS = {"given back": ("o", K, "none"), "kept": ("o", Q, Q)}
TIMES = (1, 2, 4, 8)
STYLES = [(Q, "-", "o"), (K, "--", "s"), (V, "-.", "^"), (NEUTRAL, ":", "D")]


def speeds(ax: Axes, runs: Sequence[dict]) -> Axes:
    """How many times as fast as the first of its race, against the length.

    Args:
        ax: where to draw.
        runs: lines of one race and one pass, as the benches write them;
            whoever comes first is what the others are compared with.
    """
    first, *others = dict.fromkeys(run["who"] for run in runs)
    for name, (colour, dashes, mark) in each_with_a_look(others, STYLES):
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
    under = ScaledTranslation(0, -0.8, ax.figure.dpi_scale_trans)
    ax.legend(
        frameon=False,
        fontsize=9,
        loc="upper left",
        bbox_to_anchor=(-0.05, 0),
        bbox_transform=ax.transAxes + under,  # below the axis's name
    )
    return ax


def races(axes: Iterable[Axes], groups: Mapping[str, Sequence[dict]]) -> None:
    """Speed and memory of all who raced, a row each under their race.

    Args:
        axes: where to draw: one for the speed, one for the memory.
        groups: by a title, lines of one race and one length, as the benches
            write them; whoever comes first is what the others are compared
            with, and has no row.
    """
    rows: list[tuple[str, list[dict]]] = []
    for title, runs in groups.items():
        rows.append((title, []))
        _, *others = dict.fromkeys(run["who"] for run in runs)
        for who in others:
            rows.append((who, [run for run in runs if run["who"] == who]))
    for ax, (key, words) in zip(axes, COLUMNS.items(), strict=True):
        for place, (_, runs) in enumerate(rows):
            for run in runs:
                colour, mark = PASSES[run["pass"]]
                ax.plot(run[key], place, mark, color=colour, markersize=5)
        ax.axvline(1, color=OUTPUT, lw=0.8)
        ax.set_yticks(range(len(rows)), [name for name, _ in rows])
        for label, (_, runs) in zip(ax.get_yticklabels(), rows, strict=True):
            label.set_fontweight("normal" if runs else "bold")
        ax.set(ylim=(len(rows) - 0.5, -0.5), xscale="log", xlabel=words)
        ax.set_xticks(TICKS, ["¼", "½", *map(str, TICKS[2:])], minor=False)
        ax.set_xticks([], minor=True)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", lw=0.4)
        for name, (colour, mark) in PASSES.items():
            ax.plot([], [], mark, color=colour, label=name)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.1)}
        ax.legend(frameon=False, ncols=2, **below)


def shares(ax: Axes, told: Mapping[str, Mapping[str, float]]) -> Axes:
    """What part of its time each spends in products of matrices.

    Args:
        ax: where to draw.
        told: by a name, the shares of the operations of PyTorch that took
            most, as the benches write them.
    """
    starts = [0.0] * len(told)
    for colour, (kind, these) in zip((K, Q), KINDS.items(), strict=True):
        parts = [
            sum(one.get(f"aten::{name}", 0) for name in these)
            for one in told.values()
        ]
        ax.barh(list(told), parts, left=starts, color=colour, label=kind)
        starts = [a + b for a, b in zip(starts, parts, strict=True)]
    rest = [1 - start for start in starts]
    ax.barh(
        list(told),
        rest,
        left=starts,
        color="none",
        edgecolor=NEUTRAL,
        label="all else",
    )
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), xlabel="share of the time")
    below = {"loc": "upper left", "bbox_to_anchor": (0, -0.25)}
    ax.legend(frameon=False, **below)
    return ax


def memory_kept(ax: Axes, lines: Sequence[dict]) -> Axes:
    """How many times ours everybody's time is, with memory given and kept.

    Args:
        ax: where to draw: a row for each of the others, with two marks.
        lines: of both ways, as the bench of new memory writes them.
    """
    rows: dict[str, dict[str, float]] = {}
    for line in lines:
        if line["to_mine"] != [1, 1, 1]:
            name = f"{line['bench']}, {line['race']}: {line['who']}"
            row = rows.setdefault(name, {})
            row[line["memory"]] = 1 / line["to_mine"][1]
    for place, row in enumerate(rows.values()):
        ends = [row[way] for way in WAYS]
        ax.plot(ends, [place] * 2, color=NEUTRAL, lw=1, zorder=1)
        for end, (mark, colour, inside) in zip(
            ends, WAYS.values(), strict=True
        ):
            ax.plot(end, place, mark, color=colour, mfc=inside, markersize=6)
    for way, (mark, colour, inside) in WAYS.items():
        ax.plot([], [], mark, color=colour, mfc=inside, label=f"memory {way}")
    ax.axvline(1, color=OUTPUT, lw=0.8)
    ax.set_yticks(range(len(rows)), list(rows), fontsize=9)
    ax.set(ylim=(len(rows) - 0.5, -0.5), xscale="log")
    ax.set_xlabel("time, as a multiple of ours")
    ax.set_xticks(TIMES, [str(n) for n in TIMES], minor=False)
    ax.set_xticks([], minor=True)
    ax.grid(axis="x", lw=0.4)
    below = {"loc": "upper center", "bbox_to_anchor": (0.3, -0.12)}
    ax.legend(frameon=False, ncols=2, **below)
    return ax
