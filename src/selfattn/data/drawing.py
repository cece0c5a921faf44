"""Batches that are the same for a seed on every machine."""

import functools
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
Batch = TypeVar("Batch")


def on_the_cpu(
    batches: Callable[P, Iterator[Batch]],
) -> Callable[P, Iterator[Batch]]:
    """Draw each batch there, whatever device somebody has made the default.

    >>> @on_the_cpu
    ... def zeros():
    ...     yield torch.zeros(2)
    >>> with torch.device("meta"):
    ...     next(zeros())
    tensor([0., 0.])
    """

    @functools.wraps(batches)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Iterator[Batch]:
        iterator = batches(*args, **kwargs)
        while True:
            with torch.device("cpu"):
                batch = next(iterator, None)
            if batch is None:
                return
            yield batch

    return drawn
