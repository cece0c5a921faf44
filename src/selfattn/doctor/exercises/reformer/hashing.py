"""`hashed(x, R)`: the bucket of each vector, by the paper's rule."""

from typing import Any

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe


def vectors(
    n: int, d: int, half: int, dtype: torch.dtype = torch.float32
) -> tuple[dict[str, Any], dict[str, int]]:
    """Vectors, and directions no two of which are equally near to one."""
    generator = torch.Generator().manual_seed(0)
    R = torch.randn(d, half, generator=generator, dtype=torch.float64)
    inputs = {"x": "n d", "R": lambda _: R.to(dtype)}
    return inputs, {"n": n, "d": d}


def solution(x, R):
    """The nearest of the directions and their opposites."""
    return torch.cat([x @ R, -x @ R], dim=-1).argmax(dim=-1)


@mistake
def half_the_buckets(x, R):
    """Half of the buckets are never used.

    Cause: Only the directions themselves are compared, not their opposites.
    Cure: argmax over xR and -xR, side by side.
    """
    return (x @ R).argmax(dim=-1)


@mistake
def opposites_together(x, R):
    """A vector and its opposite are in one bucket.

    Cause: The product's size decides, and its sign is dropped. A key that
        points away would be attended to as a near one.
    Cure: argmax over xR and -xR, side by side.
    """
    return (x @ R).abs().argmax(dim=-1)


@mistake
def opposites_first(x, R):
    """Your buckets are numbered the other way round.

    Cause: -xR stands before xR.
    Cure: The paper puts xR first. Which number a bucket has does not matter
        to attention, but both sides must count alike.
    """
    return torch.cat([-x @ R, x @ R], dim=-1).argmax(dim=-1)


@mistake
def interleaved(x, R):
    """Your buckets are numbered in pairs.

    Cause: A direction and its opposite have neighbouring numbers, 2i and
        2i + 1.
    Cure: The paper has all directions first, then all opposites. Which
        number a bucket has does not matter to attention, but both sides
        must count alike.
    """
    both = torch.stack([x @ R, -x @ R], dim=-1)
    return both.flatten(-2).argmax(dim=-1)


@mistake
def unit_directions(x, R):
    """Long directions do not win more often.

    Cause: The directions were brought to length one. The paper takes them
        as they are drawn.
    Cure: Compare the products with R itself.
    """
    return solution(x, R / R.norm(dim=0, keepdim=True))


@mistake
def signs_as_bits(x, R):
    """There are too many buckets.

    Cause: Each direction's sign is a bit of the number. That is another
        hash, of random hyperplanes, with 2 to the power of their number.
    Cure: One winner among 2h directions: argmax over xR and -xR.
    """
    powers = 2 ** torch.arange(R.shape[-1])
    return ((x @ R > 0).long() * powers).sum(dim=-1)


@mistake
def by_columns(x, R):
    """There is a bucket for each direction, not for each vector.

    Cause: argmax ran over the vectors.
    Cure: dim=-1: over the directions.
    """
    return torch.cat([x @ R, -x @ R], dim=-1).argmax(dim=0)


@mistake
def nearest_by_distance(x, R):
    """Long directions never win.

    Cause: The distance to the end of a direction was compared, which grows
        with how long it is.
    Cure: Compare the products.
    """
    ends = torch.cat([R, -R], dim=-1).mT
    return (x[:, None] - ends).norm(dim=-1).argmin(dim=-1)


HASHING = Exercise(
    "reformer/hashing",
    asks="the bucket of each vector: argmax over xR and -xR",
    solution=solution,
    probes=(
        Probe("each vector has its bucket", *vectors(23, 5, 3), fixed=("d",)),
        Probe("one direction makes two", *vectors(11, 3, 1), fixed=("d",)),
        Probe("many directions", *vectors(31, 7, 13), fixed=("d",)),
        Probe("one vector", *vectors(1, 5, 2), fixed=("d",)),
        Probe(
            "float64 as well",
            *vectors(17, 3, 5, torch.float64),
            dtype=torch.float64,
            fixed=("d",),
        ),
    ),
    mistakes=(
        half_the_buckets,
        opposites_together,
        opposites_first,
        interleaved,
        unit_directions,
        signs_as_bits,
        by_columns,
        nearest_by_distance,
    ),
)
