"""Which features are partners, rightly or by a mixture of conventions."""

import torch
from torch import Tensor

Two = tuple[Tensor, Tensor]


def neighbours(x: Tensor) -> Two:
    """Features 2i, and features 2i + 1."""
    return x[..., 0::2], x[..., 1::2]


def halves(x: Tensor) -> Two:
    """The first half of the features, and the second."""
    a, b = x.chunk(2, dim=-1)
    return a, b


def of_neighbours(x: Tensor) -> Two:
    """Partners by neighbours, of features that lie in halves."""
    first, second = neighbours(torch.cat(neighbours(x), dim=-1))
    return second, first


def of_halves(x: Tensor) -> Two:
    """Partners by halves, put side by side."""
    first, second = halves(x)
    return second, first


def put_behind(x: Tensor) -> Two:
    """Partners by neighbours, that are put into halves."""
    a, b = neighbours(x)
    made = torch.cat((-b, a), dim=-1)
    return -made[..., 0::2], made[..., 1::2]


def put_beside(x: Tensor) -> Two:
    """Partners by halves, that are put side by side, of halves."""
    a, b = neighbours(x)
    made = torch.stack((-b, a), dim=-1).flatten(-2)
    first, second = halves(made)
    return -first, second


CROSSED = (of_neighbours, of_halves, put_behind, put_beside)
