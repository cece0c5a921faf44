"""Three yes-or-no questions about a sequence, each easy for another network.

*Pattern*: does an ``a`` stand right before a ``b``, anywhere? *Latest*: which
of the marks ``a`` and ``b`` came last, wherever that was? *Place*: which of
them stands in the eighth place, whatever else there is? Half of the answers
are yes; what is not asked about is drawn at random.
"""

from collections.abc import Iterator
from typing import Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu, where_it_draws
from selfattn.signatures import Positive, Seed, checked

Question = Literal["pattern", "latest", "place"]
N = 12  # tokens of a sequence
N_TOKENS = 24  # different ones
A, B = 0, 1  # the two marks
PLACE = 7  # that is asked about, counted from 0
LATEST, OTHERS = 4, 6  # how many marks there are, or besides
Sequences = Int[Tensor, "size n"]
Answers = Bool[Tensor, " size"]


@checked
@on_the_cpu
def question_batches(
    question: Question, size: Positive, *, seed: Seed
) -> Iterator[tuple[Sequences, Answers]]:
    """Batches without end, always the same ones for a seed.

    Args:
        question: "pattern", "latest" or "place".
        size: sequences a batch.
        seed: what the generator starts from.

    Yields:
        x: token numbers, (size, 12).
        y: True for yes, (size,).

    >>> x, y = next(question_batches("place", 100, seed=0))
    >>> bool(((x[:, PLACE] == B) == y).all())
    True
    """
    generator = torch.Generator().manual_seed(seed)
    make = {"pattern": patterns, "latest": latest, "place": placed}[question]
    while True:
        x = torch.randint(2, N_TOKENS, (size, N), generator=generator)
        y = torch.randint(2, (size,), generator=generator).bool()
        yield make(x, y, generator), y


@where_it_draws
def places(
    size: int, high: int, number: int, generator: torch.Generator
) -> Tensor:
    """So many different positions below ``high`` in rising order, a row."""
    kind = {"generator": generator, "dtype": torch.float32}
    drawn = torch.rand(size, high, **kind)  # whatever the default type
    return drawn.argsort(dim=-1)[:, :number].sort(dim=-1).values


@where_it_draws
def patterns(x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
    """Each has an ``a`` and a ``b``; side by side if and only if yes."""
    first = torch.randint(N - 1, (len(x),), generator=generator)
    apart = places(len(x), N - 1, 2, generator)
    apart[:, 1] += 1  # at least one token between
    beside = torch.stack((first, first + 1), dim=1)
    at = torch.where(y[:, None], beside, apart)
    return x.scatter(1, at, torch.tensor([[A, B]]).expand(len(x), 2))


@where_it_draws
def latest(x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
    """Four marks, each of either kind; yes if the last of them is ``b``."""
    at = places(len(x), N, LATEST, generator)
    kinds = torch.randint(2, at.shape, generator=generator)
    kinds[:, -1] = torch.where(y, B, A)
    return x.scatter(1, at, kinds)


@where_it_draws
def placed(x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
    """Marks in six places, and the one that is asked about in its own."""
    at = places(len(x), N - 1, OTHERS, generator)
    kinds = torch.randint(2, at.shape, generator=generator)
    marked = x.scatter(1, at + (at >= PLACE), kinds)
    marked[:, PLACE] = torch.where(y, B, A)
    return marked
