"""The path of x through a block: which norms and which sublayers it meets."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from selfattn.doctor.kinds.blocks.cores import FUSED
from selfattn.doctor.kinds.blocks.flow import Flow
from selfattn.doctor.kinds.blocks.sums import Said, Sum, below, each_once

Source = tuple[bool, Sum]  # whether a norm of its own lies between; and what


class Stage(NamedTuple):
    """A sum on the path, what is in it besides, and what lies behind it."""

    whole: Sum
    path: Said  # x itself, or a norm of the sum before
    beside: tuple[Said, ...]


def last_said(value: Sum) -> list[Said]:
    """The maps from which a sum comes, through no other map, in order."""
    found: set[Said] = set()
    for said in value.moving:
        if said.kind in ("norm", "other"):
            found.update(*map(last_said, said.reads))
        elif said.kind == "map":
            found.add(said)
    return sorted(found, key=lambda one: one.turn)


def is_shortcut(said: Said) -> bool:
    """Whether a map is a matrix of x itself: a path of another kind."""
    moving = [one for one in said.reads if one.inputs]
    return len(moving) == 1 and moving[0].has_x


def stages(flow: Flow) -> list[Stage] | None:
    """The sums on the way of x, the last one first; None if that is unclear.

    What is multiplied by what depends on the input, is cut, or is bent, is
    unclear.
    """
    found, value = [], flow.output
    while True:
        moving = value.moving
        through = [said for said in moving if said.of_the_path]
        beside = tuple(said for said in moving if said not in through)
        if len(through) != 1 or any(one.lets_through for one in beside):
            return None
        found.append(Stage(value, through[0], beside))
        if through[0].kind == "x":
            return found
        value = through[0].reads[0]


def sources(said: Said, path: Collection[Said] = ()) -> Iterator[Source]:
    """The sums on the path that a sublayer looks at.

    A norm on the ``path`` is none of its own.
    """
    return (normed_or_not(value, path) for value in entries(said))


def entries(said: Said) -> Iterator[Sum]:
    """The sums on the path that a sublayer begins with, normed or not."""
    seen: set[Sum] = set()

    def look(value: Sum) -> Iterator[Sum]:
        if value in seen:
            return
        seen.add(value)
        if value.of_the_path:
            yield value
            return
        for one in value.moving:
            for read in one.reads:
                yield from look(read)

    for read in said.reads:
        yield from look(read)


def normed_or_not(value: Sum, path: Collection[Said]) -> Source:
    """A sum on the path as a source: the norm of one, or it itself."""
    moving = value.moving
    if len(moving) == 1 and moving[0].kind == "norm" and moving[0] not in path:
        return True, moving[0].reads[0]
    return False, value


def deep(said: Said) -> Iterator[Said]:
    """What a sublayer consists of, down to sums on the path."""

    def made_of(one: Said) -> Iterator[Said]:
        for read in one.reads:
            if not read.of_the_path:
                yield from read.moving

    return each_once(said, made_of)


def attends(said: Said, flow: Flow) -> bool:
    """Whether tokens look at others in a sublayer.

    It scores tokens for tokens, or puts all of them together.
    """
    return any(
        one.word.startswith(FUSED)
        or (one.kind == "map" and meets(one.shape, flow.lengths))
        for one in deep(said)
    )


def meets(shape: tuple[int, ...], lengths: tuple[int, ...]) -> bool:
    """Whether a table is one of tokens for tokens, or has none any more."""
    n = lengths[0]
    if shape[-1:] and shape[-1] in lengths and n in shape[:-1]:
        return True
    return not any(size % one == 0 for size in shape for one in lengths)


def looks_across(said: Said) -> bool:
    """Whether a sublayer looks at the context."""
    return any(one.kind == "context" for one in deep(said))


def sums_with_x(flow: Flow) -> list[Sum]:
    """All sums on the path that stand anywhere in the block."""
    return [one for one in below(flow.output) if one.has_x]
