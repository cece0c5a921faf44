"""The probes of the exercise, as wide as a table, and more on the table."""

from dataclasses import replace

from torch import Tensor

from selfattn.doctor.deviations.number_types import of_types
from selfattn.doctor.exercises.positions.batch_axis import (
    BATCH_AXIS,
)
from selfattn.doctor.probes import Probe

ELSEWHERE = {"float64"}  # the table has a type, and a length of its own
KEPT = ("batch", "n")  # the sizes that a probe has for a reason


def of_table(table: Tensor) -> tuple[Probe, ...]:
    """The same, two on the table's end, and some on the types around it."""
    rows, d = table.shape
    sizes = {"d": d, "n": min(5, rows - 1)}
    kept = [
        Probe(
            probe.claim,
            {"x": "batch n d"},
            {**sizes, **{a: s for a, s in probe.sizes.items() if a in KEPT}},
            table.dtype,
            probe.change,
            probe.gradient,
            fixed=("d",),
            refused=probe.sizes.get("n", 0) > rows,
        )
        for probe in BATCH_AXIS.probes
        if not ELSEWHERE & {*probe.needs} and probe.experiment is None
    ]
    typed = of_types({"x": "batch n d"}, sizes, ("d",))
    return (*kept, *at_the_end(table), *typed)


def at_the_end(table: Tensor) -> tuple[Probe, Probe]:
    """A text just as long as the table is taken, a longer one refused."""
    rows, d = table.shape
    full = Probe(
        "a text just as long as the table has a row for every token",
        {"x": "batch n d"},
        {"n": rows, "d": d},
        table.dtype,
        fixed=("d", "n"),
    )
    beyond = replace(
        full,
        claim="a text that is longer than the table is refused",
        sizes={"n": rows + 1, "d": d},
        refused=True,
    )
    return full, beyond
