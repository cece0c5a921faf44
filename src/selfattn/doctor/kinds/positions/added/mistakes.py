"""The mistakes of the kind `positions`: those of the exercise."""

from dataclasses import replace

from selfattn.doctor.exercises.positions import batch_axis

NO_MISTAKES = {
    batch_axis.no_check,  # matters only if a table has one row
    batch_axis.another_error,  # no module has agreed on a ValueError
}
MISTAKES = tuple(
    replace(known, chapter="positions")
    for known in batch_axis.BATCH_AXIS.mistakes
    if known not in NO_MISTAKES
)
