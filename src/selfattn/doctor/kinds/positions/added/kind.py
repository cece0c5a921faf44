"""Modules that add a position to each token, from a table of their own."""

import copy
import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.exercises.positions.batch_axis import (
    BATCH_AXIS,
    add_positions,
)
from selfattn.doctor.kind import Fact, Kind, UnclearError
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import Probe, numbers

TOO_SHORT = (
    "a table that is too short is refused",
    "even if it has but one row",
)
SKIPPED = ("float64 stays float64", *TOO_SHORT)
KEPT = ("batch", "n")  # the sizes that a probe has for a reason
TYPICAL = numbers(7, 11, seed=5)  # when there is no patient, as in tests


def probes(table: Tensor) -> tuple[Probe, ...]:
    """The probes of the exercise, as wide as a table, and one beyond it."""
    rows, d = table.shape
    sizes = {"d": d, "n": min(5, rows - 1)}
    kept = [
        Probe(
            probe.asks,
            {"x": "batch n d"},
            {**sizes, **{a: s for a, s in probe.sizes.items() if a in KEPT}},
            table.dtype,
            probe.change,
            probe.gradient,
            fixed=("d",),
        )
        for probe in BATCH_AXIS.probes
        if probe.asks not in SKIPPED
    ]
    beyond = Probe(
        "a text that is longer than the table is refused",
        {"x": "batch n d"},
        {"n": rows + 1, "d": d},
        table.dtype,
        fixed=("d", "n"),
    )
    return (*kept, beyond)


def for_table(table: Tensor) -> Exercise:
    """The exercise of adding this very table, (rows, d)."""
    exercise = Exercise(
        "positions",
        asks=BATCH_AXIS.asks,
        solution=partial(add_positions, table=table),
        probes=probes(table),
    )
    for known in BATCH_AXIS.mistakes:
        if known.name != "no check":  # matters only if a table has one row
            answer = partial(known.answer, table=table)
            exercise.mistakes.append(
                dataclasses.replace(known, answer=answer, chapter="positions")
            )
    return exercise


def prepare(thing: Any, facts: Facts) -> Any:
    """A copy that is evaluated, so that nothing is dropped."""
    return (
        copy.deepcopy(thing).eval() if isinstance(thing, nn.Module) else thing
    )


def look(thing: Any, said: Facts) -> dict[str, Any]:
    """The module's table: a buffer or parameter that has a row a position.

    Raises:
        UnclearError: if there is none, or more than one.
    """
    if said.get("table") is not None:
        return {}
    if not isinstance(thing, nn.Module):
        raise UnclearError("Say table=…, the table that it adds, (rows, d).")
    found = [*thing.named_buffers(), *thing.named_parameters()]
    tables = [x.detach() for _, x in found if x.squeeze().ndim == 2]
    if len(tables) != 1:
        raise UnclearError(
            f"I find {len(tables)} tables in it. Say table=…, the one that "
            "it adds, (rows, d)."
        )
    return {"table": tables[0].squeeze()}


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it in its own layout."""

    def add(x: Tensor) -> object:
        if facts.get("layout") == "NBD":
            output = thing(x.transpose(0, 1))
            return output.transpose(0, 1) if output.ndim == 3 else output
        return thing(x)

    return add


KIND = Kind(
    "positions",
    asks="of tokens, the same with a row of its table added to each",
    exercise=lambda thing, facts: for_table(facts.get("table", TYPICAL)),
    facts={
        "table": Fact("the table that it adds, (rows, d)"),
        "layout": Fact(
            "the axes of x",
            {"BND": "batch, tokens, features", "NBD": "tokens first"},
            tried=False,
        ),
    },
    look=look,
    prepare=prepare,
    adapt=adapt,
)
