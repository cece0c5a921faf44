"""Figures of the chapter on queries, keys and values hold its numbers."""

import inspect

import matplotlib
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from selfattn.plots import colours, dot_product

matplotlib.use("agg")

VALUES = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
OUTPUT = torch.tensor([[0.7, 1.3], [1.8, 0.7], [0.5, 1.3]])
TOKENS = ["the", "cat", "sat"]
RUNS = [
    {"arm": arm, "cycle": cycle, "seed": seed, "found": found}
    for arm, found in zip(
        dot_product.ARM_STYLES, (1.0, 0.5, 0.25, 0.75), strict=True
    )
    for cycle in (1, 2, 3)
    for seed in (0, 1, 2, 3, 4)
]


@pytest.fixture
def ax():
    return Figure().subplots()


def points(ax, colour):
    """The points of each line of one colour, rounded."""
    return [
        [(round(x, 5), round(y, 5)) for x, y in line.get_xydata().tolist()]
        for line in ax.lines
        if to_hex(line.get_color()).upper() == colour
    ]


def every_figure(ax):
    """Each function of the chapter, called."""
    angles = torch.tensor([0.0, 90.0, 180.0])
    curves = dict.fromkeys(("a", "b", "c"), angles / 90)
    yield dot_product.table(ax, OUTPUT, rows=TOKENS, columns="xy", title="t")
    yield dot_product.lookup_curves(ax, angles, curves, angles, angles)
    yield dot_product.value_plane(ax, VALUES, OUTPUT, TOKENS)
    yield dot_product.found_by_cycle(ax, RUNS)


def test_each_takes_an_axes_and_returns_it(ax):
    public = [
        f
        for _, f in inspect.getmembers(dot_product, inspect.isfunction)
        if f.__module__ == dot_product.__name__
    ]
    returned = list(every_figure(ax))
    assert len(returned) == len(public)
    assert all(back is ax for back in returned)
    for function in public:
        signature = inspect.signature(function)
        assert next(iter(signature.parameters)) == "ax"
        assert signature.return_annotation is Axes


def test_a_table_prints_each_number_in_its_place(ax):
    dot_product.table(
        ax, OUTPUT, rows=TOKENS, columns=["1st", "2nd"], title="output"
    )
    shown = {
        tuple(int(c) for c in reversed(text.get_position())): text.get_text()
        for text in ax.texts
    }
    assert shown == {
        (i, j): f"{OUTPUT[i, j]:.2f}" for i in range(3) for j in range(2)
    }
    assert [t.get_text() for t in ax.get_yticklabels()] == TOKENS
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1st", "2nd"]


def test_a_table_is_darker_where_the_number_is_larger_and_never_dark(ax):
    dot_product.table(ax, OUTPUT, rows=TOKENS, columns="xy", title="t")
    (image,) = ax.images
    grey = image.to_rgba(image.get_array())[..., :3].mean(-1).flatten()
    order = OUTPUT.flatten().argsort(descending=True, stable=True)
    assert (torch.tensor(grey)[order].diff() >= 0).all()
    assert grey.min() > 0.5


def test_look_up_curves_are_those_given_with_their_cards(ax):
    angles = torch.tensor([0.0, 90.0, 180.0])
    curves = {"flat": angles * 0, "soft": angles / 2, "hard": angles}
    dot_product.lookup_curves(ax, angles, curves, angles[:2], angles[1:])
    drawn = points(ax, colours.OUTPUT)
    assert drawn == [
        list(zip(angles.tolist(), curve.tolist(), strict=True))
        for curve in curves.values()
    ]
    assert points(ax, colours.V) == [[(0.0, 90.0), (90.0, 180.0)]]
    assert [t.get_text() for t in ax.get_legend().texts][:3] == list(curves)


def test_the_value_plane_holds_values_outputs_and_the_triangle(ax):
    dot_product.value_plane(ax, VALUES, OUTPUT, TOKENS)
    rounded = [(round(x, 5), round(y, 5)) for x, y in OUTPUT.tolist()]
    assert points(ax, colours.OUTPUT) == [rounded]
    assert points(ax, colours.V) == [[tuple(row) for row in VALUES.tolist()]]
    (triangle,) = ax.patches
    corners = {tuple(corner) for corner in triangle.get_xy().tolist()}
    assert corners == {tuple(row) for row in VALUES.tolist()}
    assert sorted(t.get_text() for t in ax.texts) == sorted(TOKENS * 2)


def test_every_run_is_a_point_and_the_bound_is_drawn(ax):
    dot_product.found_by_cycle(ax, RUNS)
    drawn = [y for line in ax.lines for y in line.get_ydata()]
    assert sorted(drawn) == sorted(run["found"] for run in RUNS)
    (bounds,) = ax.collections
    heights = [segment[0, 1] for segment in bounds.get_segments()]
    assert heights == pytest.approx([1, 1 / 2, 2 / 3])
    labels = [text.get_text() for text in ax.get_legend().texts]
    assert labels == [*dot_product.ARM_STYLES, "bound"]
