"""Say it again: as it was, backwards, or in order.

Three tasks on random tokens. To copy and to reverse is to know where one is;
to sort is to know what there is, wherever it stands.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu
from selfattn.signatures import (
    INTEGERS,
    Positive,
    Seed,
    checked,
    is_plain_tensor,
    shown,
)

N_TOKENS = 12  # in the vocabulary
SHORTEST, LONGEST = 4, 10

Tokens = Int[Tensor, "batch n"]


@checked
def copied(tokens: Tokens) -> Tokens:
    """The same again.

    >>> copied(torch.tensor([[5, 2, 9]])).tolist()
    [[5, 2, 9]]
    """
    return tokens.clone()


@checked
def reversed_order(tokens: Tokens) -> Tokens:
    """The last first.

    >>> reversed_order(torch.tensor([[5, 2, 9]])).tolist()
    [[9, 2, 5]]
    """
    return tokens.flip(-1)


@checked
def in_order(tokens: Tokens) -> Tokens:
    """The smallest first.

    >>> in_order(torch.tensor([[5, 2, 9]])).tolist()
    [[2, 5, 9]]
    """
    return tokens.sort(dim=-1).values


@checked
@on_the_cpu
def sequence_batches(
    answer: Callable[[Tensor], Tensor],
    size: Positive,
    *,
    seed: Seed,
    n: int | None = None,
) -> Iterator[tuple[Tokens, Tokens]]:
    """Batches without end, always the same ones for a seed.

    Args:
        answer: what to do: `copied`, `reversed_order` or `in_order`.
        size: texts a batch.
        seed: what the generator starts from.
        n: tokens a text; when None, for each batch from 4 to 10.

    Yields:
        tokens: numbers from 0 to 11, (size, n).
        target: what the answer makes of them, (size, n).

    Raises:
        ValueError: if a text has no tokens.

    >>> tokens, target = next(sequence_batches(in_order, 1, seed=0, n=5))
    >>> bool((target.diff() >= 0).all())
    True
    """
    if n is not None and n < 1:
        raise ValueError(f"a text must have a token, but n={n}")
    generator = torch.Generator().manual_seed(seed)
    while True:
        (drawn,) = torch.randint(
            SHORTEST, LONGEST + 1, (1,), generator=generator
        ).tolist()
        shape = (size, drawn if n is None else n)
        tokens = torch.randint(N_TOKENS, shape, generator=generator)
        target = answer(tokens.clone())
        check_target(target, tokens)
        yield tokens, target


def check_target(target: Any, tokens: Tensor) -> None:
    """Raise unless an answer made whole numbers of the tokens, one of each."""
    right = is_plain_tensor(target) and target.dtype in INTEGERS
    if not right or target.shape != tokens.shape:
        raise ValueError(
            f"answer must make whole numbers (size, n) = {tuple(tokens.shape)}"
            f" of the tokens, but it made {shown(target)}"
        )
    if target.device != tokens.device:
        raise ValueError(
            f"answer must make numbers where the tokens are, on "
            f"{tokens.device}, but it made some on {target.device}"
        )
