"""A figure on a phone: as wide as that is, with letters as large as before."""

import io
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from selfattn.plots.blocks import Arrow, flow
from selfattn.plots.phone import WIDTH, copied, grid, on_a_phone
from selfattn.plots.showing import DENSITY, NARROW, PHONE, picture


def wide(**labels):
    figure = Figure(figsize=(6.6, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot([1, 3, 2], label="some of it")
    axes.plot([2, 1, 3], label="the rest of it, said in many words")
    axes.legend(loc="upper left")
    axes.set(**labels)
    return figure


def table(rows, columns, **options):
    figure = Figure(figsize=(6.6, 3), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for place, one in enumerate(axes.flat):
        one.plot([place, place + 1])
    return figure, axes


def carried(figure, **options):
    with Image.open(io.BytesIO(picture(figure, **options)[0])) as image:
        image.load()
        return image.private_chunks


def drawn_from(figure):
    figure.draw_without_rendering()
    return figure


def test_a_wide_one_carries_one_that_a_phone_can_show():
    [[name, data]] = carried(wide())
    assert name == PHONE
    with Image.open(io.BytesIO(data)) as image:
        assert image.width <= NARROW * DENSITY
        assert image.info["dpi"] == pytest.approx((200, 200), abs=0.1)


def test_a_narrow_one_and_a_labs_still_carry_none():
    narrow = Figure(figsize=(3.4, 3), layout="constrained")
    narrow.subplots().plot([1, 2])
    assert carried(narrow) == []
    assert carried(wide(), phone=False) == []


def test_letters_are_as_large_and_the_figure_stays_as_it_is():
    figure = wide(xlabel="along", title="a title")
    before = picture(figure)
    phone = on_a_phone(figure)
    assert phone.get_figwidth() == WIDTH
    [now] = phone.axes
    [was] = figure.axes
    for one in ("xaxis", "yaxis"):
        sizes = [
            text.get_fontsize()
            for axes in (was, now)
            for text in (getattr(axes, one).label, axes.get_xticklabels()[0])
        ]
        assert sizes[:2] == sizes[2:]
    assert was.get_legend() is not None
    assert picture(figure) == before


def test_pyplot_shows_no_figure_more():
    figure, _ = plt.subplots()
    copy = copied(figure)
    try:
        assert plt.get_fignums() == [figure.number]
        assert copy is not figure
        assert figure.canvas.manager is not None
    finally:
        plt.close(figure)


def test_a_legend_stands_below_where_it_hides_no_line():
    phone = drawn_from(on_a_phone(wide(xlabel="along")))
    [axes], [legend] = phone.axes, phone.legends
    assert axes.get_legend() is None
    said = [text.get_text() for text in legend.texts]
    assert said == ["some of it", "the rest of it, said in many words"]
    under = axes.xaxis.label.get_window_extent().y0
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.y1 < under
    assert box.x1 <= phone.bbox.width


def test_legends_that_differ_stay_with_their_panels():
    figure, axes = table(2, 1)
    for one, name in zip(axes.flat, ("one", "other"), strict=True):
        one.lines[0].set_label(name)
        one.legend()
    phone = on_a_phone(figure)
    assert phone.legends == []
    assert all(one.get_legend() for one in phone.axes)


@pytest.mark.parametrize(
    ("shape", "now"),
    [((1, 3), (3, 1)), ((1, 2), (2, 1)), ((2, 3), (3, 2)), ((2, 4), (4, 2))],
)
def test_panels_stand_below_each_other_in_their_order(shape, now):
    """A table cut into its columns came in an order that misled."""
    figure, axes = table(*shape)
    for place, one in enumerate(axes.flat):
        one.set_title(f"panel {place}")
    rows = grid(on_a_phone(figure))
    assert (len(rows), len(rows[0])) == now
    titles = [one.get_title() for row in rows for one in row]
    assert titles == [f"panel {place}" for place in range(len(titles))]


def test_each_row_and_column_is_told_what_it_is():
    """What the outer panels alone had said, no longer stood beside others."""
    figure, axes = table(2, 4, sharex=True, sharey=True)
    for place, one in enumerate(axes[0]):
        one.set_title(f"kind {place}")
    for place, row in enumerate(axes):
        row[0].set_ylabel(f"error of row {place}")
    for one in axes[-1]:
        one.set_xlabel("operations")
    rows = grid(drawn_from(on_a_phone(figure)))
    assert [[one.get_title() for one in row] for row in rows] == [
        ["kind 0", "kind 1"],
        ["kind 2", "kind 3"],
    ] * 2
    first = [row[0].get_ylabel().replace("\n", " ") for row in rows]
    assert first == ["error of row 0"] * 2 + ["error of row 1"] * 2
    assert {row[1].get_ylabel() for row in rows} == {""}
    assert [one.get_xlabel() for one in rows[-1]] == ["operations"] * 2
    numbers = [text for row in rows for text in row[0].get_yticklabels()]
    assert all(text.get_visible() for text in numbers)


def test_names_that_reach_into_each_other_are_turned():
    figure = Figure(figsize=(9, 3), layout="constrained")
    names = ["said in\nso many words", "the second of\nthem", "a third"] * 3
    figure.subplots().bar(range(9), range(9), tick_label=names)
    [axes] = drawn_from(on_a_phone(figure)).axes
    labels = axes.get_xticklabels()
    assert {label.get_rotation() for label in labels} == {90}
    boxes = [label.get_window_extent() for label in labels]
    boxes.sort(key=lambda box: box.x0)
    assert all(a.x1 <= b.x0 for a, b in pairwise(boxes))
    assert labels[0].get_text() == "said in so many words"


def test_long_names_break_and_none_is_cut_off():
    long = "what is measured along this axis, in words of some length"
    phone = on_a_phone(wide(xlabel=long, ylabel=long, title=long))
    png = carried(wide(xlabel=long, ylabel=long, title=long))[0][1]
    [axes] = phone.axes
    for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
        assert text.get_text().replace("\n", " ") == long
    with Image.open(io.BytesIO(png)) as image:
        assert image.width <= NARROW * DENSITY


def test_a_row_of_boxes_becomes_a_column():
    names = ["x", "norm", "attention", "+", "y"]
    arrows = [Arrow(a, b, (2, 5, 48)) for a, b in pairwise(names)]
    arrows.append(Arrow("x", "+", bend=-0.35))
    figure = Figure(figsize=(9, 1.8))
    flow(
        figure.subplots(),
        {n: (2.0 * i, 0.0) for i, n in enumerate(names)},
        arrows,
    )
    phone = drawn_from(on_a_phone(figure))
    [axes] = phone.axes
    boxes = {t.get_text(): t.get_window_extent() for t in axes.texts}
    places = [boxes[name] for name in names]
    assert [box.y0 for box in places] == sorted(box.y0 for box in places)
    assert np.ptp([(box.x0 + box.x1) / 2 for box in places]) < 1
    for box in boxes.values():
        assert box.x0 >= 0 and box.x1 <= phone.bbox.width
