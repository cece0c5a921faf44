"""For how many features a norm without parameters was made, if for a number
of them alone: its factor may be the root of that number. And whether one of a
class is made of such a number and nothing else.
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.trial_calls import STARS, outcome
from selfattn.doctor.patient import all_parameters, handed
from selfattn.doctor.probes import numbers

MOST = 4096  # features
NEAR = 0.01  # what eps, and half precision, may take from a mean square


def own_width(module: nn.Module) -> int | None:
    """The only width at which it gives tokens a mean square of one."""
    for width in kept(module):
        if is_normed(module, width) and not is_normed(module, width + 1):
            return width
    return None


def kept(module: nn.Module) -> Iterator[int]:
    """The widths that a number which it keeps may be, or be the root of."""
    for value in vars(module).values():
        if isinstance(value, int | float) and not isinstance(value, bool):
            for width in (value, value**2):
                if 1 < width < MOST and abs(width - round(width)) < NEAR:
                    yield round(width)


def is_normed(module: nn.Module, width: int) -> bool:
    """Whether tokens that are so wide come out with a mean square of one."""
    made: Any = outcome(handed, module, 10 * numbers(3, width))
    if not isinstance(made, Tensor) or made.shape != (3, width):
        return False
    return bool(((made.square().mean(dim=-1) - 1).abs() < NEAR).all())


def check_made_of_width(thing: type) -> None:
    """Raise if one of a class is made of more than its width."""
    needed = [
        p.name
        for p in all_parameters(thing)
        if p.default is p.empty and p.kind not in STARS
    ]
    if len(needed) > 1:
        raise UnclearError(
            f"To make one, {thing.__name__} needs {needed[1]!r} besides a "
            "width, of which I know no value: hand over a module."
        )
