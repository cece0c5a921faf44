"""To call a thing and see what comes, whatever it does."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor

from selfattn.doctor.patient import copied

PLACED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)
BY_NAME_ALONE = (inspect.Parameter.KEYWORD_ONLY,)


def attempt(thing: Callable[..., Any], *given: Any) -> Any:
    """What it gives; None if it raises, or gives something without tensors.

    It is given copies, and random numbers that are the same every time. What
    is asked for by name alone is handed over so, behind what has its place.
    """
    n, names = len(asked(thing, *PLACED)), asked(thing, *BY_NAME_ALONE)
    behind = dict(zip(names, given[n:], strict=False))
    in_place = given[:n] + given[n + len(behind) :]
    arguments = [copied(x) for x in in_place]
    named = {name: copied(x) for name, x in behind.items()}
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            # torch.manual_seed would write down, for each device that is not
            # there, where it was called: that took longer than the call.
            torch.default_generator.manual_seed(0)
            return thing(*arguments, **named)
    except Exception:
        return None


def tensor(thing: Callable[..., Any], *given: Any) -> Tensor | None:
    """The tensor that it gives, or the first of several; else None."""
    made = attempt(thing, *given)
    if isinstance(made, tuple | list) and made:
        made = made[0]
    return made if isinstance(made, Tensor) else None


def first_tensor(
    thing: Callable[..., Any], calls: Sequence[Sequence[Any]]
) -> Tensor | None:
    """What the first of some calls gives that gives a tensor."""
    for given in calls:
        made = tensor(thing, *given)
        if made is not None:
            return made
    return None


def needed(thing: Callable[..., Any]) -> list[str]:
    """The names of the arguments without which it cannot be called."""
    return [*asked(thing, *PLACED), *asked(thing, *BY_NAME_ALONE)]


def asked(thing: Callable[..., Any], *kinds: Any) -> list[str]:
    """The names of the arguments of some kinds that have no default."""
    called = getattr(thing, "forward", thing)
    try:
        listed = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in listed if p.default is p.empty and p.kind in kinds]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Normal random numbers, the same every time."""
    chance = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=chance)


def close(one: Tensor, other: Tensor) -> bool:
    """Whether two are nearly equal; not, if their shapes differ."""
    if one.shape != other.shape:
        return False
    return torch.allclose(one.float(), other.float(), rtol=1e-3, atol=1e-3)


def alike(made: Tensor | None, x: Tensor) -> TypeGuard[Tensor]:
    """Whether something is of the same form as x: its shape, and numbers."""
    return (
        made is not None and made.shape == x.shape and made.is_floating_point()
    )


def two_valued(made: Tensor) -> bool:
    """Whether there are two numbers in it, or one, as in a mask: of zero, one
    and what is so large that it hides.

    >>> two_valued(torch.tensor([0, -10000])), two_valued(torch.tensor([0, 5]))
    (True, False)
    """
    numbers = made.float().unique()  # a NaN is like no other
    mask = (numbers == 0) | (numbers == 1) | (numbers.abs() > 1000)
    return len(numbers) <= 2 and bool(mask.all())
