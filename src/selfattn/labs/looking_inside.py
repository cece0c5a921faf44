"""The lab of the chapter on looking inside: a trained model, head by head.

The reader types a text, sees the weights of each of the model's eight heads
and how surprised it is by every word, and switches heads off.
"""

from functools import cache
from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure

from selfattn.data.tales import START, WORDS, encode
from selfattn.labs.looking_inside_model import (
    LONGEST,
    trained_model,
)
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Flag, Whole, Words
from selfattn.looking_inside import change_heads, record_weights

GUESSES = 3
NAMES = [f"{layer}.{head}" for layer in (1, 2) for head in (1, 2, 3, 4)]
FIRST = "the horse did not cross the river because it was too tired . the"


class Read(NamedTuple):
    """What the lab shows of a text."""

    read: list[str]
    unknown: list[str]
    scores: list[list[float]]
    weights: list[list[list[float]]]  # head, query, key
    nats: list[float]  # of each word after the first
    loss: float
    guesses: list[tuple[str, float]]
    whole: float  # the loss with all heads
    without: list[float]  # the loss with one head off, for each
    off: list[str]


class LookingInsideLab(Lab):
    """A small trained model, and its heads.

    Attributes:
        words: the text; a full stop is put in front of it.
        head: whose weights are shown large, from 0.
        head_1_1: whether what this head brings back is used; so of all.
    """

    words = Words(FIRST, LONGEST - 1, 12)
    head = Whole(4, 0, len(NAMES) - 1)
    head_1_1 = Flag(True)
    head_1_2 = Flag(True)
    head_1_3 = Flag(True)
    head_1_4 = Flag(True)
    head_2_1 = Flag(True)
    head_2_2 = Flag(True)
    head_2_3 = Flag(True)
    head_2_4 = Flag(True)

    def read(self) -> Read:
        """What the page shows, computed by the package in float64."""
        return read(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now, name = self.read(), NAMES[int(self.head)]
        rows = now.weights[int(self.head)]
        looks = max(range(len(rows)), key=lambda j: rows[-1][j])
        off = f", without {', '.join(now.off)}" if now.off else ""
        return (
            f"A heat map of the weights of head {name} over "
            f"{len(now.read)} words: the last, {now.read[-1]}, looks most at "
            f"{now.read[looks]}, with {rows[-1][looks]:.2f}. Beside it the "
            f"loss of each word{off}: {now.loss:.3f} nats on average. Next "
            f"the model expects {now.guesses[0][0]}, with "
            f"{now.guesses[0][1]:.2f}."
        )

    def figure(self) -> Figure:
        """The heat map and the loss of each word, as they are now."""
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        heat, bars = figure.subplots(1, 2)
        now = self.read()
        heat.imshow(now.weights[int(self.head)], cmap="Greys", vmin=0, vmax=1)
        places = range(len(now.read))
        heat.set_xticks(places, now.read, rotation=90, fontsize=9)
        heat.set_yticks(places, now.read, fontsize=9)
        heat.set(
            title=f"Head {NAMES[int(self.head)]}",
            xlabel="key",
            ylabel="query",
        )
        bars.barh(places[1:], now.nats, color="#6E6E6E")
        bars.set_yticks(places[1:], now.read[1:], fontsize=9)
        bars.invert_yaxis()
        bars.set(title="Loss of each word", xlabel="nats")
        return figure


@cache  # nobody may change it
def model() -> torch.nn.Module:
    """The trained model, in float64."""
    return trained_model().double()


def nats_of(tokens: torch.Tensor, off: list[str]) -> torch.Tensor:
    """The loss of each word after the first, with these heads off."""
    with change_heads(model(), dict.fromkeys(off, 0.0)):
        scores = model()(tokens[None])[0]
    return torch.nn.functional.cross_entropy(
        scores[:-1], tokens[1:], reduction="none"
    )


def read(*, words: str, head: int, **on: Any) -> Read:
    """Run the model on a text, with the heads that are on.

    The arguments are the lab's settings; which head is shown large changes
    nothing of the result.
    """
    tokens = encode(f"{START} {words}")
    off = [n for n in NAMES if not on[f"head_{n.replace('.', '_')}"]]
    with (
        change_heads(model(), dict.fromkeys(off, 0.0)),
        record_weights(model()) as weights,
    ):
        scores = model()(tokens[None])[0]
    nats = nats_of(tokens, off)
    shares = scores[-1].softmax(dim=-1)
    order = shares.argsort(descending=True)[:GUESSES].tolist()
    return Read(
        [WORDS[i] for i in tokens.tolist()],
        [w for w in words.split() if w not in WORDS],
        scores.tolist(),
        torch.cat(weights, dim=1)[0].tolist(),
        nats.tolist(),
        nats.mean().item(),
        [(WORDS[i], shares[i].item()) for i in order],
        nats_of(tokens, []).mean().item(),
        [nats_of(tokens, [name]).mean().item() for name in NAMES],
        off,
    )
