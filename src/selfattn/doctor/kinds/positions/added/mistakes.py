"""The mistakes of the kind `positions`: those of the exercise."""

from dataclasses import replace

from selfattn.doctor.exercises.positions.batch_axis import (
    BATCH_AXIS,
    no_check,
)

MISTAKES = tuple(
    replace(known, chapter="positions")
    for known in BATCH_AXIS.mistakes
    if known.answer is not no_check  # matters only if a table has one row
)
