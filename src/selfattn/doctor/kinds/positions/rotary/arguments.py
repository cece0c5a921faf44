"""How a function that rotates is handed what it asks for."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.copying import copy_of
from selfattn.doctor.kinds.positions import waves
from selfattn.doctor.kinds.positions.rotary.ways_of_calling import Way
from selfattn.doctor.patient import handed

LAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "": lambda x: x,
    "of texts": lambda x: x[None],
    "of texts and heads": lambda x: x[None, None],
    "before heads": lambda x: x[:, None],
    "of texts, before heads": lambda x: x[None, :, None],
    "before texts and heads": lambda x: x[:, None, None],
}


def called(
    thing: Any,
    way: Way,
    x: Tensor,
    offset: int,
    axis: int,
    pairs: str,
    base: float | None = None,
) -> object:
    """Call it in a way, with tokens on this axis; give back x, turned."""
    n, d = x.shape[axis], x.shape[-1]
    base = base or waves.BASE
    named = {
        name: value(form, x, offset, axis, pairs, base)
        for name, form in way.forms
    }
    before = [named.pop(name) for name, _ in way.forms[: way.first]]
    output = handed(thing, *before, x, **named)
    if isinstance(output, Tensor) or not isinstance(output, tuple | list):
        return output
    tensors = [one for one in output if isinstance(one, Tensor)]
    two = len(tensors) == 2
    if any(form == "key" for _, form in way.forms):
        same = two and all(one.shape == x.shape for one in tensors)
        right = turned(x, offset, axis, pairs, base)
        return of_two(tensors[0], tensors[1], right) if same else output
    if two and not way.given and is_table(tensors, n, d):
        return by_tables(tensors, x, offset, axis, pairs)
    return output


def value(
    form: str, x: Tensor, offset: int, axis: int, pairs: str, base: float
) -> Any:
    """What an argument is given in a form."""
    n = x.shape[axis]
    where = torch.arange(offset, offset + n)
    simple = {
        "offset": offset,
        "offset in a tensor": torch.tensor(offset),
        "offset of texts": torch.tensor([offset]).expand(len(x)),
        "base": base,
        "width": x.shape[-1],
        "axis": axis - x.ndim if axis >= 0 else axis,
        "positions": where,
        "positions of texts": where.expand(len(x), n),
        "length": n + offset,
        "end": n,
        "key": 2 * x,
    }
    if form in simple:
        return simple[form]
    what, _, lay = form.partition("|")
    which, _, size = what.partition(" ")
    angle = where[:, None] * rates(x.shape[-1], base)
    if size == "whole":
        angle = laid(angle, pairs)
    if which == "table":
        found = of_angles(angle, size, x.dtype)
    else:
        found = (angle.cos() if which == "cos" else angle.sin()).to(x.dtype)
    return LAYS[lay](found)


def of_angles(angle: Tensor, size: str, dtype: torch.dtype) -> Tensor:
    """Angles as a table of complex numbers, of both waves or themselves."""
    if size == "complex":
        made = torch.polar(torch.ones_like(angle), angle)
        return made if dtype == torch.float64 else made.to(torch.complex64)
    if size == "stacked":
        return torch.stack((angle.cos(), angle.sin()), dim=-1).to(dtype)
    return angle if dtype == torch.float64 else angle.float()


def laid(half: Tensor, pairs: str) -> Tensor:
    """One number a pair, for both features of it."""
    if pairs == "halves":
        return torch.cat((half, half), dim=-1)
    return half.repeat_interleave(2, dim=-1)


def of_two(queries: Tensor, keys: Tensor, right: Tensor) -> Tensor:
    """What came of x, where 2x was its key: of two answers, the worse."""
    found = sorted(
        (queries, keys / 2), key=lambda one: float((one - right).abs().max())
    )
    return found[-1]


def turned(
    x: Tensor, offset: int, axis: int, pairs: str, base: float
) -> Tensor:
    """x, turned as it should be."""
    where = torch.arange(offset, offset + x.shape[axis])
    angle = laid(where[:, None] * rates(x.shape[-1], base), pairs)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return by_waves(x, cos, sin, axis, pairs)


def rates(d: int, base: float) -> Tensor:
    """By how much each pair turns from token to token."""
    rate: Tensor = base ** (-torch.arange(0, d, 2).double() / d)
    return rate


def is_table(found: list[Tensor], n: int, d: int) -> bool:
    """Whether these are cosines and sines, a row a token."""
    return all(
        (one.ndim > 1 and one.shape[-1] in (d, d // 2) and n in one.shape[:-1])
        or (one.squeeze().ndim == 2 and one.squeeze().shape[0] > n)
        for one in found
    )


def by_tables(
    found: list[Tensor], x: Tensor, offset: int, axis: int, pairs: str
) -> object:
    """x, turned by the cosines and sines that were given back."""
    n, d = x.shape[axis], x.shape[-1]
    rows = []
    for one in found:
        wave = one.reshape(-1, *one.shape[-2:])[0]
        if one.shape[-2] == 1:
            wave = one.reshape(-1, one.shape[-1])
        wave = wave[offset:] if len(wave) > n else wave
        rows.append(laid(wave, pairs) if wave.shape[-1] < d else wave)
    cos, sin = (wave[:n] for wave in rows)
    return by_waves(x, cos, sin, axis, pairs)


def by_waves(
    x: Tensor, cos: Tensor, sin: Tensor, axis: int, pairs: str
) -> Tensor:
    """x, turned by cosines and sines as wide as it is."""
    moved = x.movedim(axis, -2)
    a, b = moved[..., 0::2], moved[..., 1::2]
    other = torch.stack((-b, a), dim=-1).flatten(-2)
    if pairs == "halves":
        a, b = moved.chunk(2, dim=-1)
        other = torch.cat((-b, a), dim=-1)
    return (moved * cos + other * sin).movedim(-2, axis)


def fresh(thing: Any) -> Any:
    """A copy to try things on, if one can be had."""
    try:
        return copy_of(thing)
    except Exception:
        return thing
