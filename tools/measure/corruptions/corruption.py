"""What a corruption is, and the register of their kinds."""

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

Content = str | bytes | None | Callable[[], str]
HALVES = ("tune", "held")


@dataclass(frozen=True)
class Corruption:
    """One edit that ought not to pass; or, if harmless, one that ought to.

    Attributes:
        kind: what sort of thing it touches.
        rule: what it does there.
        place: the file, and where in it.
        was: the words that were there, or some of them.
        becomes: those that come instead.
        files: the new content of each file that it writes, or what makes it
            when it is wanted; None deletes the file.
    """

    kind: str
    rule: str
    place: str
    was: str
    becomes: str
    files: dict[str, Content] = field(repr=False, hash=False)

    @property
    def half(self) -> str:
        """The half it belongs to: the chain is mended on one of them alone."""
        return digest_half(f"{self.kind} {self.rule} {self.place} {self.was}")

    def __str__(self) -> str:
        """One line: kind, rule, place, and the words."""
        return (
            f"{self.kind} / {self.rule}: {self.place}: "
            f"{short(self.was)} -> {short(self.becomes)}"
        )


def digest_half(name: str) -> str:
    """The half that a name falls into, by its digest."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] % 2]


def short(text: str, most: int = 60) -> str:
    """The first words of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[:most] + "…"


Maker = Callable[[Path, random.Random], Iterator[Corruption]]
KINDS: dict[str, Maker] = {}
HARMLESS: dict[str, Maker] = {}


def kind(name: str) -> Callable[[Maker], Maker]:
    """Register a function that makes the corruptions of one kind.

    It gets the root of a healthy tree and a seeded generator, and yields
    every corruption that it can make, in an order drawn by that.
    """

    def register(make: Maker) -> Maker:
        KINDS[name] = make
        return make

    return register


def harmless(name: str) -> Callable[[Maker], Maker]:
    """Register a function that makes edits which ought to pass."""

    def register(make: Maker) -> Maker:
        HARMLESS[name] = make
        return make

    return register
