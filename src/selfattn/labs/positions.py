"""The lab of the chapter on positions.

The reader chooses an encoding and its numbers, puts a query and a key in
their places, and sees the table, the product against the distance, and the
angle of every pair.
"""

import math
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice, Number, Real, Whole
from selfattn.plots import colours
from selfattn.positions import alibi_bias, rope, sinusoidal
from selfattn.positions.absolute import frequencies

LONGEST = 64


class Pictured(NamedTuple):
    """What the page computes for one setting."""

    turns: Tensor  # angle per position of each pair, (d/2,); none for ALiBi
    rows: Tensor  # the picture, (features or heads, n)
    curves: Tensor  # what the query makes of each position, (1 or heads, n)


class PositionsLab(Lab):
    """Three ways to tell attention where things are.

    Attributes:
        encoding: "sinusoidal", "rope" or "alibi".
        n: how many positions there are.
        d: features of a token, or of a head under RoPE.
        base: how slowly the last pair turns.
        heads: under ALiBi, how many heads there are.
        query: the position of the query.
        key: the position of the key whose numbers are shown.
        turn: under RoPE, by how many degrees the key points away from the
            query, in every pair, before positions turn both.
    """

    encoding = Choice("sinusoidal", ["sinusoidal", "rope", "alibi"])
    n = Whole(32, 2, LONGEST)
    d = Choice(16, [2, 4, 8, 16, 32, 64])
    base = Choice(10_000, [10, 100, 1_000, 10_000, 500_000])
    heads = Choice(8, [1, 2, 4, 8, 12])
    query = Whole(20, 0, LONGEST - 1, of="n", plus=-1)
    key = Whole(12, 0, LONGEST - 1, of="n", plus=-1)
    turn = Number(0, -180, 180, 15)

    def pictured(self) -> Pictured:
        """What the page shows, computed by the package."""
        return pictured(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        product = self.pictured().curves[0, self.key].item()
        if self.encoding == "alibi":
            return (
                f"A heat map of {self.heads} heads over {self.n} positions, "
                f"strongest at the query's place, {self.query}, and fainter "
                "with the distance. Under it a line for each head, falling to "
                f"both sides; the steepest is {product:.2f} at {self.key}."
            )
        return (
            f"A heat map of {self.d} features over {self.n} positions: waves, "
            "fast at the top and slower downwards. Under it the product of "
            f"the query at {self.query} with every position, {product:.2f} "
            f"at {self.key}. Under that {self.d // 2} dials, each with the "
            "query's angle and the key's."
        )

    def figure(self) -> Figure:
        """The heat map, the curves and the dials, as they are now."""
        figure = Figure(figsize=(7.2, 4.8), layout="constrained")
        heat, chart, dials = figure.subplots(
            3, 1, gridspec_kw={"height_ratios": [3, 3, 1.4]}
        )
        draw_heat(heat, self)
        draw_curves(chart, self)
        draw_dials(dials, self)
        return figure


def pictured(
    *,
    encoding: str,
    n: int,
    d: int,
    base: int,
    heads: int,
    query: int,
    key: int,
    turn: Real,
) -> Pictured:
    """The numbers of the page under these settings, by the package.

    The arguments are the settings of `PositionsLab`; the key's place changes
    nothing but what is pointed at.
    """
    if encoding == "alibi":
        wide = alibi_bias(heads, 2 * n - 1, 2 * n - 1).double()
        curves = wide[:, n - 1, n - 1 - query : 2 * n - 1 - query]
        return Pictured(torch.zeros(0).double(), curves.exp(), curves)
    turns = frequencies(d, base)
    if encoding == "sinusoidal":
        table = sinusoidal(n, d, base=base).double()
        return Pictured(turns, table.T, (table @ table[query])[None])
    asks, asked = pair(0.0, d), pair(math.radians(turn), d)
    keys = rope(asked.expand(n, d), base=base)
    turned = rope(asks[None], base=base, offset=query)
    return Pictured(turns, keys.T, turned @ keys.T)


def pair(angle: Real, d: int) -> Tensor:
    """A vector whose every pair points in one direction, (d,)."""
    one = [math.cos(angle), math.sin(angle)]
    return torch.tensor(one, dtype=torch.float64).repeat(d // 2)


def draw_heat(ax: Axes, lab: PositionsLab) -> Axes:
    """Features or heads down, positions across, darker where larger."""
    low = 0 if lab.encoding == "alibi" else -1
    ax.imshow(
        lab.pictured().rows.tolist(),
        cmap="Greys",
        vmin=low,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
    )
    ax.set_ylabel("head" if lab.encoding == "alibi" else "feature")
    ax.set_xticks([])
    return ax


def draw_curves(ax: Axes, lab: PositionsLab) -> Axes:
    """What the query makes of each position."""
    curves = lab.pictured().curves
    for curve in curves.tolist():
        ax.plot(curve, color=colours.OUTPUT, lw=1)
    ax.axvline(lab.query, color=colours.Q, label="query")
    ax.plot(lab.key, curves[0, lab.key].item(), "o", c=colours.K, label="key")
    ax.axhline(0, color=colours.NEUTRAL, lw=0.5)
    ax.set(xlim=(-0.5, lab.n - 0.5), xlabel="position")
    ax.set_ylabel("bias" if lab.encoding == "alibi" else "product")
    ax.legend(frameon=False, loc="best")
    return ax


def draw_dials(ax: Axes, lab: PositionsLab) -> Axes:
    """For each pair the query's angle and the key's."""
    ahead = math.radians(lab.turn) if lab.encoding == "rope" else 0.0
    turns = lab.pictured().turns.tolist()
    for i, w in enumerate(turns):
        ax.add_patch(Circle((i, 0), 0.47, fill=False, ec=colours.NEUTRAL))
        for angle, colour in (
            (lab.key * w + ahead, colours.K),
            (lab.query * w, colours.Q),
        ):
            x, y = 0.45 * math.cos(angle), 0.45 * math.sin(angle)
            ax.plot([i, i + x], [0, y], c=colour)
    many = max(len(turns), 1)
    ax.set(aspect="equal", xlim=(-0.5, many - 0.5), ylim=(-0.5, 0.5))
    ax.set_title("angle of each pair")
    ax.axis("off")
    ax.set_visible(bool(turns))  # ALiBi has none
    return ax
