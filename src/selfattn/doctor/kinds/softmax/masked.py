"""A softmax that is told, in a second argument, what is forbidden."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations import hiding, scores
from selfattn.doctor.deviations.design import (
    USUAL,
    Design,
    Deviation,
    pairs,
    singles,
)
from selfattn.doctor.exercise import (
    Exercise,
    Mistake,
    UnusableError,
    mistake,
    mistake_as,
)
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.kinds.softmax import mistakes as bank
from selfattn.doctor.probes import SQUARE, Probe, Sizes, some_keys

TABLES = {"scores": "batch n_q n_k"}


def table(sizes: Sizes) -> Tensor:
    """A mask, (batch, n_q, n_k), another for each text, no row empty."""
    first = some_keys(sizes)
    return torch.stack([first.roll(b, -1) for b in range(sizes["batch"])])


def prefixes(sizes: Sizes) -> Tensor:
    """A mask, (batch, n_q, n_k): text b has its last b + 1 keys hidden."""
    real = sizes["n_k"] - 1 - torch.arange(sizes["batch"])[:, None, None]
    seen = torch.arange(sizes["n_k"]) < real.clamp(min=1)
    return seen.expand(-1, sizes["n_q"], -1)


def an_empty_row(sizes: Sizes) -> Tensor:
    """The same, but the last text sees nothing."""
    seen = prefixes(sizes).clone()
    seen[-1] = False
    return seen


PROBES = (
    Probe(
        "what a mask forbids gets no weight",
        {**TABLES, "mask": table},
        gradient=True,
        needs=("mask", "rows"),
    ),
    Probe(
        "hidden at the end, keys get no weight",
        {**TABLES, "mask": prefixes},
        gradient=True,
        needs=("mask",),
    ),
    Probe(
        "and none where there are as many rows as keys",
        {**TABLES, "mask": prefixes},
        SQUARE,
        needs=("mask",),
    ),
    Probe(
        "and none in float16",
        {**TABLES, "mask": prefixes},
        dtype=torch.float16,
        needs=("mask", "float16"),
    ),
    Probe(
        "and none in float64",
        {**TABLES, "mask": prefixes},
        dtype=torch.float64,
        needs=("mask", "float64"),
    ),
    Probe(
        "a row in which the mask forbids all has no weights: NaN",
        {**TABLES, "mask": an_empty_row},
        needs=("mask",),
        convention="empty_row",
    ),
    Probe(
        "so has one among as many rows as keys",
        {**TABLES, "mask": an_empty_row},
        SQUARE,
        needs=("mask",),
        convention="empty_row",
    ),
)
OPTIONAL = {"mask": "a mask", "rows": "a mask with a row for each query"}


def by(design: Design) -> Callable[..., Tensor]:
    """Weights under a mask, by a design."""

    def weights(values: Tensor, mask: Tensor | None = None) -> Tensor:
        allowed = None if mask is None else design.allow(mask)
        hidden = design.hide(values, allowed)
        return design.after(design.weigh(hidden), allowed)

    return weights


@mistake
def empty_row_gives_nan():
    """A row in which all is forbidden is NaN.

    Cause: Softmax divides zero by zero there, and nothing is put in its place.
    Cure: weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0).
    Chapter: masks#a-row-with-nothing-in-it
    """


@mistake
def no_keepdim():
    """It fails on most tables, and on a square one it wipes out columns.

    Cause: Without keepdim, what is to be wiped out lines up with the keys.
    Cure: mask.any(dim=-1, keepdim=True).
    Chapter: masks#a-row-with-nothing-in-it
    """


def wiped_by_columns(weights: Tensor, allowed: Tensor | None) -> Tensor:
    """Columns of zeros where rows are meant."""
    if allowed is None:
        return weights
    return weights.masked_fill(~allowed.any(dim=-1), 0.0)


def wiped_on_its_side(weights: Tensor, allowed: Tensor | None) -> Tensor:
    """The same, of a mask that is transposed."""
    if allowed is None:
        return weights
    return weights.masked_fill(~allowed.any(dim=-1, keepdim=True).mT, 0.0)


def wiped(weights: Tensor, allowed: Tensor | None) -> Tensor:
    """Zeros where a row sees nothing, as they should be."""
    if allowed is None:
        return weights
    return weights.masked_fill(~allowed.any(dim=-1, keepdim=True), 0.0)


def filled_in_its_type(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Hide by a billion, in the type of the scores."""
    return scores if allowed is None else scores.masked_fill(~allowed, -1e9)


