"""The lab of the first page: attention among words that the reader types.

A word's arrow is made up from its letters; its query is the arrow, its key
the arrow turned by a quarter, its value the arrow again. Queries and keys can
be dragged. No model would choose such vectors: that they are made up can be
seen, and everything after them is attention as it is.
"""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from selfattn.dot_product import Steps, attention_steps
from selfattn.labs.dot_product import draw_plane
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import (
    Flag,
    Plotted,
    Points,
    Whole,
    Words,
)
from selfattn.masks import causal_mask
from selfattn.plots import colours

EDGE = 3.0  # of the planes
MOST = 8  # words
LONGEST = 2.0  # of a letter's arrow
STILL = [[0.0, 0.0]] * MOST


class IntroLab(Lab):
    """Attention among a few words.

    Attributes:
        words: what was typed, one to eight words.
        asks: the position of the word whose weights are shown, from 0.
        causal: whether no word may see a later one.
        q: how far each word's query was dragged from its place.
        k: the same of each word's key.
    """

    words = Words("the cat sat on the mat", MOST, 12)
    asks = Whole(2, 0, MOST - 1, of="words", plus=-1)
    causal = Flag(False)
    q = Points(STILL, -2 * EDGE, 2 * EDGE, 0.1)
    k = Points(STILL, -2 * EDGE, 2 * EDGE, 0.1)

    def steps(self) -> Steps:
        """What the page shows, computed by the package in float64."""
        return steps(**self.values())

    def describe(self) -> str:
        """The numbers of the picture, in the order of its parts."""
        words = self.words.split(" ")
        steps = self.steps()
        heard = ", ".join(
            f"{word} {weight:.2f}"
            for word, weight in zip(
                words, steps.weights[self.asks].tolist(), strict=True
            )
        )
        x, y = steps.output[self.asks].tolist()
        return (
            f"Lines from “{words[self.asks]}” to the words that it listens "
            f"to, as thick as their weights: {heard}. Beside them two planes: "
            "its query among the keys, and the values, among which the "
            f"output lies at ({x:.2f}, {y:.2f})."
        )

    def figure(self) -> Figure:
        """The lines and the two planes, as they are now."""
        figure = Figure(figsize=(7.2, 2.6), layout="constrained")
        lines, look, mix = figure.subplots(1, 3)
        draw_lines(lines, self)
        q, k, v = vectors(self.words, self.q, self.k)
        words = self.words.split(" ")
        draw_plane(look, "Query and keys")
        look.plot(*q[self.asks], "s", c=colours.Q)
        draw_named(look, words, k, colours.K)
        draw_plane(mix, "Values and output")
        draw_named(mix, words, v, colours.V)
        mix.plot(*self.steps().output[self.asks], "D", c=colours.OUTPUT)
        return figure


def tenth(x: float) -> float:
    """To the nearest tenth, halves upwards, as the page rounds."""
    return math.floor(x * 10 + 0.5) / 10


def within(x: float) -> float:
    """On the plane."""
    return min(EDGE, max(-EDGE, x))


def letter_arrow(letter: str) -> tuple[float, float]:
    """A letter's arrow: a hand on a clock of 26 hours, with a at the top.

    >>> letter_arrow("a"), letter_arrow("n")
    ((0.0, 2.0), (0.0, -2.0))
    """
    angle = 2 * math.pi * ((ord(letter) + 7) % 26) / 26  # "a" is 97
    return tenth(LONGEST * math.sin(angle)), tenth(LONGEST * math.cos(angle))


def word_arrow(word: str) -> list[float]:
    """A word's arrow: the sum of its letters' over the root of their number.

    >>> word_arrow("listen") == word_arrow("silent")
    True
    """
    letters = [letter_arrow(letter) for letter in word.lower()]
    return [
        within(tenth(sum(axis) / math.sqrt(len(letters))))
        for axis in zip(*letters, strict=True)
    ]


def vectors(
    words: str, q: Plotted, k: Plotted
) -> tuple[Plotted, Plotted, Plotted]:
    """Queries, keys and values of the words, each (n, 2).

    Args:
        words: with one space between two.
        q: how far each query was dragged; rows beyond the last word wait.
        k: the same of each key.
    """
    arrows = [word_arrow(word) for word in words.split(" ")]
    turned = [[-y, x] for x, y in arrows]

    def dragged(points: Plotted, by: Plotted) -> Plotted:
        return [
            [within(tenth(x + far)) for x, far in zip(*pair, strict=True)]
            for pair in zip(points, by, strict=False)
        ]

    return dragged(arrows, q), dragged(turned, k), arrows


def steps(
    *, words: str, asks: int, causal: bool, q: Plotted, k: Plotted
) -> Steps:
    """Attention of all the words under these settings, in float64.

    The arguments are the settings of `IntroLab`; who asks chooses a row of
    the result and does not change it.
    """
    n = len(words.split(" "))
    mask = causal_mask(n, n) if causal else None
    q, k, v = (
        torch.tensor(points, dtype=torch.float64)
        for points in vectors(words, q, k)
    )
    return attention_steps(q, k, v, mask=mask)


def draw_named(
    ax: Axes, words: list[str], points: Plotted, colour: str
) -> Axes:
    """A dot for each word, with its name beside it."""
    for word, (x, y) in zip(words, points, strict=True):
        ax.plot(x, y, "o", c=colour)
        side, ha = (-4, "right") if x > 2.5 else (4, "left")  # in the frame
        ax.annotate(
            word,
            (x, y),
            (side, 4),
            textcoords="offset points",
            fontsize=10,
            ha=ha,
        )
    return ax


def draw_lines(ax: Axes, lab: IntroLab) -> Axes:
    """Words that ask on the left, words that are heard on the right."""
    words = lab.words.split(" ")
    weights, asks = lab.steps().weights.tolist(), int(lab.asks)
    ax.set_title("Who listens to whom")
    for j, weight in enumerate(weights[lab.asks]):
        ax.plot([0.05, 0.95], [asks, j], lw=8 * weight, c=colours.Q)
    for i, word in enumerate(words):
        bold = "bold" if i == lab.asks else "normal"
        ax.text(-0.05, i, word, ha="right", va="center", weight=bold)
        share = f"{word} {weights[lab.asks][i]:.2f}"
        ax.text(1.05, i, share, ha="left", va="center")
    ax.set(xlim=(-0.6, 1.8), ylim=(len(words) - 0.5, -0.5))
    ax.axis("off")
    return ax
