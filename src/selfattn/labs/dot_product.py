"""The lab of the chapter on queries, keys and values.

One word asks; the others answer. The reader chooses the word, the length of
the sentence, the number of features and the mask, drags the query and the
keys, and sees scores, weights and the output follow.
"""

from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.dot_product import Steps, attention_steps
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.park_miller import fixed_numbers
from selfattn.labs.machinery.settings import Choice, Plotted, Points, Whole
from selfattn.masks import causal_mask, padding_mask, window_mask
from selfattn.plots import colours

WORDS = ["the", "cat", "sat", "on", "the", "mat", "because"]
WORDS += ["it", "was", "soft"]

# The first three rows are the running numbers of the book.
QUERIES = [[1, 0], [0, 2], [2, 1], [-1, 1], [1, -1], [-2, 0], [0, -2], [2, -1]]
QUERIES += [[-1, -1], [1, 2]]
KEYS = [[1, 1], [2, 0], [0, 1], [-1, 0], [1, -2], [-2, 1], [-2, -1], [2, 2]]
KEYS += [[0, -1], [-1, -3]]
VALUES = [[1, 0], [0, 2], [3, 1], [-1, -1], [1, -2], [-2, 1], [2, -1], [-1, 2]]
VALUES += [[-3, 0], [2, 2]]


class DotProductLab(Lab):
    """Scaled dot-product attention on two planes.

    Attributes:
        query: the position of the word that asks, from 0.
        d_k: how many features a query and a key have. The first two are on
            the plane; the others are fixed numbers.
        n: how many words of the sentence there are.
        mask: who may look at whom: "none", "causal", "padding" or "window".
        length: under "padding", how many words are real.
        window: under "window", how many words to each side, itself counted.
        q: the first two features of each word's query, ten points.
        k: the same of each word's key.
    """

    query = Whole(2, 0, 9, of="n", plus=-1)
    d_k = Choice(2, [2, 4, 8, 16, 32, 64])
    n = Whole(3, 1, 10)
    mask = Choice("none", ["none", "causal", "padding", "window"])
    length = Whole(2, 0, 10, of="n")
    window = Whole(2, 1, 10, of="n")
    q = Points(QUERIES, -3, 3, 0.1)
    k = Points(KEYS, -3, 3, 0.1)

    def steps(self) -> Steps:
        """What the page shows, computed by the package in float64."""
        return steps(**self.values())

    def shown(self) -> dict[str, Any]:
        """The settings that matter now; vectors only when dragged."""
        shown = {name: getattr(self, name) for name in ("query", "d_k", "n")}
        shown["mask"] = self.mask
        if self.mask == "padding":
            shown["length"] = self.length
        if self.mask == "window":
            shown["window"] = self.window
        dragged = super().shown()
        return shown | {
            name: dragged[name] for name in "qk" if name in dragged
        }

    def describe(self) -> str:
        """The numbers of the picture, in the order of its parts."""
        _, _, _, weights, output = self.steps()
        keys = ", ".join(
            f"{word} {weight:.3f}"
            for word, weight in zip(WORDS, weights[self.query], strict=False)
        )
        x, y = output[self.query].tolist()
        return (
            f"Two planes and a bar chart. Left, the query of "
            f"“{WORDS[self.query]}” and the keys of {self.n} words; right, "
            f"their values and the output, which lies among them at "
            f"({x:.2f}, {y:.2f}). The bars are the weights: {keys}."
        )

    def figure(self) -> Figure:
        """The two planes and the weights, as they are now."""
        figure = Figure(figsize=(7.2, 2.7), layout="constrained")
        look, mix, bars = figure.subplots(
            1, 3, gridspec_kw={"width_ratios": [4, 4, 3]}
        )
        draw_look(look, self)
        draw_mix(mix, self)
        draw_weights(bars, self)
        return figure


