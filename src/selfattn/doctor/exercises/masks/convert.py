"""`as_added(keep, dtype)`: a boolean mask as numbers to add."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe, past_keys, real_keys, some_keys


def as_added(keep, dtype):
    """0 where it may look, minus infinity where it may not."""
    return torch.zeros(keep.shape, dtype=dtype).masked_fill(~keep, -torch.inf)


def with_type(dtype, keep):
    """The inputs of a probe: a mask, made of the sizes, and a type."""
    return {"keep": lambda _: keep(SIZES), "dtype": lambda _: dtype}


SIZES = {"n_q": 3, "n_k": 5, "batch": 2}


@mistake
def turned_round(keep, dtype):
    """Your mask forbids what it should allow.

    Cause: Minus infinity is where keep is True.
    Cure: masked_fill(~keep, ...).
    """
    return as_added(~keep, dtype)


@mistake
def zero_times_infinity(keep, dtype):
    """There is NaN where it should be 0.

    Cause: (1 - keep) * -inf is 0 times infinity where keep is True.
    Cure: Do not multiply: torch.zeros(...).masked_fill(~keep, -torch.inf).
    """
    return (1 - keep.to(dtype)) * -torch.inf


@mistake
def a_billion(keep, dtype):
    """It works in float32, and fails in float16.

    Cause: float16 ends at 65,504, and -1e9 does not fit.
    Cure: -torch.inf fits every type.
    """
    return torch.zeros(keep.shape, dtype=dtype).masked_fill(~keep, -1e9)


@mistake
def a_billion_multiplied(keep, dtype):
    """Your numbers are finite; minus infinity is asked for.

    Cause: (1 - keep) * -1e9, as much code has it. It hides a key as long as
        no score and no second mask comes near a billion.
    Cure: torch.zeros(keep.shape, dtype=dtype).masked_fill(~keep, -torch.inf).
    """
    return (1 - keep.to(dtype)) * -1e9


@mistake
def the_lowest_number(keep, dtype):
    """Your numbers are finite; minus infinity is asked for.

    Cause: torch.finfo(dtype).min. Added to a score it may overflow or not,
        and two such masks do.
    Cure: -torch.inf.
    """
    low = torch.finfo(dtype).min
    return torch.zeros(keep.shape, dtype=dtype).masked_fill(~keep, low)


@mistake
def ones_and_zeros(keep, dtype):
    """These are 1 and 0. Added to scores they hide nothing.

    Cause: The booleans were only given another type.
    Cure: 0 where it may look, -torch.inf where it may not.
    """
    return keep.to(dtype)


@mistake
def one_where_allowed(keep, dtype):
    """What may be seen is 1, and should be 0.

    Cause: The mask began as ones.
    Cure: Begin with torch.zeros. (One added to a whole row changes no
        weight; but it is no longer clear what the numbers are.)
    """
    return as_added(keep, dtype) + 1


@mistake
def always_float32(keep, dtype):
    """Your numbers are float32, whatever is asked for.

    Cause: The type is not handed on: torch.zeros and numbers such as 0.0
        make float32 when they are not told otherwise.
    Cure: torch.zeros(keep.shape, dtype=dtype).
    """
    return as_added(keep, torch.float32)


@mistake
def plus_infinity(keep, dtype):
    """What should be hidden drowns all the rest.

    Cause: A sign: plus infinity, or minus minus infinity.
    Cure: -torch.inf, whose exponential is 0.
    """
    return -as_added(keep, dtype)


@mistake
def booleans_returned(keep, dtype):
    """These are booleans; numbers are asked for.

    Cause: The mask was handed back, turned round or not.
    Cure: torch.zeros(keep.shape, dtype=dtype).masked_fill(~keep, -torch.inf).
    """
    return ~keep


CONVERT = Exercise(
    "masks/convert",
    asks="0 where keep is True and minus infinity where not",
    solution=as_added,
    probes=(
        Probe(
            "0 allows and minus infinity forbids",
            with_type(torch.float32, some_keys),
        ),
        Probe(
            "what may be seen is 0, and not NaN",
            with_type(torch.float32, past_keys),
        ),
        Probe("it has the mask's axes", with_type(torch.float32, real_keys)),
        Probe("float16 is float16", with_type(torch.float16, some_keys)),
        Probe("bfloat16 is bfloat16", with_type(torch.bfloat16, some_keys)),
        Probe("float64 is float64", with_type(torch.float64, some_keys)),
    ),
    mistakes=(
        turned_round,
        zero_times_infinity,
        a_billion,
        a_billion_multiplied,
        the_lowest_number,
        ones_and_zeros,
        one_where_allowed,
        always_float32,
        plus_infinity,
        booleans_returned,
    ),
)
