"""What needs no comparison with any mistake to be seen."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations.handing_back import (
    axes_in_another_order,
    changed_in_place,
)
from selfattn.doctor.engine.comparison import difference
from selfattn.doctor.engine.matching import Seen, observe_known, unlike
from selfattn.doctor.engine.outcome import Outcome, alike, undisturbed
from selfattn.doctor.exercise import Exercise, Mistake, mistake
from selfattn.doctor.exercises.dot_product.attention import detached
from selfattn.doctor.report import Difference

IN_PLACE = re.compile("in-?place")  # in what PyTorch says when it raises
FULL = (torch.float32, torch.float64)


@mistake
def another_type_returned():
    """It returns another number type than it was given.

    Cause: Something on the way, such as a table or .float(), has a type of
        its own, and the result is not turned back.
    Cure: .to(x.dtype) at the end, or make what is added in x's type.
    """


@mistake
def dropout_that_never_ends():
    """Two calls with the same input give different outputs.

    Cause: Something is drawn at random, in evaluation, too; F.dropout drops
        unless it is told not to.
    Cure: F.dropout(x, p, training=self.training), or nn.Dropout.
    Chapter: dot_product
    """


def seen_alone(
    answer: Any, exercise: Exercise, seen: Sequence[Seen]
) -> Mistake | None:
    """What needs no comparison with any mistake to be seen."""
    faults = [found for one in seen if (found := fault(exercise, one))]
    sorts = {found.sort for found in faults}
    told = sorted(found.sentence for found in faults)
    if sorts == {"modifies"}:
        return replace(changed_in_place, symptom=told[0])
    if raised := raised_in_place(faults):
        return replace(changed_in_place, symptom=min(raised))
    one_type = sorts == {"dtype"} and not any(map(is_complex, seen))
    if one_type or stumbles_over_types(exercise, seen):
        words = [f.sentence for f in faults if f.sort == "dtype"]
        return replace(another_type_returned, symptom=min(words))
    if "shape" in sorts and are_turned(exercise, seen):
        return axes_in_another_order
    if sorts and varies(answer, exercise, seen):
        return dropout_that_never_ends
    if sorts == {"gradient"} and all(map(is_cut_off, seen)):
        return detached
    return changed_in_place if always_modifies(exercise, seen) else None


def is_complex(one: Seen) -> bool:
    """Whether complex numbers came back, which are no type of a table's."""
    value = one.outcome.value
    return isinstance(value, Tensor) and value.is_complex()


def raised_in_place(faults: Sequence[Difference]) -> list[str]:
    """What PyTorch said of numbers written over, if nothing else is wrong.

    Whoever writes over the input is told so where nothing is to be learned.
    """
    said = [f.sentence for f in faults if f.sort in ("gradient", "raises")]
    others = {f.sort for f in faults} - {"modifies", "gradient", "raises"}
    told = [words for words in said if IN_PLACE.search(words)]
    return [] if others or len(told) < len(said) else told


def is_cut_off(one: Seen) -> bool:
    """Whether other gradients flow back, or none: but no NaN, and no error.

    What is taken out of the graph leaves the others as they are.
    """
    flown = [g for g in one.outcome.gradients.values() if g is not None]
    raised = one.outcome.gradient_error is not None
    return not raised and all(bool(g.isfinite().all()) for g in flown)


def always_modifies(exercise: Exercise, seen: Sequence[Seen]) -> bool:
    """Whether it changes an input wherever it is wrong, and ours does not.

    Who goes on with what he changed gets other numbers as well.
    """
    wrong = [one for one in seen if is_value(one) and fault(exercise, one)]
    return bool(wrong) and all(
        one.outcome.modified
        and not observe_known(exercise, one.rule, one.probe).modified
        for one in wrong
    )


def stumbles_over_types(exercise: Exercise, seen: Sequence[Seen]) -> bool:
    """Whether another type comes out; or it raises, in types of their own.

    As a part does that is given another type by the part before it.
    """
    found = [(one, fault(exercise, one)) for one in seen]
    wrong = [(one, it) for one, it in found if it is not None]
    return {it.sort for _, it in wrong} == {"dtype", "raises"} and all(
        it.sort == "dtype" or one.probe.dtype != torch.float32
        for one, it in wrong
    )


def are_turned(exercise: Exercise, seen: Sequence[Seen]) -> bool:
    """Whether all values are right, but for two axes that are exchanged."""
    wrong = [one for one in seen if is_value(one) and fault(exercise, one)]
    return bool(wrong) and any(
        all(is_turned(exercise, one, axes) for one in wrong)
        for axes in combinations(range(-4, 0), 2)
    )


def is_turned(exercise: Exercise, one: Seen, axes: tuple[int, int]) -> bool:
    """Whether a value is right once two of its axes are exchanged."""
    right, mine = observe_known(exercise, one.rule, one.probe), one.outcome
    if not isinstance(mine.value, torch.Tensor) or mine.value.ndim < -axes[0]:
        return False
    turned = Outcome(value=mine.value.transpose(*axes))
    bare = Outcome(value=right.value)
    return difference(turned, bare, one.probe.tolerance) is None


def varies(answer: Any, exercise: Exercise, seen: Sequence[Seen]) -> bool:
    """Whether calls with one input give more than one output."""
    for one in [one for one in seen if is_value(one)][:1]:
        with undisturbed():
            first, *others = (
                exercise.run(answer, one.probe.make()) for _ in range(6)
            )
        return any(not alike(first, other) for other in others)
    return False


def fault(exercise: Exercise, one: Seen) -> Difference | None:
    """In what an outcome is not the solution's, if it is not."""
    return unlike(exercise, one.rule, one.probe, one.outcome)


def is_value(one: Seen) -> bool:
    """Whether a probe gave a value, of full precision, to be compared."""
    return (
        one.probe.dtype in FULL
        and not one.probe.convention
        and one.probe.experiment is None
        and one.outcome.error is None
        and isinstance(one.outcome.value, torch.Tensor)
    )
