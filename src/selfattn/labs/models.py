"""The lab of the chapter on models: how the next letter is chosen.

A trained model's scores after a few beginnings are fixed. The reader chooses
a temperature, top-k and top-p, and sees which letters are left and what
chances they have.
"""

import json
import math
import re
from functools import cache
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.data.language import CHARACTERS
from selfattn.labs.machinery.esm import LABS
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice, Number, Whole
from selfattn.models import keep_top_k, keep_top_p
from selfattn.plots import colours

STARTS = [
    "the ",
    "the c",
    "the cat ",
    "a fox s",
    "a small ",
    "the owl sees a ",
    "the old dog. ",
]
PLACE = LABS / "models_scores.js"
N_LETTERS = len(CHARACTERS)
SPACE = "␣"


class Seen(NamedTuple):
    """What the lab shows."""

    before: list[float]  # the model's chances, at temperature 1
    chances: list[float]  # those that are drawn by; 0 for what is cut
    kept: int  # letters that are left
    lost: float  # of the chances at this temperature, what is cut
    perplexity: float  # of those that are drawn by


class ModelsLab(Lab):
    """A trained model's next letter, and what is done to its chances.

    Attributes:
        start: what has been written so far.
        temperature: what the scores are divided by.
        top_k: among how many of the likeliest letters is drawn.
        top_p: what chance these make up together.
    """

    start = Choice("the ", STARTS)
    temperature = Number(1.0, 0.1, 3.0, 0.1)
    top_k = Whole(N_LETTERS, 1, N_LETTERS)
    top_p = Number(1.0, 0.05, 1.0, 0.05)

    def seen(self) -> Seen:
        """What the page shows, computed by the package in float64."""
        scores = scores_after(str(self.start))
        tempered = scores / self.temperature
        left = keep_top_p(keep_top_k(tempered, self.top_k), self.top_p)
        chances = left.softmax(dim=-1)
        kept = left.isfinite()
        lost = tempered.softmax(dim=-1)[~kept].sum()
        some = chances[kept]
        return Seen(
            scores.softmax(dim=-1).tolist(),
            chances.tolist(),
            int(kept.sum()),
            lost.item(),
            math.exp(-(some * some.log()).sum().item()),
        )

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.seen()
        best = sorted(range(N_LETTERS), key=lambda i: -now.chances[i])[:3]
        told = ", ".join(
            f"{shown(CHARACTERS[i])} {now.chances[i]:.3f}" for i in best
        )
        return (
            f"A bar for each of {N_LETTERS} characters after “{self.start}”, "
            f"at temperature {self.temperature:.1f}: {now.kept} are left. "
            f"The likeliest: {told}."
        )

    def figure(self) -> Figure:
        """A bar for each letter, and the model's own chances as lines."""
        now = self.seen()
        figure = Figure(figsize=(6.4, 2.6), layout="constrained")
        ax = figure.subplots()
        places = list(range(N_LETTERS))
        ax.bar(places, now.chances, width=0.8, color=colours.K)
        ax.plot(places, now.before, "_", color=colours.OUTPUT, markersize=9)
        ax.set_xticks(places, [shown(letter) for letter in CHARACTERS])
        ax.set(ylim=(0, 1.02), xlabel="next letter", ylabel="probability")
        ax.spines[["top", "right"]].set_visible(False)
        return figure


def shown(letter: str) -> str:
    """A letter, or a sign for the space."""
    return SPACE if letter == " " else letter


@cache  # nobody may change what it returns
def all_scores() -> dict[str, list[float]]:
    """What the model expects after each beginning, from the page's file."""
    text = PLACE.read_text(encoding="utf-8")
    found = re.search(r"SCORES = (\{.*?\});", text, re.S)
    return json.loads(found[1]) if found else {}


def scores_after(start: str) -> Tensor:
    """The scores of all letters after a beginning, (n_letters,)."""
    return torch.tensor(all_scores()[start], dtype=torch.float64)
