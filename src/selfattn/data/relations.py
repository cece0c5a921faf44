"""Who reads whose digit: a look-up by relation.

Six names stand in random order, each holding a random digit. Every name must
report the digit of the name it is related to. The relation is fixed: the
names are dealt into cycles, and each reads the next in its cycle.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu, where_it_draws
from selfattn.data.numbering import check_below
from selfattn.signatures import Positive, Seed, checked

N_NAMES = 6
N_DIGITS = 10
D_MODEL = N_NAMES + N_DIGITS


@checked
def related(names: Int[Tensor, "..."], cycle: int) -> Int[Tensor, "..."]:
    """The name that each name reads.

    Args:
        names: numbers from 0 to 5.
        cycle: how many names a cycle has; must divide 6. With 1 each reads
            itself, with 2 the two of a pair read each other, with 3 and 6
            the relation runs one way.

    Raises:
        ValueError: if the cycles do not come out even.

    >>> related(torch.arange(6), cycle=3).tolist()
    [1, 2, 0, 4, 5, 3]
    """
    if cycle < 1 or N_NAMES % cycle:
        raise ValueError(
            f"a cycle must divide the {N_NAMES} names, but cycle={cycle}"
        )
    check_below("names", names, N_NAMES)
    return names // cycle * cycle + (names % cycle + 1) % cycle


@where_it_draws
def held_digits(
    size: int, generator: torch.Generator
) -> tuple[
    Float[Tensor, "batch names width"],
    Int[Tensor, "batch names"],
    Int[Tensor, "batch names"],
]:
    """Names in random order, each holding a random digit.

    Returns:
        A one-hot name beside a one-hot digit, (size, 6, 16), the names and
        the digits, (size, 6).
    """
    names = torch.rand(
        size, N_NAMES, generator=generator, dtype=torch.float32
    ).argsort(dim=-1)
    digits = torch.randint(N_DIGITS, names.shape, generator=generator)
    pair = [F.one_hot(names, N_NAMES), F.one_hot(digits, N_DIGITS)]
    return torch.cat(pair, dim=-1).float(), names, digits


@checked
@on_the_cpu
def relation_batches(
    cycle: int, size: Positive, *, seed: Seed
) -> Iterator[
    tuple[
        Float[Tensor, "batch names width"],
        Int[Tensor, "batch names"],
        Int[Tensor, "batch names"],
    ]
]:
    """Batches without end, always the same ones for a seed.

    Args:
        cycle: how many names a cycle has; see `related`.
        size: sentences a batch.
        seed: what the generator starts from.

    Yields:
        x: a one-hot name beside a one-hot digit, (size, 6, 16).
        target: the digit to report, (size, 6).
        where: the position of the name that holds it, (size, 6).

    >>> x, target, where = next(relation_batches(cycle=2, size=3, seed=0))
    >>> x.shape, target.shape, where.shape
    (torch.Size([3, 6, 16]), torch.Size([3, 6]), torch.Size([3, 6]))
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        x, names, digits = held_digits(size, generator)
        position_of = names.argsort(dim=-1)  # position_of[b, name]
        where = position_of.gather(-1, related(names, cycle))
        yield x, digits.gather(-1, where), where
