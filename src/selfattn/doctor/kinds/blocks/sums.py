"""What a number on its way through a block is: a sum of what was said.

A term is the block's input, or what a norm, a map or anything else made of
sums before it. So it shows how often x itself is in the output, what stands
beside it, and what each of that was made of.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, TypeVar

TURNS = count()
INPUTS = frozenset({"x", "context"})
One = TypeVar("One")


@dataclass(frozen=True, eq=False)
class Said:
    """One term: who said it, and what of.

    ``kind`` is one of x, context, weights, norm, map and other. What is a
    map takes numbers together: x does not come through one as it is. Through
    what is other, such as a product or a bend, it may.
    """

    kind: str
    reads: "tuple[Sum, ...]" = ()
    part: Any = None  # a norm, or a parameter
    shape: tuple[int, ...] = ()
    word: str = ""  # what PyTorch calls the operation
    inner: int = 0  # over how many numbers each of its products is a sum
    times: float = 1.0  # by which it multiplies them itself
    turn: int = field(default_factory=lambda: next(TURNS))

    @cached_property
    def inputs(self) -> frozenset[str]:
        """Which inputs it depends on."""
        own = INPUTS & {self.kind}
        return own.union(*(one.inputs for one in self.reads))

    @cached_property
    def lets_through(self) -> bool:
        """Whether x may come through otherwise than by way of a map."""
        if self.kind in ("norm", "other"):
            return any(one.lets_through for one in self.reads)
        return self.kind == "x"

    @cached_property
    def of_the_path(self) -> bool:
        """Whether it is x, or leads to it through norms alone."""
        if self.kind == "norm":
            return self.reads[0].of_the_path
        return self.kind == "x"


@dataclass(frozen=True, eq=False)
class Sum:
    """Terms, each with what it is multiplied by; None: that is learnt."""

    terms: Mapping[Said, float | None] = field(default_factory=dict)
    twice: frozenset[Said] = frozenset()  # terms that were added to themselves
    factors: "tuple[Sum, ...]" = ()  # what is learnt and multiplies terms

    @cached_property
    def inputs(self) -> frozenset[str]:
        """Which inputs it depends on."""
        return frozenset().union(*(one.inputs for one in self.terms))

    @cached_property
    def moving(self) -> list[Said]:
        """The terms that are others for other inputs, as they were said."""
        found = [one for one in self.terms if one.inputs]
        return sorted(found, key=lambda one: one.turn)

    @cached_property
    def lets_through(self) -> bool:
        """Whether x may be in it otherwise than by way of a map."""
        return any(one.lets_through for one in self.moving)

    @cached_property
    def of_the_path(self) -> bool:
        """Whether x is a term, or a norm of it, and so on."""
        return any(one.of_the_path for one in self.moving)

    @cached_property
    def has_x(self) -> bool:
        """Whether x itself is a term."""
        return any(one.kind == "x" for one in self.terms)


NOTHING = Sum()


def of(said: Said) -> Sum:
    """A term alone."""
    return Sum({said: 1.0})


def added(one: Sum, other: Sum, times: float = 1.0) -> Sum:
    """Both together, the other so many times."""
    other = scaled(other, times)
    terms = dict(one.terms)
    for said, n in other.terms.items():
        was = terms.get(said, 0.0)
        terms[said] = None if was is None or n is None else was + n
    again = {s for s in one.terms if s in other.terms and s.inputs}
    return Sum(
        terms,
        one.twice | other.twice | again,
        (*one.factors, *other.factors),
    )


def scaled(one: Sum, times: float | None, by: Sum = NOTHING) -> Sum:
    """The same, multiplied: by a number, or by what is learnt."""
    terms = {
        said: None if n is None or times is None else n * times
        for said, n in one.terms.items()
    }
    factors = (*one.factors, by) if by.terms or by.factors else one.factors
    return Sum(terms, one.twice, factors)


def below(value: Sum) -> Iterator[Sum]:
    """A sum, and all of which it was made; each once."""

    def made_of(one: Sum) -> Iterator[Sum]:
        yield from one.factors
        for said in one.terms:
            yield from said.reads

    return each_once(value, made_of)


def each_once(
    first: One, onward: Callable[[One], Iterable[One]]
) -> Iterator[One]:
    """All that is reached from the first, whichever way and how often."""
    waiting, known = [first], set[One]()
    while waiting:
        one = waiting.pop()
        if one in known:
            continue
        known.add(one)
        yield one
        waiting += onward(one)
