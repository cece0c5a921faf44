"""The pictures on blocks show each box, each arrow, each shape."""

from matplotlib.colors import same_color
from matplotlib.figure import Figure

from selfattn.plots.blocks import Arrow, flow
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
