"""Two look-ups at once: who reads whose digits.

Six names stand in random order, each holding a random digit, as in
`selfattn.data.relations`. The names form one ring, and every name must report
two digits: that of the next name in the ring, and that of the one before.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu
from selfattn.data.numbering import check_below
from selfattn.data.relations import N_NAMES, held_digits
from selfattn.signatures import Positive, Seed, checked


@checked
def neighbours(names: Int[Tensor, "..."]) -> Int[Tensor, "... 2"]:
    """The next name in the ring, and the one before.

    Args:
        names: numbers from 0 to 5.

    >>> neighbours(torch.tensor([0, 3, 5])).tolist()
    [[1, 5], [4, 2], [0, 4]]
    """
    check_below("names", names, N_NAMES)
    names = names.long()  # numbers without a sign have none before 0
    return torch.stack([(names + 1) % N_NAMES, (names - 1) % N_NAMES], dim=-1)


@checked
@on_the_cpu
def two_lookup_batches(
    size: Positive, *, seed: Seed
) -> Iterator[
    tuple[
        Float[Tensor, "batch names width"],
        Int[Tensor, "batch names 2"],
        Int[Tensor, "batch names 2"],
    ]
]:
    """Batches without end, always the same ones for a seed.

    Args:
        size: sentences a batch.
        seed: what the generator starts from.

    Yields:
        x: a one-hot name beside a one-hot digit, (size, 6, 16).
        target: the two digits to report, (size, 6, 2).
        where: the positions of the names that hold them, (size, 6, 2).

    >>> x, target, where = next(two_lookup_batches(size=3, seed=0))
    >>> x.shape, target.shape, where.shape
    (torch.Size([3, 6, 16]), torch.Size([3, 6, 2]), torch.Size([3, 6, 2]))
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        x, names, digits = held_digits(size, generator)
        position_of = names.argsort(dim=-1)  # position_of[b, name]
        wanted = neighbours(names).flatten(1)
        where = position_of.gather(-1, wanted)
        target = digits.gather(-1, where)
        yield x, target.unflatten(-1, (-1, 2)), where.unflatten(-1, (-1, 2))
