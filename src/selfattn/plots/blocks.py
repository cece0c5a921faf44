"""Figures of the chapter on blocks: what flows where, with its shape."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from selfattn.plots.colours import NEUTRAL, OUTPUT, K
from selfattn.plots.phone import WIDTH, drawn_otherwise

Place = tuple[float, float]


class Arrow(NamedTuple):
    """From one box to another, with the shape that flows there."""

    start: str
    end: str
    shape: Sequence[int] | None = None
    bend: float = 0.0  # of a path past other boxes; 0 is straight
    shift: Place = (0.0, 0.0)  # of the shape, from the middle of the arrow


def flow(
    ax: Axes,
    boxes: Mapping[str, Place],
    arrows: Sequence[Arrow],
    *,
    fontsize: float = 10.0,
) -> Axes:
    """Boxes at their places, and arrows with the shapes that flow there.

    On a phone a row of boxes is a column, and columns stand closer.

    Args:
        ax: where to draw.
        boxes: the middle of each box, by its words; blanks before or behind
            them, which are not drawn, tell boxes of the same words apart.
        arrows: what flows from one to another; a bent one, which leads past
            others, is a residual path and has its own colour.
        fontsize: of the words, in points.
    """
    frame = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": OUTPUT}
    middle: dict[str, Any] = {"ha": "center", "va": "center"}
    look = {"fontsize": fontsize, "bbox": frame, **middle}
    drawn = {
        box: ax.text(*at, box.strip(), **look) for box, at in boxes.items()
    }
    for arrow in arrows:
        ends = boxes[arrow.start], boxes[arrow.end]
        boxed = drawn[arrow.start], drawn[arrow.end]
        draw_arrow(ax, ends, boxed, arrow)
        if arrow.shape is not None:
            x, y = (sum(both) / 2 for both in zip(*ends, strict=True))
            place = x + arrow.shift[0], y + arrow.shift[1]
            look = {"fontsize": fontsize - 0.5, "zorder": 5, **middle}
            ax.text(*place, str(tuple(arrow.shape)), **look)
    xs, ys = zip(*boxes.values(), strict=True)
    ax.set_xlim(min(xs) - 0.9, max(xs) + 0.9)
    ax.set_ylim(min(ys) - 0.7, max(ys) + 0.7)
    ax.axis("off")
    figure = ax.get_figure(root=True)
    if figure is not None:
        drawn_otherwise(figure, lambda: narrow(boxes, arrows))
    return ax


def narrow(boxes: Mapping[str, Place], arrows: Sequence[Arrow]) -> Figure:
    """The same as a phone shows it, from the bottom to the top."""
    if len({y for _, y in boxes.values()}) == 1:
        boxes = {name: (y, 0.6 * x) for name, (x, y) in boxes.items()}
        arrows = [
            arrow._replace(shift=(0.7, 0.0), bend=2.2 * arrow.bend)
            for arrow in arrows
        ]
    else:  # columns stand closer, and letters are as large as before
        arrows = [
            arrow._replace(shift=(1.16 * x, y - 0.15) if x else (0.1, y + 0.2))
            for arrow in arrows
            for x, y in [arrow.shift]
        ]
    xs, ys = zip(*boxes.values(), strict=True)
    room = 1.4 if len({*xs}) > 1 else 1.7
    rows = (max(ys) - min(ys)) / 1.2
    figure = Figure(figsize=(WIDTH, 0.6 + 0.58 * rows))
    ax = figure.add_axes((0, 0, 1, 1))
    flow(ax, boxes, arrows)
    ax.set_xlim(min(xs) - room, max(xs) + room)
    return figure


def draw_arrow(
    ax: Axes,
    ends: tuple[Place, Place],
    boxed: tuple[Text, Text],
    arrow: Arrow,
) -> None:
    """One arrow, from the edge of a box to the edge of another."""
    look = {
        "arrowstyle": "-|>",
        "color": K if arrow.bend else NEUTRAL,
        "connectionstyle": f"arc3,rad={arrow.bend}",
        "patchA": boxed[0].get_bbox_patch(),
        "patchB": boxed[1].get_bbox_patch(),
        "shrinkA": 1,
        "shrinkB": 1,
        "lw": 1.2,
    }
    # After the boxes, which know their size only once they are drawn.
    ax.annotate("", ends[1], ends[0], arrowprops=look, zorder=4)
