"""Pictures in one language: drawn as SVG, by code, from numbers.

Narrow enough for a phone, so that nothing in them shrinks; blue for queries,
vermillion for keys, green for values; readable on a light and on a dark
ground, since the site puts its own colours in place of those given here.
"""

from collections.abc import Mapping, Sequence
from html import escape

from selfattn.plots.colours import NEUTRAL, K, Q, V

WIDTH = 340  # in pixels of a phone
CELL = (38, 22)  # of a table
SIZE = 13  # of letters

Real = float | int

# What the site's style sheet calls its colours, and what they are without it.
COLOURS = {
    "q": f"var(--query, {Q})",
    "k": f"var(--key, {K})",
    "v": f"var(--value, {V})",
    "ink": "var(--pst-color-text-base, currentColor)",
    "faint": f"var(--pst-color-text-muted, {NEUTRAL})",
}
ARROW = (
    '<marker id="{0}" viewBox="0 0 8 8" refX="7" refY="4" '
    'markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
    '<path d="M0 0 8 4 0 8Z" fill="{1}"/></marker>'
)


class Drawing:
    """A picture that grows, piece by piece; a notebook shows it as SVG.

    Attributes:
        name: which picture it is.
        data: the numbers that it draws, for the tests.
    """

    def __init__(self, name: str, height: Real, **data: object):
        self.name, self.height, self.data = name, height, data
        self.pieces: list[str] = []
        self.tips = {"faint"}  # the colours of its arrows, and this one

    def __repr__(self) -> str:
        """Its name: the same in every run."""
        return f"Drawing({self.name!r})"

    def _repr_svg_(self) -> str:
        """The picture as SVG, the same bytes each time."""
        tips = (
            ARROW.format(self.tip(colour), COLOURS[colour])
            for colour in sorted(self.tips)
        )
        body = "\n".join([*tips, *self.pieces])
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" class="drawing" '
            f'viewBox="0 0 {WIDTH} {self.height:g}" width="{WIDTH}" '
            f'height="{self.height:g}" font-family="system-ui, sans-serif" '
            f'font-size="{SIZE}">\n{body}\n</svg>'
        )

    def tip(self, colour: str) -> str:
        """What the tip of arrows in this colour is called in the picture."""
        own = "" if colour == "faint" else f"-{colour}"
        return f"{self.name}-tip{own}"

    def text(
        self,
        x: Real,
        y: Real,
        words: str,
        *,
        colour: str = "ink",
        anchor: str = "middle",
        bold: bool = False,
    ) -> None:
        """Words whose middle, or start or end, is at x; y is their middle."""
        weight = ' font-weight="600"' if bold else ""
        self.pieces.append(
            f'<text x="{x:g}" y="{y + SIZE / 3:.4g}" text-anchor="{anchor}" '
            f'fill="{COLOURS[colour]}"{weight}>{escape(words)}</text>'
        )

    def box(
        self,
        x: Real,
        y: Real,
        width: Real,
        height: Real,
        *,
        colour: str = "faint",
        shade: Real = 0.0,
    ) -> None:
        """A box, filled to a shade from 0 to 1."""
        self.pieces.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" '
            f'height="{height:g}" rx="3" fill="{COLOURS[colour]}" '
            f'fill-opacity="{0.55 * shade:.3g}" stroke="{COLOURS[colour]}"/>'
        )

    def legend(self, colours: Mapping[str, tuple[Real, str]]) -> None:
        """In the first row: a box in each colour, at its x, and its words."""
        for words, (x, colour) in colours.items():
            self.box(x, 2, 20, 20, colour=colour, shade=0.6)
            self.text(x + 26, 12, words, anchor="start")

    def line(
        self,
        *points: tuple[Real, Real],
        colour: str = "faint",
        width: Real = 1.5,
        arrow: bool = False,
    ) -> None:
        """A line through points, with a tip at its end if it is an arrow."""
        path = " ".join(f"{x:.4g},{y:.4g}" for x, y in points)
        tip = f' marker-end="url(#{self.tip(colour)})"' if arrow else ""
        self.tips |= {colour} if arrow else set()
        self.pieces.append(
            f'<polyline points="{path}" fill="none" '
            f'stroke="{COLOURS[colour]}" stroke-width="{width:.3g}"{tip}/>'
        )

    def circle(self, x: Real, y: Real, r: Real, *, colour: str) -> None:
        """A circle, empty."""
        self.pieces.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{r:g}" fill="none" '
            f'stroke="{COLOURS[colour]}"/>'
        )

    def table(
        self,
        x: Real,
        y: Real,
        rows: Sequence[Sequence[Real]],
        *,
        title: str,
        colour: str = "faint",
        shaded: bool = False,
        digits: int = 1,
        columns: Sequence[str] | None = None,
    ) -> tuple[Real, Real]:
        """A table of numbers under its title; its width and height.

        Args:
            x: its left edge.
            y: the middle of its title.
            rows: the numbers.
            title: what stands above.
            colour: of its cells.
            shaded: whether a cell is as dark as its number, from 0 to 1.
            digits: how many decimals are written.
            columns: a colour a column, in place of one for all.
        """
        wide, high = CELL
        across, top = wide * len(rows[0]), y + SIZE
        self.text(x + across / 2, y, title, bold=True)
        for i, row in enumerate(rows):
            own = columns or [colour] * len(row)
            middle = top + i * high
            self.row(x, middle, row, own, shaded=shaded, digits=digits)
        return across, SIZE + high * len(rows)

    def row(
        self,
        x: Real,
        y: Real,
        numbers: Sequence[Real],
        colours: Sequence[str],
        *,
        shaded: bool = False,
        digits: int = 1,
    ) -> None:
        """Numbers, each in a cell of its colour, from a left upper corner.

        Args:
            x: the left edge.
            y: the upper edge.
            numbers: what is written.
            colours: a colour a number.
            shaded: whether a cell is as dark as its number, from 0 to 1.
            digits: how many decimals are written.
        """
        wide, high = CELL
        for j, (number, own) in enumerate(zip(numbers, colours, strict=True)):
            left = x + j * wide
            shade = number if shaded else 0.25 if own != "faint" else 0.0
            self.box(left, y, wide, high, colour=own, shade=shade)
            words = f"{number:.{digits}f}".replace("-", "−")
            self.text(left + wide / 2, y + high / 2, words)
