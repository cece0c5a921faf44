"""Batches that are the same for a seed on every machine."""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
Batch = TypeVar("Batch")
Drawn = TypeVar("Drawn")
MOST = 2**24  # texts of a batch, or tokens of all: some gigabytes


def on_the_cpu(
    batches: Callable[P, Iterator[Batch]],
) -> Callable[P, Iterator[Batch]]:
    """Draw each batch there, whatever device somebody has made the default.

    Raises:
        ValueError: if a batch would be so large that it is never drawn.

    >>> @on_the_cpu
    ... def zeros():
    ...     yield torch.zeros(2)
    >>> with torch.device("meta"):
    ...     next(zeros())
    tensor([0., 0.])
    """
    order = inspect.signature(batches)

    @functools.wraps(batches)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Iterator[Batch]:
        given = order.bind(*args, **kwargs).arguments
        check_size(given.get("size", 1), given.get("n"))
        iterator = batches(*args, **kwargs)
        while True:
            with torch.device("cpu"):
                batch = next(iterator, None)
            if batch is None:
                return
            yield batch

    return drawn


def where_it_draws(draw: Callable[P, Drawn]) -> Callable[P, Drawn]:
    """Have all its tensors where its generator is, which draws nowhere else.

    >>> @where_it_draws
    ... def one(generator):
    ...     return torch.rand(1, generator=generator)
    >>> with torch.device("meta"):
    ...     one(torch.Generator().manual_seed(0))
    tensor([0.4963])
    """
    order = inspect.signature(draw)

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Drawn:
        given = order.bind(*args, **kwargs).arguments
        with torch.device(given["generator"].device):
            return draw(*args, **kwargs)

    return drawn


def check_size(size: int, n: int | None) -> None:
    """Raise unless a batch of so many texts, of n tokens each, can be had."""
    if size * max(n or 1, 1) > MOST:
        of = "" if n is None else f" of n={n} tokens"
        raise ValueError(
            f"a batch must have at most {MOST} texts, or tokens in all, but "
            f"size={size}{of}"
        )
