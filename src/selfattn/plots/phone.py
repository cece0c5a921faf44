"""How a figure stands on a phone: drawn again, as wide as that is.

Made smaller, its letters could not be read, and a picture that scrolls hides
half of what it says. So the letters keep their size: the axes become
narrower, panels stand below each other, and so does a legend.
"""

import pickle
import textwrap
from collections.abc import Callable
from itertools import pairwise
from weakref import WeakKeyDictionary

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

WIDTH = 3.48  # inches: with a margin, what a phone shows with legible letters
LINE = 0.19  # inches of a line of a legend
ALONE = 3  # so many panels stand below each other; more, two in a row
TITLE = 11.0  # points, at most
OWN: WeakKeyDictionary[Figure, Callable[[], Figure]] = WeakKeyDictionary()


def drawn_otherwise(figure: Figure, draw: Callable[[], Figure]) -> None:
    """On a phone another figure stands in this one's place.

    Args:
        figure: whatever `on_a_phone` will be asked for.
        draw: draws the other, at most `WIDTH` inches wide.
    """
    OWN[figure] = draw


def on_a_phone(figure: Figure) -> Figure:
    """A figure of the same data, of letters as large, that is `WIDTH` wide.

    The figure that is given stays as it is.
    """
    if figure in OWN:
        return OWN[figure]()
    phone = copied(figure)
    phone.set_layout_engine("constrained")
    phone.set_figwidth(WIDTH)
    for axes in phone.axes:
        axes.title.set_fontsize(min(axes.title.get_fontsize(), TITLE))
    put_legends_below(phone)
    stack(phone)
    laid_out(phone)
    for axes in phone.axes:
        turn_crowded(axes)
    laid_out(phone)
    for axes in phone.axes:
        break_long(axes)
    return phone


def copied(figure: Figure) -> Figure:
    """A figure like this one, of which pyplot knows nothing."""
    manager = figure.canvas.manager
    figure.canvas.manager = None
    try:
        copy: Figure = pickle.loads(pickle.dumps(figure))
    finally:
        figure.canvas.manager = manager
    FigureCanvasAgg(copy)
    return copy


def laid_out(figure: Figure) -> None:
    """So that all is in its place."""
    figure.draw_without_rendering()


def grid(figure: Figure) -> list[list[Axes]]:
    """The panels in their rows, if they are all of one grid; else none."""
    specs = {axes: axes.get_subplotspec() for axes in figure.axes}
    found = {axes: spec for axes, spec in specs.items() if spec}
    if len({spec.get_gridspec() for spec in found.values()}) != 1:
        return []
    rows: dict[int, list[Axes]] = {}
    for axes, spec in found.items():
        if len(spec.rowspan) > 1 or len(spec.colspan) > 1:
            return []
        rows.setdefault(spec.rowspan.start, []).append(axes)
    return list(rows.values())


def stack(figure: Figure) -> None:
    """Panels side by side go below each other, and the figure is higher.

    What only the outer ones of the old rows were told, the outer ones of the
    new rows are.
    """
    for axes in figure.axes:
        if not axes.axison and not axes.has_data():
            axes.remove()  # the place of what is said below now
    rows = grid(figure)
    if max(map(len, rows), default=1) == 1:
        return
    panels = [axes for row in rows for axes in row]
    tell_all(rows)
    columns = 1 if len(panels) <= ALONE else 2
    high = -(-len(panels) // columns)
    places = figure.add_gridspec(high, columns)
    for place, axes in enumerate(panels):
        axes.set_subplotspec(places[place])
        axes.tick_params(labelleft=True, labelbottom=True)
        first = panels[place - place % columns]
        if axes is not first and axes.get_ylabel() == first.get_ylabel():
            axes.set_ylabel("")
        if columns > 1 and place + columns < len(panels):
            axes.set_xlabel("")
    if any(axes.get_aspect() != "auto" for axes in panels):
        figure.set_layout_engine("compressed")
    grown = high / len(rows) * (0.75 if columns == 1 else 1)
    figure.set_figheight(figure.get_figheight() * grown)


def tell_all(rows: list[list[Axes]]) -> None:
    """Each panel gets the words that the outer one has for it."""
    for row in rows:
        for top, bottom, axes in zip(rows[0], rows[-1], row, strict=False):
            axes.set_title(axes.get_title() or top.get_title())
            copy_label(axes.yaxis.label, row[0].yaxis.label)
            copy_label(axes.xaxis.label, bottom.xaxis.label)


def copy_label(label: Text, other: Text) -> None:
    """An axis without a name takes another's, in its colour."""
    if not label.get_text():
        label.set_text(other.get_text())
        label.set_color(other.get_color())


def put_legends_below(figure: Figure) -> None:
    """One legend for all, under all; if panels differ in theirs, they stay."""
    all_of = [axes.get_legend() for axes in figure.axes]
    legends = [*figure.legends, *(one for one in all_of if one)]
    told = {tuple(text.get_text() for text in one.texts) for one in legends}
    if len(told) != 1:
        return
    first = legends[0]
    for legend in legends:
        legend.remove()
    handles = [one for one in first.legend_handles if one is not None]
    size = first.texts[0].get_fontsize()
    columns = len(handles)
    while True:
        below = figure.legend(
            handles,
            [text.get_text() for text in first.texts],
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            fontsize=size,
            columnspacing=1.2,
        )
        if columns == 1 or width_of(below) <= WIDTH - 0.1:
            break
        below.remove()
        columns -= 1
    lines = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + LINE * lines)


def width_of(part: Legend | Text) -> float:
    """How wide something of a figure is, in inches."""
    return part.get_window_extent().width / figure_of(part).dpi


def turn_crowded(axes: Axes) -> None:
    """Names of places on an axis that reach into each other are turned.

    If they still do, each goes into one line.
    """
    labels = [
        label
        for label in axes.get_xticklabels()
        if label.get_text() and label.get_visible()
    ]
    turned = any(label.get_rotation() for label in labels)
    if turned or not crowded(labels):
        return
    axes.tick_params(axis="x", labelrotation=90)
    if crowded(labels) and any("\n" in x.get_text() for x in labels):
        words = [label.get_text().replace("\n", " ") for label in labels]
        axes.set_xticks([x.get_position()[0] for x in labels], words)


def crowded(labels: list[Text]) -> bool:
    """Whether some reach into their neighbours, or almost."""
    boxes = [label.get_window_extent() for label in labels]
    boxes.sort(key=lambda box: box.x0)
    return any(b.x0 < a.x1 + 2 for a, b in pairwise(boxes))


def figure_of(part: Axes | Legend | Text) -> Figure:
    """The whole figure that something stands in."""
    figure = part.get_figure(root=True)
    if figure is None:
        raise ValueError("part must stand in a figure; it stands in none")
    return figure


def break_long(axes: Axes) -> None:
    """A name that is longer than its side goes into several lines."""
    whole, side = figure_of(axes).bbox, axes.get_window_extent()
    middle = (side.x0 + side.x1) / 2
    for text, room in (
        (axes.title, side.width * 1.1),
        (axes.xaxis.label, 2 * min(middle, whole.width - middle)),
        (axes.yaxis.label, side.height * 1.15),
    ):
        box = text.get_window_extent()
        long = box.height if text is axes.yaxis.label else box.width
        words = text.get_text()
        if words and "$" not in words and long > room:
            letters = int(len(words) * room / long)
            text.set_text("\n".join(textwrap.wrap(words, max(letters, 8))))
