"""The lab of the page on Performer: one weight, estimated.

A query and a key of two numbers, and directions that are drawn at random:
each gives a product of features, and their mean estimates the exponential.
The reader chooses how long the two are and how far they point apart, how many
directions there are and which, and of what kind the features are.
"""

import math
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice, Flag, Number, Whole
from selfattn.plots import colours
from selfattn.random_features import log_features

MOST = 256  # directions
DRAWS = 9
START = 20201  # of the generator; a draw is so many times as far
MODULUS = 2147483647


class Seen(NamedTuple):
    """What the lab shows."""

    exact: float  # exp(q·k)
    estimate: float
    off: float  # estimate over exact, less one
    spread: float  # standard deviation over exact, of independent directions
    largest: float  # the share of the largest part, all taken as positive
    parts: list[float]  # what each direction gives, over exact
    directions: list[list[float]]  # (m, 2)
    query: list[float]
    key: list[float]


class PerformerLab(Lab):
    """Directions on a plane, each as large as what it gives to the estimate.

    Attributes:
        length: of the query and of the key, both divided by d^¼ already.
        angle: between them, in degrees.
        m: how many directions.
        kind: of the features, positive or trigonometric.
        orthogonal: whether directions come in pairs at right angles.
        draw: which directions.
    """

    length = Number(0.75, 0.0, 2.5, 0.25)
    angle = Choice(60, [0, 30, 60, 90, 120, 150, 180])
    m = Choice(16, [4, 16, 64, 256])
    kind = Choice("positive", ["positive", "trigonometric"])
    orthogonal = Flag(False)
    draw = Whole(1, 1, DRAWS)

    def seen(self) -> Seen:
        """What the page shows, in float64."""
        return seen(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.seen()
        return (
            f"A query and a key of length {self.length:.2f}, {self.angle} "
            f"degrees apart, and {self.m} directions around them. Their "
            f"{self.kind} features estimate the exponential, "
            f"{now.exact:.3f}, as {now.estimate:.3f}; the largest direction "
            f"carries {now.largest:.0%} of it."
        )

    def figure(self) -> Figure:
        """The directions, as large as what each gives."""
        figure = Figure(figsize=(3.2, 3.2), layout="constrained")
        ax = figure.subplots()
        now = self.seen()
        largest = max(abs(x) for x in now.parts)
        across, up = zip(*now.directions, strict=True)
        ax.scatter(
            across,
            up,
            s=[200 * abs(x) / largest + 2 for x in now.parts],
            color=colours.NEUTRAL,
            alpha=0.6,
            lw=0,
        )
        named = (("q", now.query, colours.Q), ("k", now.key, colours.K))
        for name, point, colour in named:
            at = (point[0], point[1])
            ax.annotate(name, at, color=colour, weight="bold")
            ax.plot(*zip((0, 0), point, strict=True), color=colour)
        ax.set(xlim=(-4, 4), ylim=(-4, 4), aspect="equal")
        return figure


def directions(draw: int, m: int, *, orthogonal: bool) -> Tensor:
    """Standard normal directions of two numbers, (m, 2), in float64.

    From the generator of Park and Miller, which is exact in JavaScript, too,
    by the rule of Box and Muller: a length and an angle are two even numbers.

    Args:
        draw: which, from 1.
        m: how many.
        orthogonal: whether every second one stands at a right angle to the
            one before it; its length is its own.
    """
    state, found, angle = START * draw % MODULUS, [], 0.0
    for i in range(m):
        state = state * 16807 % MODULUS
        length = math.sqrt(-2 * math.log(state / MODULUS))
        state = state * 16807 % MODULUS
        second = orthogonal and i % 2 == 1
        even = 2 * math.pi * state / MODULUS
        angle = angle + math.pi / 2 if second else even
        found.append([length * math.cos(angle), length * math.sin(angle)])
    return torch.tensor(found, dtype=torch.float64)


def seen(
    *,
    length: float,
    angle: int,
    m: int,
    kind: str,
    orthogonal: bool,
    draw: int,
) -> Seen:
    """Draw directions, and let each say what the exponential is."""
    half = math.radians(angle) / 2
    across, up = length * math.cos(half), length * math.sin(half)
    pair = torch.tensor([[across, up], [across, -up]], dtype=torch.float64)
    omega = directions(draw, m, orthogonal=orthogonal)
    products, variance = said(pair, omega, kind)
    exact = math.exp(pair[0] @ pair[1])
    parts = products / exact
    mean, sizes = parts.mean().item(), parts.abs()
    return Seen(
        exact,
        exact * mean,
        mean - 1,
        math.sqrt(variance / m),
        (sizes.max() / sizes.sum()).item(),
        parts.tolist(),
        omega.tolist(),
        *pair.tolist(),
    )


def said(pair: Tensor, omega: Tensor, kind: str) -> tuple[Tensor, float]:
    """What each direction says, and one direction's relative variance.

    Args:
        pair: the query and the key, (2, 2).
        omega: the directions, (m, 2).
        kind: of the features.
    """
    q, k = pair
    if kind == "positive":
        products = log_features(pair, omega).sum(dim=0).exp()
        return products, math.expm1((q + k) @ (q + k))
    lengths = pair.square().sum() / 2
    products = (omega @ (q - k)).cos() * lengths.exp()
    return products, math.cosh((q - k) @ (q - k)) - 1