PLAIN = replace(USUAL, weigh=lambda table: table.softmax(dim=-1))
ROUNDED = tuple(one for one in scores.PRECISION if "weigh" in one.steps)
OWN = (
    Deviation({"hide": hiding.without()}, empty_row_gives_nan),
    Deviation({"hide": filled_in_its_type}, hiding.a_billion_in_float16),
    Deviation(
        {"hide": filled_in_its_type, "after": wiped},
        hiding.a_billion_in_float16,
    ),
    Deviation({"after": wiped_by_columns}, no_keepdim),
    Deviation({"after": wiped_on_its_side}, functions.mask_on_its_side),
)
STEPS = (*OWN, *scores.SOFTMAXES, *ROUNDED, *hiding.FILLS, *hiding.MEANINGS)
RULES = {
    "nan": None,
    "zeros": mistake_as(bank.empty_row_gives_zeros)(by(USUAL)),
    "average": mistake_as(bank.empty_row_gives_the_average)(
        by(Deviation({"hide": hiding.SAFE[0].steps["hide"]}, None).of(PLAIN))
    ),
}


def answer(change: Callable[[Design], Design]) -> Callable[..., Any]:
    """A wrong softmax, of what is done otherwise."""
    return by(change(PLAIN))


def in_one_branch(masked: bool) -> Callable[..., Any]:
    """The same, where it is done otherwise with a mask alone, or without."""

    def answer_there(change: Callable[[Design], Design]) -> Callable[..., Any]:
        other, plain = by(change(PLAIN)), by(PLAIN)

        def weights(values: Tensor, mask: Tensor | None = None) -> Tensor:
            return (other if (mask is not None) == masked else plain)(
                values, mask
            )

        return weights

    return answer_there


def under_masks(exercise: Exercise) -> Exercise:
    """The exercise of a softmax, with masks; -inf in scores is not asked."""
    plain = tuple(
        probe
        for probe in exercise.probes
        if not probe.convention and "forbidden" not in probe.needs
    )
    rules = [rule for rule in RULES.values() if rule]
    return replace(
        exercise,
        solution=by(PLAIN),
        probes=(*plain, *PROBES),
        by_name=("mask",),
        mistakes=(*of_hidden(bank.MISTAKES), *rules),
        optional={**exercise.optional, **OPTIONAL},
        conventions={"empty_row": RULES},
        deviations=(
            *singles(STEPS, answer),
            *singles(STEPS, in_one_branch(False)),
            *singles(STEPS, in_one_branch(True)),
        ),
        second=lambda: (
            *pairs(STEPS, answer, hiding.SAFE),
            *pairs(STEPS, in_one_branch(True)),
        ),
    )


def of_hidden(mistakes: Iterable[Mistake]) -> Iterator[Mistake]:
    """The mistakes of those without a mask, made where it has hidden scores.

    What an empty row becomes is left out: of that there are others.
    """

    def on_hidden(known: Mistake) -> Callable[..., Any]:
        def weights(values: Tensor, mask: Tensor | None = None) -> Any:
            if mask is not None:
                values = values.masked_fill(~mask, -torch.inf)
            return known.answer(values)

        return weights

    for known in mistakes:
        if not known.name.startswith("empty row"):
            yield replace(known, answer=on_hidden(known))


def of_texts(mask: Tensor) -> Tensor:
    """A mask with one row for each text.

    Raises:
        UnusableError: if its rows are not alike.
    """
    if not bool((mask == mask[:, :1]).all()):
        raise UnusableError("its mask has one row for each text")
    return mask[:, 0]
