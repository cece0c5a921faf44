"""Hostile shapes: axes of zero and one, axes that do not fit, other ranks."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from hostile.feeding import WIDTHS, alternatives
from hostile.recipes import FREE
from hostile.trials import Case, nothing_to_compare, plain, with_gradients
from hostile.verdicts import Trial


def trials(case: Case) -> Iterator[Trial]:
    """Every axis at zero and one; every tensor bent."""
    axes = axes_of(case)
    yield from small(case, axes)
    yield from unequal(case, axes)
    yield from ranks(case)


def axes_of(case: Case) -> dict[str, list[tuple[str, int, bool]]]:
    """Where each named axis is: in which arguments, counted from the end."""
    found = defaultdict(list)
    for name in case.call.tensors():
        for hint in alternatives(case.call.target.hints.get(name)):
            dims = getattr(hint, "dim_str", "").split()
            for i, axis in enumerate(reversed(dims)):
                if (
                    not axis.startswith("*")
                    and axis.lstrip("#").isidentifier()
                ):
                    found[axis.lstrip("#")].append((name, -1 - i, "#" in axis))
    return found


def small(case: Case, axes: dict[str, Any]) -> Iterator[Trial]:
    """One axis, or two, of no or one place."""
    names = [n for n in {*axes, "batch", "n_q", "n_k", "n"} if n in case.sizes]
    for name in sorted(names):
        for size in (0, 1):
            detail = f"{name}={size}"
            yield from sized(case, detail, {name: size})
    for name in sorted(n for n in names if n not in WIDTHS):
        other = case.rng.choice(sorted(n for n in names if n not in WIDTHS))
        sizes = {name: case.rng.choice((0, 1)), other: case.rng.choice((0, 1))}
        told = ", ".join(f"{n}={size}" for n, size in sizes.items())
        yield from sized(case, told, sizes)
    for _ in range(3):
        drawn = {n: case.rng.randint(1, 13) for n in names if n not in WIDTHS}
        yield from sized(case, f"{drawn}", drawn)


def sized(case: Case, detail: str, changed: dict[str, int]) -> Iterator[Trial]:
    """A call in these sizes: right, or, if a module's own differ, refused."""
    target = case.call.target
    try:
        call = case.make({**case.sizes, **changed})
    except ValueError:
        return  # what it is to be given cannot be made in these sizes
    same = all(
        x.shape == call.given[n].shape for n, x in case.call.tensors().items()
    )
    if same:
        return
    fixed = target.of is not None and any(
        name in WIDTHS and name not in FREE.get(target.of.__name__, ())
        for name in changed
    )
    if fixed:
        yield case.trial("a shape", detail, call, None)
    elif case.is_mechanism:
        yield case.trial(
            "a shape",
            detail,
            call,
            lambda: with_gradients(call, plain),
            run=lambda: with_gradients(call),
        )
    else:
        yield case.trial("a shape", detail, call, nothing_to_compare)


def unequal(case: Case, axes: dict[str, Any]) -> Iterator[Trial]:
    """An axis that two tensors share, longer in one of them."""
    for axis, places in sorted(axes.items()):
        if len({name for name, *_ in places}) < 2:
            continue
        for name, at, broadcasts in places:
            x = case.call.given[name]
            if broadcasts or x.ndim < -at or not x.shape[at]:
                continue
            longer = torch.cat([x, x.narrow(at, 0, 1)], dim=at)
            yield bent(case, f"{name} with one {axis} more", name, longer)
            if x.shape[at] > 1:
                one = x.narrow(at, 0, 1)
                yield bent(case, f"{name} with one {axis}", name, one)


def bent(case: Case, detail: str, name: str, x: Tensor) -> Trial:
    """A call that must be refused for one of its tensors."""
    return case.nonsense("a shape", detail, **{name: x})


def ranks(case: Case) -> Iterator[Trial]:
    """Tensors with axes too many or too few."""
    for name, x in case.call.tensors().items():
        hints = alternatives(case.call.target.hints.get(name))
        dims = " ".join(getattr(hint, "dim_str", "...") for hint in hints)
        if "..." in dims or "*shape" in dims:
            continue
        least = len([a for a in dims.split() if not a.startswith("*")])
        flat = x.reshape(-1)[:1].reshape(())
        yield bent(case, f"{name} a scalar", name, flat)
        if least > 1:
            few = x[(0,) * (x.ndim - least + 1)]
            yield bent(case, f"{name} with too few axes", name, few)
        if "*" not in dims:
            yield bent(case, f"{name} with an axis more", name, x[None])
            yield bent(case, f"{name} with two more", name, x[None, None])
