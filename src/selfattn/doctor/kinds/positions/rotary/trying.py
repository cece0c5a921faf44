"""What can be found out of a function that rotates by calling it."""

import contextlib
import io
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.positions.rotary.arguments import called, fresh
from selfattn.doctor.kinds.positions.rotary.ways_of_calling import (
    IN_A_TENSOR,
    PLACED,
    Way,
    role,
    ways,
)
from selfattn.doctor.patient import Facts, parameters
from selfattn.doctor.probes import numbers

TOKENS = {"BHND": -2, "BNHD": 1, "NBHD": 0}  # which axis, where there are four
ROW = "NHD"  # the tokens of all texts in one row
AXES = {"batch": 3, "heads": 4, "single": 2}
IN_A_ROW = ROW, AXES["batch"]
TAKEN = {"NBHD": (4,), ROW: (3,)}  # how many axes, where it is not any number
SIZES = {"b": 2, "h": 3, "n": 5}
WIDTHS = (6, 8, 4, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
PAIRS = ("halves", "neighbours")
ANY = (2, 4)  # who takes these takes any width
FAR = (1000, 500, 250, 120, 60, 30, 20, 12, 8)
MOST = 500  # ways that are tried


class Found(NamedTuple):
    """How a function that rotates can be called."""

    ways: dict[tuple[str, int], Way]  # by its layout and the number of axes
    width: int | None  # None if it takes any
    longest: int | None  # the last position that it knows, if not a thousand
    backwards: bool  # whether it turns back below 0


def axis_of(layout: str, axes: int) -> int:
    """Which axis holds the tokens."""
    if layout == ROW:
        return 0
    return TOKENS.get(layout, -2) if axes == 4 else -2


def sample(layout: str, axes: int, d: int, n: int = 5) -> Tensor:
    """An input of so many axes, each of a length of its own."""
    b, h = SIZES["b"], SIZES["h"]
    shapes = {2: (n, d), 3: (b, n, d), 4: (b, h, n, d)}
    return numbers(*shapes[axes], seed=3).movedim(-2, axis_of(layout, axes))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what it prints, warns and draws at random to itself."""
    with (
        torch.random.fork_rng(devices=[]),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def tried(
    thing: Any, way: Way, facts: Facts, x: Tensor, offset: int
) -> Tensor | None:
    """What it gives, if that has the shape of what it was given.

    If ``loosely``, any tensor will do: that it has not this shape is wrong,
    and is to be shown.
    """
    axis = axis_of(facts["layout"], x.ndim)
    try:
        with quiet():
            given = x.clone()
            if facts.get("call") is not None:
                output = facts["call"](thing, given, offset)
            else:
                pairs = facts.get("tables for", PAIRS[0])
                base = facts.get("base")
                output = called(thing, way, given, offset, axis, pairs, base)
    except Exception:
        return None
    if not isinstance(output, Tensor):
        return None
    fits = output.shape == x.shape or facts.get("loosely")
    return output if fits else None


def find_out(thing: Any, told: Facts) -> Found:
    """How it can be called.

    Raises:
        UnclearError: if it raises, or gives something else, however it is
            called.
    """
    layouts = [told["layout"]] if told.get("layout") else [*TOKENS, ROW]
    every = [Way()]
    if told.get("call") is None:
        listed = ways(thing, told.get("told"), told.get("name"))
        every = list(islice(listed, MOST))
    widths = [told["width"]] if told.get("width") else widths_of(thing)
    plain = [way for way in every if not way.given]
    for facts, some in ((told, every), ({**told, "loosely": True}, plain)):
        if fitting := at_a_width(thing, facts, layouts, some, widths):
            d, found = fitting
            width = told.get("width") or own_width(thing, facts, found, d)
            return Found(found, width, *reach(thing, facts, found, d))
    names = ", ".join(parameters(thing)) or "none that I can read"
    raise UnclearError(
        f"I could not call it. Its arguments are {names}; I tried "
        f"{len(every)} ways, x of two to four axes and the widths "
        f"{', '.join(map(str, widths))}: it raises, or returns nothing of "
        "x's shape. Say call=…, a function of the patient, x and offset."
    )


def at_a_width(
    thing: Any,
    told: Facts,
    layouts: list[str],
    every: list[Way],
    widths: list[int],
) -> tuple[int, dict[tuple[str, int], Way]] | None:
    """The width at which it works, and how it is called there.

    At a wrong one tables may be reshaped by accident to what was asked for:
    one text is turned by what belongs to another. So the first counts at
    which it turns, and texts that are alike alike; only else the first. Who
    is told positions and turns heads alike, and no texts, wants all tokens in
    a row; who counts by himself counts along the wrong axis.
    """
    first = None
    for d in widths:
        found = working(thing, told, layouts, every, d)
        if not found:
            continue
        row = {key: found.pop(key) for key in [IN_A_ROW] if key in found}
        if found and not any(way.numbered for way in row.values()):
            row = {}
        for some in filter(None, (found, row)):
            if turns_alike(thing, told, next(iter(some.items())), d):
                return d, some
        first = first or (d, found or row)
    return first


def turns_alike(
    thing: Any, told: Facts, one: tuple[tuple[str, int], Way], d: int
) -> bool:
    """Whether it turns, in one way, and what is alike beside others alike."""
    (layout, axes), way = one
    facts, x = {**told, "layout": layout}, sample(layout, axes, d)
    if x.ndim == AXES["single"]:
        return rotates(thing, way, facts, x)
    beside = int(layout == ROW)  # the axis of heads, where no text has one
    x = x.narrow(beside, 0, 1).expand_as(x)
    output = tried(fresh(thing), way, facts, x, 0)
    if output is None or not torch.allclose(
        output.select(beside, 0), output.select(beside, -1)
    ):
        return False
    if layout == ROW and are_two_heads(thing, way, facts, x):
        return False
    return rotates(thing, way, facts, x)


def are_two_heads(thing: Any, way: Way, facts: Facts, x: Tensor) -> bool:
    """Whether each half of the features is turned as if it were all.

    So it is if a row of heads side by side is parted into narrower ones.
    """
    half = x[..., : x.shape[-1] // 2]
    output = tried(fresh(thing), way, facts, torch.cat((half, half), -1), 3)
    return output is not None and torch.equal(*output.chunk(2, dim=-1))


def working(
    thing: Any, told: Facts, layouts: list[str], every: list[Way], d: int
) -> dict[tuple[str, int], Way]:
    """The way that works, for each layout and number of axes."""
    found: dict[tuple[str, int], Way] = {}
    for layout in layouts:
        for axes in TAKEN.get(layout, (4, 3, 2)):
            x = sample(layout, axes, d)
            facts = {**told, "layout": layout}
            way = best(thing, facts, every, x)
            if way is not None:
                found[layout, axes] = way
                every = [way, *(one for one in every if one is not way)]
    return found


def best(thing: Any, facts: Facts, every: list[Way], x: Tensor) -> Way | None:
    """The first way that works, if there is one by which an offset counts.

    Of the tables that it may take, those count with which it is a rotation.
    """
    first = None
    for way in every:
        here = tried(fresh(thing), way, facts, x, 0)
        if here is None or not tells_apart(thing, way, facts, x):
            continue
        if way.given:
            if rotates(thing, way, facts, x):
                return way
            first = first or way
            continue
        there = tried(fresh(thing), way, facts, x, 3)
        if way.placed and there is not None and not here.equal(there):
            return way
        if not way.placed:
            return first if first and named_for_it(first) else way
        first = first or way
    return first


def tells_apart(thing: Any, way: Way, facts: Facts, x: Tensor) -> bool:
    """Whether tokens that are alike are turned apart, by one offset for all.

    Who wants the positions of all may take a tensor with one, and give each
    token the same.
    """
    if not any(form in IN_A_TENSOR for _, form in way.forms):
        return True
    axis = axis_of(facts["layout"], x.ndim)
    alike = x.narrow(axis, 0, 1).expand_as(x)
    there = tried(fresh(thing), way, facts, alike, 0)
    if there is None:
        return False
    return not torch.equal(there.select(axis, 0), there.select(axis, -1))


def named_for_it(way: Way) -> bool:
    """Whether it is told a position, by a name that says nothing else.

    If none counts there, that is what is wrong with it.
    """
    return any(
        form in PLACED and role(name) in ("offset", "positions")
        for name, form in way.forms
    )


def rotates(thing: Any, way: Way, facts: Facts, x: Tensor) -> bool:
    """Whether no token changes its length, whichever features make a pair."""
    for pairs in PAIRS:
        one = {**facts, "tables for": pairs}
        there = tried(fresh(thing), way, one, x, 3)
        lengths = x.norm(dim=-1)
        if there is None or there.shape != x.shape:
            continue
        now = there.norm(dim=-1).to(lengths.dtype)  # it may be another
        if torch.allclose(now, lengths, rtol=1e-3):
            return True
    return False


def widths_of(thing: Any) -> list[int]:
    """The widths that it may have, its own first."""
    own: list[int] = []
    if isinstance(thing, nn.Module):
        for held in thing.buffers():
            d = held.shape[-1] if held.ndim else 1
            own += [2 * d, d]
        own += [x for x in vars(thing).values() if type(x) is int]
    kept = [d for d in dict.fromkeys((6, *own, *WIDTHS)) if d % 2 == 0]
    return [d for d in kept if 2 <= d <= 512]


def own_width(
    thing: Any, told: Facts, found: dict[tuple[str, int], Way], d: int
) -> int | None:
    """Its width, if it takes no other."""
    (layout, axes), way = next(iter(found.items()))
    facts = {**told, "layout": layout}
    for other in ANY:
        x = sample(layout, axes, other)
        if tried(fresh(thing), way, facts, x, 0) is None:
            return d
    return None


def reach(
    thing: Any, told: Facts, found: dict[tuple[str, int], Way], d: int
) -> tuple[int | None, bool]:
    """Up to which position it goes, and whether it turns back below 0."""
    (layout, axes), way = next(iter(found.items()))
    facts, x = {**told, "layout": layout}, sample(layout, axes, d)

    def goes(offset: int) -> bool:
        return tried(fresh(thing), way, facts, x, offset) is not None

    far = next((offset for offset in FAR if goes(offset)), None)
    back = tried(fresh(thing), way, facts, x, -1)
    there: Any = back is not None and tried(fresh(thing), way, facts, back, 1)
    real = isinstance(there, Tensor) and not there.is_complex()
    wrapped = real and not torch.allclose(there.to(x.dtype), x, atol=1e-3)
    return (None if far in (None, FAR[0]) else far), not wrapped
