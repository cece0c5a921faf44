"""The probes of the exercise, as wide as a table, and two on its end."""

from torch import Tensor

from selfattn.doctor.exercises.positions.batch_axis import (
    BATCH_AXIS,
)
from selfattn.doctor.probes import Probe

ELSEWHERE = {"float64", "short table"}  # the table has a type and a length
KEPT = ("batch", "n")  # the sizes that a probe has for a reason


def of_table(table: Tensor) -> tuple[Probe, ...]:
    """The probes of the exercise, as wide as a table, and two on its end."""
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
        if not ELSEWHERE & {*probe.needs}
    ]
    full = Probe(
        "a text just as long as the table has a row for every token",
        {"x": "batch n d"},
        {"n": rows, "d": d},
        table.dtype,
        fixed=("d", "n"),
    )
    beyond = Probe(
        "a text that is longer than the table is refused",
        {"x": "batch n d"},
        {"n": rows + 1, "d": d},
        table.dtype,
        fixed=("d", "n"),
        refused=True,
    )
    return (*kept, full, beyond)
