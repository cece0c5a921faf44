"""Probing: what can be read out of a representation."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from selfattn.checks import are_at_hand
from selfattn.entering import check_at_layer, check_width
from selfattn.signatures import checked, shown

MOST = 2**16  # classes that a probe tells apart: a table for each example
Examples = Float[Tensor, "n d"]
Labels = Int[Tensor, " n"]


class Probe:
    """A linear reader of a few classes, fitted in closed form.

    Least squares with a small penalty, to one-hot classes: the answer is
    unique, and no step size has to be chosen.

    Args:
        x: representations to fit on, (n, d).
        labels: the class of each, (n,).
        penalty: on the squared weights, per example; above 0.

    Raises:
        ValueError: if there is no example, if a number of one is not finite,
            or if the labels are no classes, from 0 on; if the numbers are so
            large, or the penalty so small, that nothing can be solved.

    Reference: Alain and Bengio (2016), section 2.

    >>> x, large = torch.tensor([[0.0], [1.0], [4.0]]), torch.tensor([0, 0, 1])
    >>> Probe(x, large).right(x, large)
    1.0
    """

    @checked
    def __init__(self, x: Examples, labels: Labels, *, penalty: float = 1e-3):
        check_examples(x, labels)
        if not 0 < penalty < math.inf:
            raise ValueError(
                f"penalty must be a finite number above 0, but it is {penalty}"
            )
        # In float64 from the first: of bfloat16, a mean far from zero would
        # be rounded by more than the classes are apart.
        wide = x.detach().double()  # else it would keep what made them
        self.mean = wide.mean(dim=0)
        centred = wide - self.mean
        classes = torch.nn.functional.one_hot(labels.long()).double()
        self.share = classes.mean(dim=0)
        square = centred.mT @ centred / len(x)
        square.diagonal().add_(penalty)
        told = centred.mT @ (classes - self.share) / len(x)
        self.weight = solved(square, told, penalty)

    @checked
    def read(self, x: Examples) -> Tensor:
        """The class of each representation, (n, d) -> (n,)."""
        check_width("x", x, len(self.mean))
        check_at_layer("x", x, self.mean)
        check_finite(x)
        scores = (x.double() - self.mean) @ self.weight + self.share
        return scores.argmax(dim=-1)

    @checked
    def right(self, x: Examples, labels: Labels) -> float:
        """The share of classes that it reads right."""
        check_examples(x, labels)
        return (self.read(x) == labels).double().mean().item()


def solved(square: Tensor, told: Tensor, penalty: float) -> Tensor:
    """The weights that answer best.

    Raises:
        ValueError: if their squares are no numbers, or the penalty is too
            small to choose between equals.
    """
    if not (told.isfinite().all() and has_one_answer(square)):
        raise ValueError(
            "x must be numbers whose squares can be added, and penalty large "
            "enough to be seen beside them, but the largest square is "
            f"{float(square.diagonal().max()):.4g} and penalty={penalty}"
        )
    return torch.linalg.solve(square, told)


def has_one_answer(square: Tensor) -> bool:
    """Whether equations have one answer, and it more than their rounding.

    >>> has_one_answer(torch.eye(2)), has_one_answer(torch.ones(2, 2))
    (True, False)
    """
    if not (square.numel() and square.isfinite().all()):
        return not square.numel()
    sizes = torch.linalg.eigvalsh(square)
    room = 4 * len(sizes) * torch.finfo(sizes.dtype).eps
    return bool(sizes[0] > room * sizes[-1])


def check_finite(x: Tensor) -> None:
    """Raise unless these are numbers of which a class can be read."""
    if not are_at_hand(x) or not x.isfinite().all():
        raise ValueError(
            "x must be finite numbers that are at hand, but some are not: it "
            f"is {shown(x)} on {x.device}"
        )


def check_examples(x: Tensor, labels: Tensor) -> None:
    """Raise unless there is an example, and each has a class."""
    check_finite(x)
    if not len(x) or int(labels.min()) < 0 or int(labels.max()) >= MOST:
        raise ValueError(
            f"there must be at least 1 example, and labels from 0 to "
            f"{MOST - 1}, but x is {tuple(x.shape)} and labels go "
            f"{span_of(labels)}"
        )


def span_of(labels: Tensor) -> str:
    """From which class to which labels go, in words."""
    if not labels.numel():
        return "nowhere"
    return f"from {int(labels.min())} to {int(labels.max())}"
