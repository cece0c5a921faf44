"""The lab of the chapter on debugging.

The reader chooses a mistake and the sizes of a probe, and sees what is
right, what the mistake gives, where they differ, and on which of a few
other probes it would have been seen.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.doctor.kinds.attention.kind import REFERENCE
from selfattn.dot_product import attention
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.park_miller import fixed_numbers
from selfattn.labs.machinery.settings import Choice, Whole

MOST_TOKENS, MOST_FEATURES = 4, 3
NONE = "none: this one is right"
MISTAKES = [
    NONE,
    "no scale",
    "divided by d",
    "scaled by the width of v",
    "scaled by the number of keys",
    "softmax over queries",
    "mask upside down",
    "mask after softmax",
    "masked with zero",
    "empty row gives nan",
    "keys and values swapped",
    "weights on their side",
    "weights returned",
    "first on first",
    "one too many",
    "not itself",
]
BANK = {one.name: one.answer for one in REFERENCE.mistakes}

# Different by more than this is different: rounding takes some 1e-15.
TOLERANCE = 1e-9

# The probes that stand beside the reader's, from weak to strong.
PROBES = [
    ("one token, one feature", (1, 1, 1, 1), "none"),
    ("all sizes 3", (3, 3, 3, 3), "none"),
    ("four sizes", (2, 4, 3, 1), "none"),
    ("all sizes 3, causal", (3, 3, 3, 3), "causal"),
    ("four sizes, causal", (2, 4, 3, 1), "causal"),
    ("more queries than keys, causal", (4, 2, 3, 1), "causal"),
    ("four sizes, padding", (2, 4, 3, 1), "padding"),
]


def table(state: int) -> Tensor:
    """Numbers for as many tokens and features as there can be."""
    numbers = fixed_numbers(state, MOST_TOKENS * MOST_FEATURES)
    return torch.tensor(numbers, dtype=torch.float64).view(MOST_TOKENS, -1)


TABLES = [table(state) for state in (101, 211, 307)]


class Seen(NamedTuple):
    """What is right, and what a patient gives; None if it raises."""

    right: Float[Tensor, "n_q d_v"]
    given: Float[Tensor, "rows columns"] | None

    @property
    def differs(self) -> bool:
        """Whether this probe sees the mistake."""
        if self.given is None or self.given.shape != self.right.shape:
            return True
        return bool(self.wrong().any())

    def wrong(self) -> Tensor:
        """Which numbers are wrong, where shapes are equal; NaN is."""
        given = self.right * torch.nan if self.given is None else self.given
        return ~((given - self.right).abs() <= TOLERANCE)


class DoctorLab(Lab):
    """A mistake of the doctor's bank, on a probe of the reader's own.

    Attributes:
        mistake: its name in the bank, or that there is none.
        n_q: how many queries there are.
        n_k: how many keys there are.
        d_k: how many features a query and a key have.
        d_v: how many features a value has.
        mask: "none", "causal" (by the flag), or "padding": the last key.
    """

    mistake = Choice("softmax over queries", MISTAKES)
    n_q = Whole(3, 1, MOST_TOKENS)
    n_k = Whole(3, 1, MOST_TOKENS)
    d_k = Whole(2, 1, MOST_FEATURES)
    d_v = Whole(2, 1, MOST_FEATURES)
    mask = Choice("none", ["none", "causal", "padding"])

    def seen(self) -> Seen:
        """What the page shows, by the package and the doctor's bank."""
        return seen(**self.values())

    def describe(self) -> str:
        """The picture in words."""
        now = self.seen()
        if now.given is None:
            found = "an error"
        elif now.given.shape != now.right.shape:
            found = f"the shape {tuple(now.given.shape)}"
        else:
            found = f"{now.wrong().sum().item()} wrong numbers"
        return (
            f"Two tables of numbers. Left, the right output for {self.n_q} "
            f"queries, {self.d_v} features each. Right, what “{self.mistake}” "
            f"gives: {found}."
        )

    def figure(self) -> Figure:
        """The two outputs, as they are now."""
        figure = Figure(figsize=(6.4, 2.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        now = self.seen()
        draw_table(left, now.right, "Right")
        if now.given is None:
            right.set_title("It raises an error", fontsize=10)
            right.set_axis_off()
        else:
            same = now.given.shape == now.right.shape
            draw_table(
                right,
                now.given,
                f"{self.mistake}: ✗ where wrong" if same else "Wrong shape",
                now.wrong() if same else None,
            )
        return figure


def seen(
    *, mistake: str, n_q: int, n_k: int, d_k: int, d_v: int, mask: str
) -> Seen:
    """A mistake of the bank beside what is right, in float64."""
    q, k, v = vectors(n_q, n_k, d_k, d_v)
    options: dict[str, Any] = {"causal": True} if mask == "causal" else {}
    if mask == "padding":
        real = torch.arange(n_k) < n_k - 1
        options["mask"] = real.expand(n_q, n_k)
    right = attention(q, k, v, **options)
    patient = BANK.get(mistake, attention)
    try:
        return Seen(right, patient(q, k, v, **options))
    except RuntimeError:  # the sizes do not fit
        return Seen(right, None)


def probes(mistake: str) -> list[bool]:
    """Which of `PROBES` see a mistake."""
    names = ("n_q", "n_k", "d_k", "d_v")
    return [
        seen(
            mistake=mistake, mask=mask, **dict(zip(names, sizes, strict=True))
        ).differs
        for _, sizes, mask in PROBES
    ]


def vectors(
    n_q: int, n_k: int, d_k: int, d_v: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values: corners of three tables of numbers."""
    q, k, v = TABLES
    return q[:n_q, :d_k], k[:n_k, :d_k], v[:n_k, :d_v]


def draw_table(
    ax: Axes, numbers: Tensor, title: str, wrong: Tensor | None = None
) -> Axes:
    """A table of numbers, a cross before each that is wrong."""
    ax.imshow(
        torch.zeros(numbers.shape).tolist(), cmap="Greys", vmin=0, vmax=1
    )
    for i, row in enumerate(numbers.tolist()):
        for j, x in enumerate(row):
            cross = "✗ " if wrong is not None and wrong[i, j] else ""
            ax.text(j, i, f"{cross}{x:.3f}", ha="center", va="center")
    ax.set_title(title, fontsize=10)
    ax.set(xticks=[], yticks=range(len(numbers)), ylabel="query")
    ax.set_yticklabels([str(i + 1) for i in range(len(numbers))])
    return ax
