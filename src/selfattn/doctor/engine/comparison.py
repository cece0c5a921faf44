"""In what an outcome differs from the expected one, in words."""

import functools

import torch
from torch import Tensor

from selfattn.doctor.engine.outcome import Outcome, alike
from selfattn.doctor.exercise import describe
from selfattn.doctor.report import Difference

# Right answers differ by rounding, some ten steps of the number type. Wrong
# ones differ by far more, since the probes keep all numbers near one. This is
# the relative tolerance always, and the absolute one unless a probe has its
# own, such as where numbers are so large on the way that sums cancel.
TOLERANCE = {
    torch.float64: 1e-9,
    torch.float32: 1e-5,
    torch.float16: 5e-3,
    torch.bfloat16: 4e-2,
}


# A patient is read in many ways, and what it did is compared in each of them
# with the same mistakes: one that was compared is not compared again.
@functools.lru_cache(maxsize=20_000)
def difference(
    outcome: Outcome, expected: Outcome, tolerance: float | None = None
) -> Difference | None:
    """In what an outcome differs from the expected one, the worst first."""
    if outcome.error is not None and expected.error is not None:
        return None  # in what words it fails does not matter
    if outcome.unusable:
        return Difference("type", outcome.error or "")
    if outcome.error is not None:
        return Difference("raises", f"It raises {outcome.error}.")
    if expected.error is not None:
        return Difference("raises", "It raises nothing.")
    if outcome.modified != expected.modified:
        names = " and ".join(outcome.modified) or "nothing"
        return Difference(
            "modifies",
            f"It changes {names}, which belongs to the caller. Beware of +=, "
            "*= and of methods whose names end in _.",
        )
    found = compare(outcome.value, expected.value, tolerance)
    if found is not None or not is_finite(expected.value):
        return found  # behind NaN, gradients depend on how it is written
    return compare_gradients(outcome, expected, tolerance)


def compare(
    yours: object, expected: object, tolerance: float | None
) -> Difference | None:
    """In what a value differs: its type, its shape or its numbers."""
    if not isinstance(yours, Tensor) or not isinstance(expected, Tensor):
        return compare_types(yours, expected)
    if yours.is_nested:  # which has no shape
        sentence = "It returns a nested tensor, but a dense one is asked for."
        return Difference("dtype", sentence)
    if yours.shape != expected.shape:
        return Difference(
            "shape",
            f"It returns the shape {tuple(yours.shape)}, but "
            f"{tuple(expected.shape)} is asked for.",
            other_size=yours.numel() != expected.numel(),
        )
    for what in ("dtype", "device", "layout"):
        one, other = getattr(yours, what), getattr(expected, what)
        if one != other:
            sentence = f"It returns {what} {one}, but {other} is asked for."
            return Difference("dtype", sentence)
    return compare_numbers(yours.detach(), expected.detach(), tolerance)


def compare_numbers(
    yours: Tensor, expected: Tensor, tolerance: float | None
) -> Difference | None:
    """Compare two tensors of one shape and type."""
    if close(yours, expected, tolerance):
        return None
    if not is_finite(yours):
        for what, bad in ("NaN", yours.isnan()), ("infinity", yours.isinf()):
            if n := int((bad & expected.isfinite()).sum()):
                words = f"It gives {what} in {n} of {yours.numel()} numbers."
                return Difference("nan", words, yours, expected)
    gap = (yours.double() - expected.double()).abs().nan_to_num().max()
    sentence = f"Its numbers are wrong by up to {gap.item():.2g}."
    return Difference("value", sentence, yours, expected)


def compare_types(yours: object, expected: object) -> Difference | None:
    """Compare two things of which at least one is no tensor."""
    if isinstance(expected, Tensor):
        sentence = f"It gives {describe(yours)}, but a tensor is asked for."
        if isinstance(yours, tuple) and len(yours) > 1:
            sentence += " Return one thing alone."
        return Difference("nothing" if yours is None else "type", sentence)
    if type(yours) is not type(expected):
        words = f"{describe(yours)}, but {describe(expected)} is asked for"
        return Difference("type", f"It gives {words}.")
    if not alike(yours, expected):
        return Difference("value", "It is another one.")
    return None


def compare_gradients(
    outcome: Outcome, expected: Outcome, tolerance: float | None
) -> Difference | None:
    """In what gradients differ, for the first input where they do."""
    if outcome.gradient_error and expected.gradient_error:
        return None
    if outcome.gradient_error or expected.gradient_error:
        words = outcome.gradient_error or "nothing"
        return Difference(
            "gradient", f"When gradients are asked for, it raises {words}."
        )
    for name, wanted in expected.gradients.items():
        got = outcome.gradients.get(name)
        if got is None and wanted is None:
            continue
        if got is None or wanted is None:
            verb = "No gradient" if got is None else "A gradient"
            return Difference("gradient", f"{verb} flows back to {name}.")
        found = compare(got, wanted, tolerance)
        if found is not None:
            sentence = f"The gradient of {name}: {found.sentence}"
            return Difference("gradient", sentence, *found[2:])
    return None


def is_finite(value: object) -> bool:
    """Whether something has neither NaN nor infinity in it."""
    return not isinstance(value, Tensor) or bool(value.isfinite().all())


def tells_something(value: Tensor) -> bool:
    """Whether a value has a number in it: NaN alone has any cause.

    One whose numbers are not at hand is told by its kind alone.
    """
    return at_hand(value) and bool(value.isfinite().any())


def comparable(a: object, b: object) -> bool:
    """Whether two things are tensors at hand, of one shape, type and place."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return False
    if not (at_hand(a) and at_hand(b)):
        return False
    return (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device)


def at_hand(value: Tensor) -> bool:
    """Whether a tensor has numbers to look at, in one dense table."""
    if value.is_meta or value.is_nested or value.is_quantized:
        return False
    return value.layout == torch.strided


def close(a: Tensor, b: Tensor, tolerance: float | None) -> bool:
    """Whether two tensors of one shape and type are equal up to rounding.

    ``tolerance`` is the absolute one; that of the number type when None.
    """
    if torch.equal(a, b):
        return True  # as most are, and sooner told
    rounding = TOLERANCE.get(a.dtype, 0.0)
    return torch.allclose(
        a.to(torch.float64),
        b.to(torch.float64),
        rtol=rounding,
        atol=rounding if tolerance is None else tolerance,
        equal_nan=True,
    )
