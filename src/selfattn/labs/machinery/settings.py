"""The kinds of setting that a lab can have, each a trait with its bounds.

A kind is declared once, here on the Python side. Its `rule` travels to the
page with the lab's state, and there gives the controls their bounds and tells
which numbers of a shared link to refuse.
"""

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import traitlets

Real = float | int  # JSON writes 1.0 as 1
Plotted = Sequence[Sequence[Real]]  # points, each a pair


class SettingError(traitlets.TraitError, ValueError):
    """A setting outside its bounds; the message says the rule first."""


class Whole(traitlets.Int):
    """A whole number between two bounds.

    Args:
        start: the value at the start.
        low: the least value.
        high: the greatest value.
        of: the name of another setting that bounds this one too: never more
            than its value plus ``plus``; of words, their number counts. When
            that one falls, so does this.
        plus: see ``of``; -1 makes a position in a sequence of that length.
    """

    kind = "whole"

    def __init__(
        self,
        start: int,
        low: int,
        high: int,
        *,
        of: str | None = None,
        plus: int = 0,
    ):
        super().__init__(start)
        self.low, self.high, self.of, self.plus = low, high, of, plus
        self.tag(sync=True)

    def highest(self, lab: traitlets.HasTraits) -> int:
        """The greatest value now, as things stand in ``lab``."""
        if self.of is None:
            return self.high
        bound = getattr(lab, self.of)
        if isinstance(bound, str):
            bound = len(bound.split(" "))
        return min(self.high, bound + self.plus)

    def settled(self, lab: traitlets.HasTraits) -> int:
        """Its value, or the nearest that is allowed as things stand."""
        return min(getattr(lab, self.name), self.highest(lab))

    def rule(self) -> dict[str, Any]:
        """What the page must know about the bounds."""
        rule = {"kind": self.kind, "low": self.low, "high": self.high}
        return rule | ({"of": self.of, "plus": self.plus} if self.of else {})

    def validate(self, lab: Any, value: Any) -> int:
        """The number, or a `SettingError`; True and False are none."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise SettingError(
                f"{self.name} must be a whole number, but it is {value!r:.60}"
            )
        return super().validate(lab, value)

    def _cross_validate(self, lab: traitlets.HasTraits, value: int) -> int:
        # traitlets calls this when all settings of one change are in, so
        # that a length and a position in it may change together.
        high = self.highest(lab)
        if not self.low <= value <= high:
            raise SettingError(
                f"{self.name} must lie between {self.low} and {high}, but it "
                f"is {value}"
            )
        return super()._cross_validate(lab, value)


class Number(traitlets.Float):
    """A number between two bounds, moved in steps of ``step``."""

    kind = "number"

    def __init__(self, start: Real, low: Real, high: Real, step: Real):
        super().__init__(start)
        self.low, self.high, self.step = low, high, step
        self.tag(sync=True)

    def validate(self, lab: Any, value: Any) -> float:
        """The value as a float, or a `SettingError`."""
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if not (real and self.low <= value <= self.high):
            # 10**400 is beyond a float, and NaN no number.
            known = real and abs(value) <= sys.float_info.max
            rule = "lie" if known else "be a number that lies"
            raise SettingError(
                f"{self.name} must {rule} between {self.low} and "
                f"{self.high}, but it is {value!r:.60}"
            )
        return float(value)

    def rule(self) -> dict[str, Any]:
        """What the page must know about the bounds."""
        return stepped(self)


class Choice(traitlets.TraitType):
    """One of a few values, which are all words or all numbers.

    Args:
        start: the value at the start.
        options: the values; if they divide another setting, the least first.
        divides: the name of a setting that this one divides without rest.
            When that one changes, this falls to the next that does.
    """

    kind = "choice"

    def __init__(
        self, start: Any, options: list[Any], *, divides: str | None = None
    ):
        super().__init__(start)
        self.options, self.of = options, divides
        self.tag(sync=True)

    def allowed(self, lab: traitlets.HasTraits) -> list[Any]:
        """The options as things stand in ``lab``."""
        if self.of is None:
            return self.options
        whole = getattr(lab, self.of)
        return [option for option in self.options if whole % option == 0]

    def settled(self, lab: traitlets.HasTraits) -> Any:
        """Its value, or the next below that is allowed as things stand."""
        value = getattr(lab, self.name)
        return max(x for x in self.allowed(lab) if x <= value)

    def validate(self, lab: Any, value: Any) -> Any:
        """The option that is meant, or a `SettingError`."""
        if not isinstance(value, str | int | float) or (
            value not in self.options
        ):
            allowed = ", ".join(repr(option) for option in self.options)
            raise SettingError(
                f"{self.name} must be one of {allowed}, but it is "
                f"{value!r:.60}"
            )
        return self.options[self.options.index(value)]

    def _cross_validate(self, lab: traitlets.HasTraits, value: Any) -> Any:
        if value not in self.allowed(lab):
            raise SettingError(
                f"{self.name} must divide {self.of}, but {self.name}={value} "
                f"and {self.of}={getattr(lab, str(self.of))}"
            )
        return super()._cross_validate(lab, value)

    def rule(self) -> dict[str, Any]:
        """What the page must know about the options."""
        rule = {"kind": self.kind, "options": self.options}
        return rule | ({"divides": self.of} if self.of else {})


class Flag(traitlets.Bool):
    """Yes or no."""

    kind = "flag"

    def __init__(self, start: bool):
        super().__init__(start)
        self.tag(sync=True)

    def rule(self) -> dict[str, Any]:
        """What the page must know: that there is nothing to know."""
        return {"kind": self.kind}


class Points(traitlets.List):
    """A fixed number of points on a plane, to be dragged.

    Args:
        start: the points, a list of pairs.
        low: the least coordinate.
        high: the greatest coordinate.
        step: how far one press of an arrow key moves a point.
    """

    kind = "points"

    def __init__(
        self,
        start: Plotted,
        low: Real,
        high: Real,
        step: Real,
    ):
        super().__init__(default_value=[[float(x) for x in p] for p in start])
        self.low, self.high, self.step = low, high, step
        self.count = len(start)
        self.tag(sync=True)

    def validate(self, lab: Any, value: Any) -> list[list[float]]:
        """The points as floats, or a `SettingError`."""
        points = pairs(value, float)
        inside = points is not None and all(
            math.isfinite(x) and self.low <= x <= self.high
            for point in points
            for x in point
        )
        if points is None or len(points) != self.count or not inside:
            raise SettingError(
                f"{self.name} must be {self.count} points with coordinates "
                f"between {self.low} and {self.high}, but it is "
                f"{value!r:.200}"
            )
        return points

    def rule(self) -> dict[str, Any]:
        """What the page must know about the plane."""
        return stepped(self)


class Words(traitlets.Unicode):
    """A few words that the reader types, with one space between two.

    Args:
        start: the words at the start.
        most: how many there may be; there is at least one.
        longest: how many characters a word may have.
    """

    kind = "words"

    def __init__(self, start: str, most: int, longest: int):
        super().__init__(start)
        self.most, self.longest = most, longest
        self.tag(sync=True)

    def validate(self, lab: Any, value: Any) -> str:
        """The words as they are, or a `SettingError`."""
        text = super().validate(lab, value)
        words = text.split(" ")
        good = all(
            0 < len(word) <= self.longest and word.split() == [word]
            for word in words
        )
        if len(words) > self.most or not good:
            raise SettingError(
                f"{self.name} must be one to {self.most} words of at most "
                f"{self.longest} characters, with one space between two, but "
                f"it is {value!r}"
            )
        return text

    def rule(self) -> dict[str, Any]:
        """What the page must know about the words."""
        return {"kind": self.kind, "most": self.most, "longest": self.longest}


class Cells(traitlets.List):
    """Some cells of a table, each a pair (row, column), in order.

    Args:
        side: how many rows and columns the table has at most.
        most: how many cells there may be.
    """

    kind = "cells"

    def __init__(self, side: int, most: int):
        super().__init__(default_value=[])
        self.side, self.most = side, most
        self.tag(sync=True)

    def validate(self, lab: Any, value: Any) -> list[list[int]]:
        """The cells, sorted and each once, or a `SettingError`."""
        found = pairs(value, int)
        cells = sorted({*map(tuple, found or [])})
        inside = all(0 <= x < self.side for cell in cells for x in cell)
        if found is None or len(cells) > self.most or not inside:
            raise SettingError(
                f"{self.name} must be at most {self.most} cells, with rows "
                f"and columns between 0 and {self.side - 1}, but it is "
                f"{value!r:.200}"
            )
        return [list(cell) for cell in cells]

    def rule(self) -> dict[str, Any]:
        """What the page must know about the table."""
        return {"kind": self.kind, "side": self.side, "most": self.most}


def pairs(value: Any, number: Callable[[Any], Any]) -> list[list[Any]] | None:
    """Pairs of numbers, as numbers of one type; None if it is none of them."""
    try:
        found = [[number(x) for x in pair] for pair in value]
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
    return found if all(len(pair) == 2 for pair in found) else None


def stepped(setting: Number | Points) -> dict[str, Any]:
    """The rule of numbers between two bounds, moved in steps."""
    names = ("kind", "low", "high", "step")
    return {name: getattr(setting, name) for name in names}


KINDS = (Whole, Number, Choice, Flag, Points, Words, Cells)
