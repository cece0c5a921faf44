"""One colour for each role, the same in figures, labs and text.

From the palette of Okabe and Ito (2008), which readers with any common form
of colour blindness can tell apart.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

Curve = TypeVar("Curve")
Look = TypeVar("Look")

Q = "#0072B2"  # queries: blue
K = "#D55E00"  # keys: vermillion
V = "#009E73"  # values: bluish green
OUTPUT = "#000000"  # what comes out
NEUTRAL = "#6E6E6E"  # grid lines, bounds, what is only there to compare


def each_with_a_look(
    curves: Iterable[Curve], looks: Sequence[Look]
) -> Iterator[tuple[Curve, Look]]:
    """Every curve with a look of its own, the first with the first.

    Raises:
        ValueError: if there are more curves than looks: the last would be
            left out of the figure, and nothing said.

    >>> [*each_with_a_look("ab", (Q, K, V))]
    [('a', '#0072B2'), ('b', '#D55E00')]
    """
    drawn = list(curves)
    if len(drawn) > len(looks):
        raise ValueError(
            f"a figure of this kind has {len(looks)} looks, one for each "
            f"curve, but there are {len(drawn)} curves"
        )
    return zip(drawn, looks, strict=False)
