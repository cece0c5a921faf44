"""Figures of the page on Swin: who has heard whom, losses, neighbours."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from matplotlib.axes import Axes

from selfattn.plots.colours import NEUTRAL, OUTPUT, K, Q, V
from selfattn.plots.drawing import WIDTH, Drawing, Real

Runs = Iterable[dict[str, Any]]
CELL, GAP = 17, 12
WINDOWS = {"2x2": 4, "3x4": 12, "3x6": 18}  # tokens in each
# What is drawn of the pictures: its words, the arm, what was put in, the look.
ARMS = (
    ("shifted, trained in", "shifted", "", Q, "-o"),
    ("fixed, trained in", "fixed", "", V, "-^"),
    ("shifted, put in", "full", "put in shifted {}, ", Q, ":s"),
    ("fixed, put in", "full", "put in fixed {}, ", V, ":v"),
)


def heard(
    panels: Mapping[str, tuple[Sequence[bool], Sequence[int]]],
    columns: int,
    token: int,
) -> Drawing:
    """Pictures of tokens: what one of them has heard, and the windows.

    Args:
        panels: by a title, of each token whether it is heard and the number
            of its window.
        columns: of each picture.
        token: the one that hears.
    """
    rows = len(next(iter(panels.values()))[0]) // columns
    deep = 24 + CELL * rows + GAP
    lines = -(-len(panels) // 2)
    picture = Drawing("heard", deep * lines, panels=dict(panels), token=token)
    for place, (title, (seen, own)) in enumerate(panels.items()):
        left = WIDTH / 4 * (1 + 2 * (place % 2)) - CELL * columns / 2
        top = deep * (place // 2) + 24
        picture.text(left + CELL * columns / 2, top - 12, title, bold=True)
        for i, told in enumerate(seen):
            x, y = left + CELL * (i % columns), top + CELL * (i // columns)
            colour = "k" if told else "faint"
            side, shade = CELL - 4, float(told)
            if i == token:
                colour, shade = "q", 1.8
            picture.box(x + 2, y + 2, side, side, colour=colour, shade=shade)
        walls(picture, own, columns, left, top)
    return picture


def walls(
    picture: Drawing, own: Sequence[int], columns: int, left: Real, top: Real
) -> None:
    """Lines between neighbours whose windows have different numbers."""
    for i, number in enumerate(own):
        x, y = left + CELL * (i % columns), top + CELL * (i // columns)
        if i % columns and own[i - 1] != number:
            picture.line((x, y), (x, y + CELL), colour="ink", width=2)
        if i >= columns and own[i - columns] != number:
            picture.line((x, y), (x + CELL, y), colour="ink", width=2)


def losses(
    ax: Axes, runs: Runs, *, rate: float, steps: int
) -> dict[str, list[float]]:
    """The loss by size of window: every seed, and the medians.

    Args:
        ax: where to draw.
        runs: those of the pictures.
        rate: the learning rate whose runs are drawn.
        steps: after which budget.

    Returns:
        The medians, by the words of each arm, and of one window for all.
    """
    runs = [run for run in runs if run.get("rate") == rate]
    drawn = {}
    for words, arm, name, colour, look in ARMS:
        seeds = []
        for window in WINDOWS:
            mine = [run for run in runs if run.get("arm") == arm]
            mine = [r for r in mine if r.get("window", window) == window]
            told = f"{name.format(window)}loss, {steps}"
            seeds.append([run[told] for run in mine])
        drawn[words] = [median(many) for many in seeds]
        sizes = [*WINDOWS.values()]
        ax.plot(sizes, drawn[words], look, color=colour, ms=4, label=words)
        for size, many in zip(sizes, seeds, strict=True):
            beside = [size] * len(many)
            ax.plot(beside, many, look[-1], color=colour, ms=3, alpha=0.4)
    every = [r[f"loss, {steps}"] for r in runs if r.get("arm") == "full"]
    drawn["one window"] = [median(every)]
    ax.axhline(median(every), color=NEUTRAL, lw=0.9, ls="--")
    ax.set(xlabel="tokens in a window", ylabel="loss per pixel, nats")
    ax.set_xticks([*WINDOWS.values()])
    ax.legend(frameon=False, fontsize=9)
    return drawn


def neighbours(
    ax: Axes, runs: Runs, *, offset: str, rate: float, steps: int
) -> dict[tuple[str, str], float]:
    """The share of right digits by where the neighbour lies.

    Args:
        ax: where to draw.
        runs: those that ask for a neighbour.
        offset: which one.
        rate: the learning rate whose runs are drawn.
        steps: after which budget.

    Returns:
        The medians, by arm and place.
    """
    where = {"offset": offset, "rate": rate}
    runs = [run for run in runs if where.items() <= run.items()]
    drawn = {}
    labels: list[str] = []
    for arm in ("fixed", "shifted"):
        mine = [run for run in runs if run["arm"] == arm]
        for name in ("within", "across", "neither", "caught", "freed"):
            if f"{name}, {steps}" not in mine[0]:
                continue
            many = [run[f"{name}, {steps}"] for run in mine]
            height = drawn[arm, name] = median(many)
            place = len(labels)
            ax.bar(place, height, width=0.6, color=OUTPUT, alpha=0.3)
            colour = K if arm == "fixed" else Q
            ax.plot([place] * len(many), many, "o", color=colour, ms=3)
            labels.append(f"{name}\n{arm}")
    ax.axhline(1 / 8, color=NEUTRAL, lw=0.8, ls="--")
    ax.set_xticks(range(len(labels)), labels, fontsize=9)
    ax.set(ylim=(0, 1.05), ylabel="share right")
    return drawn
