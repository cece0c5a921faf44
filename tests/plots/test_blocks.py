"""The pictures on blocks show each box, each arrow, each shape."""

from matplotlib.colors import same_color
from matplotlib.figure import Figure

from selfattn.plots.blocks import Arrow, flow, narrow
from selfattn.plots.colours import K

BOXES = {"x": (0.0, 0.0), "norm": (0.0, 1.0), "sum": (0.0, 2.0)}
ARROWS = [
    Arrow("x", "norm", (2, 3), shift=(0.5, 0.0)),
    Arrow("norm", "sum"),
    Arrow("x", "sum", bend=0.4),
]


def test_every_box_and_every_shape_is_written():
    ax = Figure().subplots()
    assert flow(ax, BOXES, ARROWS) is ax
    words = [text.get_text() for text in ax.texts if text.get_text()]
    assert words == ["x", "norm", "sum", "(2, 3)"]
    written = next(t for t in ax.texts if t.get_text() == "(2, 3)")
    assert written.get_position() == (0.5, 0.5)


def test_arrows_lead_from_box_to_box_and_a_path_has_its_colour():
    ax = Figure().subplots()
    flow(ax, BOXES, ARROWS)
    drawn = [text for text in ax.texts if not text.get_text()]
    assert [(a.xyann, a.xy) for a in drawn] == [
        (BOXES["x"], BOXES["norm"]),
        (BOXES["norm"], BOXES["sum"]),
        (BOXES["x"], BOXES["sum"]),
    ]
    coloured = [same_color(a.arrow_patch.get_edgecolor(), K) for a in drawn]
    assert coloured == [False, False, True]
    (low, high), (left, right) = ax.get_ylim(), ax.get_xlim()
    assert low < 0 < 2 < high and left < 0 < right


def test_boxes_of_the_same_words_are_drawn_alike():
    """Blanks that tell them apart moved the words out of the middle."""
    ax = Figure().subplots()
    flow(ax, {"+": (0.0, 0.0), "+ ": (0.0, 1.0)}, [Arrow("+", "+ ")])
    assert [text.get_text() for text in ax.texts[:2]] == ["+", "+"]


def test_on_a_phone_no_shape_stands_on_its_arrow():
    """Two columns stood so close that arrows went through their shapes."""
    boxes = {"a": (0.0, 0.0), "b": (0.0, 1.2), "c": (4.2, 0.0)}
    figure = narrow(boxes, [Arrow("a", "b", (1, 5, 8), shift=(0.5, 0.0))])
    figure.draw_without_rendering()
    (ax,) = figure.axes
    written = next(t for t in ax.texts if t.get_text() == "(1, 5, 8)")
    left = ax.transData.inverted().transform(written.get_window_extent())
    assert left[0][0] > 0.05
