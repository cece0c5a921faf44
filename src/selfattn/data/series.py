"""Time series that come round: each has a shape and a period of its own.

A few random steps are repeated, with a little noise. What comes next is what
came a period ago; how long that is, each series must tell by itself.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu
from selfattn.signatures import Positive, Seed, checked

LENGTH = 48
SHORTEST, LONGEST = 5, 12  # steps before it comes round
NOISE = 0.1  # its standard deviation; that of the shape is 1


@checked
@on_the_cpu
def series_batches(
    size: Positive, *, seed: Seed, n: int = LENGTH
) -> Iterator[tuple[Float[Tensor, "batch n"], Int[Tensor, " batch"]]]:
    """Batches without end, always the same ones for a seed.

    Args:
        size: series a batch.
        seed: what the generator starts from.
        n: steps a series.

    Yields:
        x: the series, (size, n). Foretold from a period ago, a step is off
            by √2 times the noise; nobody can be nearer than the noise.
        period: of each series, (size,).

    Raises:
        ValueError: if a series has no steps.

    >>> x, period = next(series_batches(size=2, seed=0))
    >>> x.shape, period.tolist()
    (torch.Size([2, 48]), [9, 12])
    """
    if n < 1:
        raise ValueError(f"a series must have a step, but n={n}")
    generator = torch.Generator().manual_seed(seed)
    while True:
        period = torch.randint(
            SHORTEST, LONGEST + 1, (size, 1), generator=generator
        )
        shape = torch.randn(
            size, LONGEST, generator=generator, dtype=torch.float32
        )
        noise = NOISE * torch.randn(
            size, n, generator=generator, dtype=torch.float32
        )
        x = shape.gather(-1, torch.arange(n) % period) + noise
        yield x, period.squeeze(-1)
