"""Induction: what came after this the last time.

A text of different tokens, and at its end one of them again. What follows is
what followed then. To know that takes two steps of attention: one by which
each token learns which stood before it, one that looks for the present one.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu
from selfattn.signatures import Positive, Seed, checked

N_TOKENS = 24  # in the vocabulary
LENGTH = 16


@checked
@on_the_cpu
def induction_batches(
    size: Positive, *, seed: Seed
) -> Iterator[
    tuple[Int[Tensor, "batch n"], Int[Tensor, " batch"], Int[Tensor, " batch"]]
]:
    """Batches without end, always the same ones for a seed.

    Args:
        size: texts a batch.
        seed: what the generator starts from.

    Yields:
        tokens: numbers from 0 to 23, (size, 16), all different but the last.
        target: the token that comes next, (size,).
        where: the position where it stands already, (size,).

    >>> tokens, target, where = next(induction_batches(size=1, seed=0))
    >>> bool(tokens[0, where[0]] == target[0])
    True
    >>> bool(tokens[0, where[0] - 1] == tokens[0, -1])
    True
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.rand(
            size, N_TOKENS, generator=generator, dtype=torch.float32
        ).argsort(-1)
        where = torch.randint(1, LENGTH - 1, (size, 1), generator=generator)
        again = order.gather(-1, where - 1)
        tokens = torch.cat([order[:, : LENGTH - 1], again], dim=-1)
        target = order.gather(-1, where)
        yield tokens, target.squeeze(-1), where.squeeze(-1)
