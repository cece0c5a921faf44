"""Turned right in one number type, and not in another."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from selfattn.doctor.exercise import Mistake, mistake
from selfattn.doctor.exercises.positions.sinusoidal import exponentials, powers
from selfattn.doctor.exercises.positions.turning import (
    angles,
    in_its_own_type,
    turned,
)


@mistake
def angles_in_float32(x, offset):
    """In float64, only the first digits of your output are right.

    Cause: The angles are float32, or the speeds are, and 1000 radians have
        four digits behind the point then.
    Cure: Compute the angles in float64 and convert their cosines and sines.
    """
    return turned(x, angles(x, offset, dtype=torch.float32))


def by_another_formula(
    known: Mistake,
) -> Callable[[Callable[..., Tensor]], Mistake]:
    """The same mistake by another formula, with other last digits.

    It has a name of its own; its words are those of the known one.
    """
    return lambda function: replace(
        known, name=function.__name__.replace("_", " "), answer=function
    )


def at_speeds(x, offset, speed, dtype=torch.float32):
    """Turned at speeds of one's own, by angles of this number type."""
    p = torch.arange(offset, offset + x.shape[-2], dtype=dtype)
    return turned(x, p[:, None] * speed)


@by_another_formula(angles_in_float32)
def exponentials_in_float32(x, offset):
    """Speeds by an exponential, and all of it in float32."""
    return at_speeds(x, offset, exponentials(x.shape[-1]))


@by_another_formula(angles_in_float32)
def divided_in_float32(x, offset):
    """Positions divided, not multiplied."""
    d = x.shape[-1]
    slow = 10_000 ** (torch.arange(0, d, 2) / d)
    p = torch.arange(offset, offset + x.shape[-2], dtype=torch.float32)
    return turned(x, p[:, None] / slow)


@by_another_formula(angles_in_float32)
def speeds_rounded_to_float32(x, offset):
    """Angles in float64, of speeds in float32."""
    return at_speeds(x, offset, powers(x.shape[-1]), torch.float64)


@by_another_formula(angles_in_float32)
def exponentials_rounded_to_float32(x, offset):
    """The same, of speeds by an exponential."""
    return at_speeds(x, offset, exponentials(x.shape[-1]), torch.float64)


def at_angles(x, offset, speed):
    """Turned by angles in float32, whose cosines are not converted."""
    p = torch.arange(offset, offset + x.shape[-2], dtype=torch.float32)
    return in_its_own_type(x, p[:, None] * speed)


@mistake
def float32_throughout(x, offset):
    """A bfloat16 x comes back as float32; in float64, few digits are right.

    Cause: Angles, cosines and sines are float32, whatever x is.
    Cure: Compute the angles in float64, and convert their cosines and sines
        to x.dtype.
    """
    return at_angles(x, offset, powers(x.shape[-1]))


@by_another_formula(float32_throughout)
def float32_throughout_by_exponentials(x, offset):
    """The same, with speeds by an exponential."""
    return at_angles(x, offset, exponentials(x.shape[-1]))


@mistake
def float32_comes_back(x, offset):
    """Your output comes back as float32, whatever the number type of x.

    Cause: x, or the turned pairs, were made float32, and stayed so.
    Cure: Compute the angles in float64, convert their cosines and sines to
        x.dtype, and leave x as it is.
    """
    return at_angles(x.float(), offset, powers(x.shape[-1]))


@by_another_formula(float32_comes_back)
def float32_comes_back_of_exact_angles(x, offset):
    """The same, of angles that are right."""
    return turned(x.double(), angles(x, offset)).float()


@mistake
def float32_and_back(x, offset):
    """In float64, only the first digits of your output are right.

    Cause: The pairs are computed in float32, and converted back. What was
        rounded on the way stays so.
    Cure: Compute the angles in float64, convert their cosines and sines to
        x.dtype, and leave x as it is.
    """
    return float32_comes_back(x, offset).to(x.dtype)


@by_another_formula(float32_and_back)
def float32_and_back_by_exponentials(x, offset):
    """The same, with speeds by an exponential."""
    made = at_angles(x.float(), offset, exponentials(x.shape[-1]))
    return made.to(x.dtype)


@by_another_formula(float32_and_back)
def float32_and_back_by_complex_numbers(x, offset):
    """The same, with a complex number for each pair, as in LLaMA."""
    p = torch.arange(offset, offset + x.shape[-2]).float()
    angle = torch.outer(p, powers(x.shape[-1]))
    turns = torch.polar(torch.ones_like(angle), angle)
    pairs = x.float().unflatten(-1, (-1, 2)).contiguous()
    made = torch.view_as_real(torch.view_as_complex(pairs) * turns)
    return made.flatten(-2).to(x.dtype)


@mistake
def float64_comes_back(x, offset):
    """Your output comes back as float64, whatever the number type of x.

    Cause: The angles are float64, as they should be, and so are their
        cosines and sines.
    Cure: Convert the cosines and sines: angle.cos().to(x.dtype).
    """
    return in_its_own_type(x, angles(x, offset))


MISTAKES = (
    angles_in_float32,
    exponentials_in_float32,
    divided_in_float32,
    speeds_rounded_to_float32,
    exponentials_rounded_to_float32,
    float32_throughout,
    float32_throughout_by_exponentials,
    float32_comes_back,
    float32_comes_back_of_exact_angles,
    float32_and_back,
    float32_and_back_by_exponentials,
    float32_and_back_by_complex_numbers,
    float64_comes_back,
)
