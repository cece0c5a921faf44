"""The patients: texts of sound implementations, and what is said of each.

A patient is a file ``<half>/<kind>/<style>.py`` in ``tests/clinic/healthy``:
code as people write it, and below it

    PATIENT       the function or module to examine
    FACTS         what its author would tell; not all are words of the doctor
    INPUTS        what it may be called with, see `inputs`
    OTHER_INPUTS  other ways to call it, where there are any
    SIZES         ranges of sizes, where they are not the usual ones
    LOUDEST       by how much inputs may be multiplied, if not by thirty

The styles in ``tune`` are there to tune the doctor on. What is measured is
measured on those in ``measure``, written by others, which nobody who works on
the doctor reads. Once they were read they belong to ``tune``, and new ones
are written to measure on.
"""

import copy
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[3]
HEALTHY = ROOT / "tests" / "clinic" / "healthy"
SAID = {"PATIENT", "FACTS", "INPUTS", "OTHER_INPUTS", "SIZES", "LOUDEST"}


class Style(NamedTuple):
    """A sound implementation: its kind, its name, its text and its half."""

    kind: str
    name: str
    text: str
    half: str = "tune"  # or "measure"


class Patient(NamedTuple):
    """What a text makes: the thing, and what is said of it."""

    thing: Any
    facts: dict[str, Any]
    inputs: tuple[dict[str, str], ...]
    sizes: dict[str, tuple[int, int]]
    loudest: float


def styles() -> Iterator[Style]:
    """All that are sound, by half, kind and name."""
    for path in sorted(HEALTHY.glob("*/*/*.py")):
        half, kind = path.parts[-3:-1]
        text = path.read_text("utf-8")
        yield Style(kind.replace("_", "-"), path.stem, text, half)


def patient(text: str, name: str = "patient") -> Patient:
    """Make what a text says, with the same random numbers every time."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        made = module(text, name)
    return Patient(
        made.PATIENT,
        made.FACTS,
        (made.INPUTS, *getattr(made, "OTHER_INPUTS", ())),
        getattr(made, "SIZES", {}),
        getattr(made, "LOUDEST", 30),
    )


def module(text: str, name: str) -> ModuleType:
    """A module of this text, whose lines a traceback and `inspect` find."""
    where = f"<clinic {name}>"
    made = ModuleType(name)
    made.__file__ = where
    sys.modules[name] = made
    lines = text.splitlines(keepends=True)
    linecache.cache[where] = len(text), None, lines, where
    exec(compile(text, where, "exec"), vars(made))
    return made


def whole_copy(thing: Any, instead: dict[int, Any] | None = None) -> Any:
    """A deep copy, with what stands ``instead`` of some parts, by their ids.

    Layers of PyTorch's give a copy a function called `activation`, which
    covers a part of that name; it is taken away.
    """
    made = copy.deepcopy(thing, {} if instead is None else instead)
    if isinstance(thing, nn.Module):
        for mine, its in zip(made.modules(), thing.modules(), strict=True):
            for name in (mine._modules.keys() & vars(mine)) - vars(its).keys():
                del mine.__dict__[name]
    return made


def stirred(thing: Any) -> Any:
    """The thing with numbers that show mistakes, in float64, to be evaluated.

    As modules are made, shifts are zero and gains one; then many a mistake
    changes nothing. Two things with the same parameters get the same numbers.
    What is never learnt stays as it was made.
    """
    if not isinstance(thing, nn.Module):
        return thing
    thing.double().eval()
    with torch.no_grad():
        learnt = (p for p in thing.parameters() if p.requires_grad)
        for seed, parameter in enumerate(learnt):
            chance = torch.Generator().manual_seed(seed)
            shape = parameter.shape
            new = torch.randn(shape, generator=chance, dtype=torch.float64)
            if parameter.ndim > 1:
                parameter.copy_(new / shape[-1] ** 0.5)
            else:
                parameter.add_(0.3 * new)
    return thing
