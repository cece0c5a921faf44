"""Text that repeats itself: after once round, every token can be foretold.

A few different tokens in random order, said again and again. How many there
are differs from batch to batch, so that no fixed step backwards will do. One
way is to find where the present token stood before, and read what came next.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu
from selfattn.signatures import Positive, Seed, checked

N_TOKENS = 16  # in the vocabulary
LENGTH = 24
SHORTEST, LONGEST = 5, 12  # tokens before it begins anew


@checked
@on_the_cpu
def repeat_batches(
    size: Positive, *, seed: Seed
) -> Iterator[tuple[Int[Tensor, "batch n"], int]]:
    """Batches without end, always the same ones for a seed.

    Args:
        size: texts a batch.
        seed: what the generator starts from.

    Yields:
        tokens: numbers from 0 to 15, (size, 24).
        period: after how many tokens they begin anew; one for the batch.

    >>> tokens, period = next(repeat_batches(size=3, seed=0))
    >>> bool((tokens[:, period:] == tokens[:, :-period]).all())
    True
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        (period,) = torch.randint(
            SHORTEST, LONGEST + 1, (1,), generator=generator
        ).tolist()
        order = torch.rand(
            size, N_TOKENS, generator=generator, dtype=torch.float32
        ).argsort(-1)
        position = torch.arange(LENGTH) % period
        yield order[:, position], period
