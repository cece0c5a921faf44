"""The lab of the page on linear attention: a memory that is written into.

Four tokens, each a key of three features and a value of two, are written into
one matrix. The reader chooses the tokens, how many have been written, whether
the memory fades, and whether what a key already brings is taken off first;
and sees what each key brings back.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice, Flag, Whole
from selfattn.plots import colours

TOKENS = 4
ALIKE, APART = 0.6, 0.8  # of a key: what all share, and what is its own
E_1, E_2, E_3 = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
MIDDLE = [2 / 3, 2 / 3, 1 / 3]
VALUES = [[1.0, 0.0], [0.0, 2.0], [3.0, 1.0], [-1.0, 2.0]]
LISTS: dict[str, dict[str, Any]] = {
    "three apart, one more": {
        "words": ["the", "cat", "sat", "mat"],
        "keys": [E_1, E_2, E_3, MIDDLE],
    },
    "one twice": {
        "words": ["the", "cat", "the", "sat"],
        "keys": [E_1, E_2, E_1, E_3],
    },
    "alike": {
        "words": ["a", "an", "the", "this"],
        "keys": [
            [ALIKE, APART, 0.0],
            [ALIKE, 0.0, APART],
            [APART, ALIKE, 0.0],
            [APART, 0.0, ALIKE],
        ],
    },
}
RIGHT = 0.05  # a value that comes back nearer than this is right


class Seen(NamedTuple):
    """What the lab shows."""

    state: list[list[float]]  # the memory, (features, d_v)
    back: list[list[float]]  # what each token's key brings
    wanted: list[list[float] | None]  # the value last written with that key
    off: list[float | None]  # how far apart the two are
    right: int  # keys that bring their value back
    keys: int  # keys that have been written


class LinearLab(Lab):
    """A memory of three features by two, and four tokens to write into it.

    Attributes:
        tokens: the name of the list of tokens.
        read: how many have been written.
        gate: what is left of the memory at each further token.
        delta: whether what the key brings already is taken off the value.
        ask: the token whose key is asked, from 0.
    """

    tokens = Choice("three apart, one more", list(LISTS))
    read = Whole(3, 0, TOKENS)
    gate = Choice(1.0, [0.5, 0.7, 0.9, 1.0])
    delta = Flag(False)
    ask = Whole(0, 0, TOKENS - 1)

    def seen(self) -> Seen:
        """What the page shows, in float64."""
        values = self.values()
        values.pop("ask")
        return seen(**values)

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.seen()
        rows = "; ".join(in_words(row) for row in now.state)
        rule = "the delta rule" if self.delta else "adding"
        return (
            f"A memory of three features by two after {self.read} of four "
            f"tokens, by {rule}, with {self.gate:.1f} of it left at each "
            f"token: {rows}. {now.right} of {now.keys} keys bring back what "
            "was written last."
        )

    def figure(self) -> Figure:
        """The memory, a cell a number."""
        figure = Figure(figsize=(2.6, 2.6), layout="constrained")
        ax = figure.subplots()
        table = self.seen().state
        ax.imshow(
            torch.tensor(table).abs().tolist(), cmap="Greys", vmin=0, vmax=9
        )
        for i, row in enumerate(table):
            for j, number in enumerate(row):
                ax.text(j, i, f"{number:.2f}", ha="center", va="center")
        ax.set_xticks(range(2), ["1", "2"])
        ax.set_yticks(range(3), ["1", "2", "3"])
        ax.set_xlabel("value", color=colours.V)
        ax.set_ylabel("feature of the key", color=colours.K)
        return figure


def in_words(row: Sequence[float]) -> str:
    """A row of numbers."""
    return "(" + ", ".join(f"{x:.2f}" for x in row) + ")"


def memories(
    keys: Tensor, values: Tensor, *, gate: float, delta: bool
) -> list[Tensor]:
    """The memory before the first token and after each.

    Args:
        keys: (n, features).
        values: (n, d_v).
        gate: what is left of the memory at each token.
        delta: whether what the key brings already is taken off the value.
    """
    made = [keys.new_zeros(keys.shape[-1], values.shape[-1])]
    for key, value in zip(keys, values, strict=True):
        faded = gate * made[-1]
        written = value - key @ faded if delta else value
        made.append(faded + key[:, None] * written)
    return made


def seen(*, tokens: str, read: int, gate: float, delta: bool) -> Seen:
    """Write some tokens, and ask with every key; see `LinearLab`."""
    keys = torch.tensor(LISTS[tokens]["keys"], dtype=torch.float64)
    values = torch.tensor(VALUES, dtype=torch.float64)
    state = memories(keys, values, gate=gate, delta=delta)[read]
    back = (keys @ state).tolist()
    words = LISTS[tokens]["words"]
    last = {word: VALUES[j] for j, word in enumerate(words[:read])}
    wanted = [last.get(word) for word in words]
    off = [
        None
        if value is None
        else sum((a - b) ** 2 for a, b in zip(row, value, strict=True)) ** 0.5
        for row, value in zip(back, wanted, strict=True)
    ]
    of_word = dict(zip(words, off, strict=True))
    right = sum(off is not None and off < RIGHT for off in of_word.values())
    return Seen(state.tolist(), back, wanted, off, right, len(last))
