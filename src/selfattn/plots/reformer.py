"""Figures of the page on Reformer: buckets, sorting, losses and mates."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from matplotlib.axes import Axes

from selfattn.plots.colours import NEUTRAL, OUTPUT, K, Q, V
from selfattn.plots.drawing import WIDTH, Drawing, Real

Runs = Iterable[dict[str, Any]]
SHADES = ("q", "k", "v", "ink")  # a colour a bucket
ROUNDS = (1, 2, 4, 8)
# What is drawn of the language: its words, the arm, and how it is drawn.
ARMS = (
    ("keys of their own, buckets put in", "separate", K, "s"),
    ("shared keys, buckets put in", "shared", Q, "o"),
    ("shared keys, trained in buckets", "hashed", V, "^"),
)
# Sorts of mate, whose keys, and how many heads.
MATES = (
    ("ring", "separate", 1),
    ("ring", "shared", 1),
    ("ring", "shared", 2),
    ("pair", "shared", 1),
)


def sorting(buckets: Sequence[int], chunk: int) -> Drawing:
    """From the order of the text to sorted chunks: the steps of the paper.

    Args:
        buckets: the bucket of each token, from 0.
        chunk: how many sorted tokens are together.
    """
    n = len(buckets)
    order = sorted(range(n), key=lambda i: (buckets[i], i))
    picture = Drawing("sorting", 208, buckets=buckets, order=order)
    step = (WIDTH - 36) / n
    places = [18 + step * (place + 0.5) for place in range(n)]
    picture.text(WIDTH / 2, 10, "a bucket for each token", bold=True)
    row(picture, 22, [*range(n)], places, buckets)
    for place, i in enumerate(order):
        picture.line((places[i], 46), (places[place], 82))
    picture.text(WIDTH / 2, 96, "sorted by bucket, then by place", bold=True)
    row(picture, 108, order, places, buckets)
    words = f"in chunks of {chunk}, each sees the one before, too"
    picture.text(WIDTH / 2, 148, words, bold=True)
    pieces = -(-n // chunk)
    apart = [
        x + 10 * (place // chunk - (pieces - 1) / 2)
        for place, x in enumerate(places)
    ]
    row(picture, 160, order, apart, buckets)
    for first in range(chunk, n, chunk):
        here, before = apart[first], apart[first - 1]
        low = (here, 198), (before, 198), (before, 184)
        picture.line((here, 184), *low, arrow=True)
    return picture


def row(
    picture: Drawing,
    y: Real,
    tokens: Sequence[int],
    places: Sequence[Real],
    buckets: Sequence[int],
) -> None:
    """A box a token, with its number, in its bucket's colour."""
    for i, x in zip(tokens, places, strict=True):
        colour = SHADES[buckets[i]]
        picture.box(x - 10, y, 20, 20, colour=colour, shade=0.7)
        picture.text(x, y + 10, str(i + 1))


def language(
    ax: Axes, runs: Runs, *, rate: float, steps: int, floor: float
) -> dict[str, list[float]]:
    """The loss per letter by rounds: every seed, and the medians.

    Args:
        ax: where to draw.
        runs: those of the language.
        rate: the learning rate whose runs are drawn.
        steps: after which budget.
        floor: the least loss that there can be.

    Returns:
        For each arm, its medians.
    """
    runs = [run for run in runs if run.get("rate") == rate]
    drawn = {}
    for words, arm, colour, mark in ARMS:
        mine = [run for run in runs if run.get("arm") == arm]
        seeds = [[run[f"rounds {r}, {steps}"] for run in mine] for r in ROUNDS]
        drawn[arm] = [median(many) for many in seeds]
        ax.plot(ROUNDS, drawn[arm], color=colour, label=words)
        for rounds, many in zip(ROUNDS, seeds, strict=True):
            beside = [rounds] * len(many)
            ax.plot(beside, many, mark, color=colour, ms=3, alpha=0.6)
    full = [
        run[f"loss, {steps}"] for run in runs if run.get("arm") == "shared"
    ]
    ax.axhline(median(full), color=Q, lw=0.8, ls=":")
    ax.axhline(floor, color=NEUTRAL, lw=0.8, ls="--")
    ax.set_xscale("log", base=2)
    ax.set_xticks(ROUNDS, [str(r) for r in ROUNDS])
    ax.set(xlabel="rounds when read", ylabel="loss per letter, nats")
    ax.legend(frameon=False, fontsize=9)
    return drawn


def mates(
    ax: Axes, runs: Runs, *, rate: float, steps: int, names: int
) -> dict[tuple[str, str, int], float]:
    """The share of right mates: every seed, and the medians as bars.

    Args:
        ax: where to draw.
        runs: those of the mates.
        rate: the learning rate whose runs are drawn.
        steps: after which budget.
        names: how many names there are.

    Returns:
        For each of `MATES`, its median.
    """
    where = {"rate": rate, "names": names}
    runs = [run for run in runs if where.items() <= run.items()]
    drawn = {}
    labels = []
    for place, (mate, arm, heads) in enumerate(MATES):
        kind = {"mate": mate, "arm": arm, "heads": heads}
        mine = [run for run in runs if kind.items() <= run.items()]
        many = [run[f"right, {steps}"] for run in mine]
        height = drawn[mate, arm, heads] = median(many)
        ax.bar(place, height, width=0.6, color=OUTPUT, alpha=0.3)
        ax.plot([place] * len(many), many, "o", color=Q, ms=3)
        words = "one head" if heads == 1 else "two heads"
        labels.append(f"{mate},\n{arm} keys,\n{words}")
    ax.axhline(1 - 1 / names, color=NEUTRAL, lw=0.8, ls="--")
    ax.set_xticks(range(len(MATES)), labels)
    ax.set(ylim=(0, 1.05), ylabel="share right")
    return drawn
