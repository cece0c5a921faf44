"""How a layer may turn its queries and keys by their places."""

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

Turn = Callable[[Tensor], Tensor]
USUAL_BASE = 10_000.0
BASE = re.compile(r"base|theta|rotary|rope")
SIGN = re.compile(r"rope|rotar|rotate|freqs|theta|(?<!re)turn")
SAME = 1e-4  # between two lists of rates


def turns(module: nn.Module, d: int) -> Iterator[Turn | None]:
    """The ways to turn that a module may have; None for none.

    Where something in it says that it turns, that comes first, with the
    rates that are read off it; else not to turn is likelier.
    """
    signs = says_that_it_turns(module)
    if not signs:
        yield None
    if d % 2 == 0:
        for rates in rates_of(module, d):
            for size in dict.fromkeys((2 * len(rates), d)):
                if size == 2 * len(rates) <= d:
                    yield turning(rates, apart=True)
                    yield turning(rates, apart=False)
    if signs:
        yield None


def says_that_it_turns(module: nn.Module) -> bool:
    """Whether something in it is called as what turns is."""
    return bool(SIGN.search(words(module)))


def words(module: nn.Module) -> str:
    """The names in a module, and the text of its class."""
    names = [name for part in module.modules() for name in vars(part)]
    names += [name for name, _ in module.named_modules()]
    names += [name for name, _ in module.named_buffers()]
    with contextlib.suppress(OSError, TypeError):
        names.append(inspect.getsource(type(module)))
    return " ".join(names).lower()


def rates_of(module: nn.Module, d: int) -> list[Tensor]:
    """The angles by which pairs turn from place to place, as read off."""
    found = [*read_off(module, d)]
    bases = [
        x
        for part in (*module.modules(), *configs(module))
        for x in bases_in(vars(part))
    ]
    for base in (*bases, USUAL_BASE):
        for size in (d, d // 2):
            if size % 2 == 0:
                found.append(of_base(base, size))
    kept: list[Tensor] = []
    for one in found:
        if not any(is_same(one, other) for other in kept):
            kept.append(one)
    return kept


def bases_in(held: Mapping[Any, Any]) -> Iterator[float]:
    """The numbers that are called a base, those in dictionaries, too."""
    for name, x in held.items():
        called = isinstance(name, str) and BASE.search(name.lower())
        if isinstance(x, dict) and called:
            yield from bases_in(x)
        if isinstance(x, int | float) and x > 1 and called:
            yield float(x)


def is_same(one: Tensor, other: Tensor) -> bool:
    """Whether two lists of rates are one."""
    return one.shape == other.shape and torch.allclose(one, other, atol=SAME)


def configs(module: nn.Module) -> Iterator[object]:
    """What a module was made with, if it keeps it."""
    for name in ("config", "args", "cfg"):
        held = getattr(module, name, None)
        if hasattr(held, "__dict__"):
            yield held


def of_base(base: float, d: int) -> Tensor:
    """The usual rates of d features."""
    return base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)


def read_off(module: nn.Module, d: int) -> Iterator[Tensor]:
    """Rates in tables of a module: complex numbers, cosines, or themselves."""
    for part in module.modules():
        held = {**vars(part), **part._buffers}
        for name, x in held.items():
            if not isinstance(x, Tensor) or x.numel() < 2:
                continue
            rates = in_table(name.lower(), x.detach().squeeze(), d)
            if rates is not None and 2 * len(rates) <= d:
                yield rates.double()


def in_table(name: str, x: Tensor, d: int) -> Tensor | None:
    """The rates that one table tells, if it does."""
    if x.is_complex() and x.ndim == 2 and len(x) > 1:
        return x[1].angle()
    if x.is_complex() or not x.is_floating_point():
        return None
    if x.ndim == 1 and 2 * len(x) <= d and bool((x[0] - 1).abs() < SAME):
        return x
    if x.ndim == 2 and len(x) > 1 and "cos" in name:
        row = x[1].clamp(-1, 1).arccos()
        pairs = row[::2] if bool((row[:1] == row[1:2]).all()) else row
        return pairs[: d // 2]
    return None


def turning(rates: Tensor, apart: bool) -> Turn:
    """Turn pairs of features of (…, n, d) by their places.

    Args:
        rates: the angle of each pair, from one place to the next.
        apart: whether the two of a pair are half of the features apart, or
            neighbours.
    """

    def turn(x: Tensor) -> Tensor:
        size = 2 * len(rates)
        places = torch.arange(x.shape[-2], dtype=torch.float64)
        angle = places[:, None] * rates.double()
        cos, sin = angle.cos().to(x), angle.sin().to(x)
        own, rest = x[..., :size], x[..., size:]
        if apart:
            a, b = own.chunk(2, dim=-1)
            made = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
        else:
            a, b = own[..., ::2], own[..., 1::2]
            both = (a * cos - b * sin, b * cos + a * sin)
            made = torch.stack(both, dim=-1).flatten(-2)
        return torch.cat((made, rest), dim=-1)

    return turn