def steps(
    *,
    query: int,
    d_k: int,
    n: int,
    mask: str,
    length: int,
    window: int,
    q: Plotted,
    k: Plotted,
) -> Steps:
    """Attention of all n words under these settings, in float64.

    The arguments are the settings of `DotProductLab`; the query chooses a
    row of the result and does not change it.
    """
    masks = {
        "none": lambda: torch.ones(n, n, dtype=torch.bool),
        "causal": lambda: causal_mask(n, n),
        "padding": lambda: padding_mask(torch.tensor([length]), n)[0, 0],
        "window": lambda: window_mask(n, n, window),
    }
    return attention_steps(
        vectors("q", q[:n], d_k),
        vectors("k", k[:n], d_k),
        torch.tensor(VALUES[:n], dtype=torch.float64),
        mask=masks[mask](),
    )


def vectors(kind: str, points: Plotted, d_k: int) -> Tensor:
    """Points on the plane, followed by d_k - 2 fixed features, (n, d_k).

    The fixed ones have variance one.
    """
    rows = []
    for token, point in enumerate(points):
        start = 7919 * (token + 1) + 104729 * {"q": 1, "k": 2}[kind]
        rows.append([*point, *fixed_numbers(start, d_k - 2)])
    return torch.tensor(rows, dtype=torch.float64)


def draw_plane(ax: Axes, title: str) -> Axes:
    """A square from -3.6 to 3.6 with the axes through its middle."""
    ax.set(title=title, xlim=(-3.6, 3.6), ylim=(-3.6, 3.6), aspect="equal")
    ax.set(xticks=range(-3, 4), yticks=range(-3, 4))
    ax.grid(color="0.9")
    ax.axhline(0, color="0.7", lw=0.8)
    ax.axvline(0, color="0.7", lw=0.8)
    ax.set_axisbelow(True)
    return ax


def draw_words(ax: Axes, points: Plotted) -> Axes:
    """Each word beside its point."""
    for word, (x, y) in zip(WORDS, points, strict=False):
        ax.annotate(
            word, (x, y), (4, 4), textcoords="offset points", fontsize=8
        )
    return ax


def draw_look(ax: Axes, lab: DotProductLab) -> Axes:
    """The chosen query as an arrow, the keys as points."""
    draw_plane(ax, "Query and keys")
    keys = lab.k[: lab.n]
    x, y = lab.q[lab.query]
    ax.plot([0, x], [0, y], c=colours.Q)
    ax.plot(x, y, "s", c=colours.Q)
    ax.scatter(
        [x for x, _ in keys], [y for _, y in keys], c=colours.K, zorder=3
    )
    return draw_words(ax, keys)


def draw_mix(ax: Axes, lab: DotProductLab) -> Axes:
    """The values, as large as their weights, and their average."""
    draw_plane(ax, "Values and output")
    weights = lab.steps().weights[lab.query].tolist()
    values = VALUES[: lab.n]
    sizes = [12 + 300 * weight for weight in weights]
    ax.scatter(
        [x for x, _ in values],
        [y for _, y in values],
        s=sizes,
        c=colours.V,
        alpha=0.7,
    )
    output = lab.steps().output[lab.query].tolist()
    ax.plot(*output, "D", c=colours.OUTPUT)
    ax.annotate(
        "output",
        (output[0], output[1]),
        (5, -10),
        textcoords="offset points",
        fontsize=8,
    )
    return draw_words(ax, values)


def draw_weights(ax: Axes, lab: DotProductLab) -> Axes:
    """One bar a key, with its weight."""
    weights = lab.steps().weights[lab.query].tolist()
    bars = ax.barh(range(lab.n), weights, color="0.6")
    ax.bar_label(bars, fmt="%.3f", padding=2, fontsize=8)
    ax.set(title=f"Weights of “{WORDS[lab.query]}”", xlim=(0, 1.25))
    ax.set_yticks(range(lab.n), WORDS[: lab.n])
    ax.set_xticks([0, 1])
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
    return ax
