"""Pictures of figures: dense, light, honest in colour, cut between panels."""

import io

import numpy as np
import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from PIL import Image

from selfattn.plots.colours import K, Q
from selfattn.plots.showing import (
    DENSITY,
    cuts,
    in_few_colours,
    picture,
)


def opened(figure):
    png, size = picture(figure)
    image = Image.open(io.BytesIO(png))
    image.load()
    return image, size, len(png)


def three_panels():
    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes in figure.subplots(1, 3):
        axes.plot([1, 3, 2], color=Q, lw=4)
        axes.plot([2, 1, 3], color=K, lw=4)
        axes.set(title="a title", xlabel="along", ylabel="up")
    return figure


def test_a_picture_is_twice_as_dense_as_the_page_and_light():
    image, size, weight = opened(three_panels())
    assert image.size == pytest.approx(
        (DENSITY * size["width"], DENSITY * size["height"]), abs=1
    )
    assert image.info["dpi"] == pytest.approx((200, 200), abs=0.1)
    assert image.mode == "P" and weight < 40_000


def test_it_is_cut_where_nothing_is_between_its_panels():
    image, _, _ = opened(three_panels())
    places = [int(x) for x in image.info["panels"].split()]
    assert len(places) == 2
    pixels = np.asarray(image.convert("RGB"))
    assert (pixels[:, places] == 255).all()
    third = image.width / 3
    assert places == pytest.approx([third, 2 * third], abs=0.1 * third)


@pytest.mark.parametrize("of_all", ["legend", "title"])
def test_it_is_not_cut_through_what_is_for_all(of_all):
    figure = three_panels()
    if of_all == "title":
        figure.suptitle("one title over three panels")
    else:
        lines = figure.axes[0].lines
        figure.legend(lines, ["one", "other"], loc="outside lower center")
    image, _, _ = opened(figure)
    assert "panels" not in image.info


def test_a_scale_of_colours_stays_with_its_panel():
    figure = Figure(figsize=(6, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    shown = left.imshow([[0, 1], [1, 0]], cmap="Greys")
    figure.colorbar(shown, ax=left)
    right.plot([1, 2])
    image, _, _ = opened(figure)
    assert len(image.info["panels"].split()) == 1


def test_common_colours_are_kept_and_a_pixel_changes_itself_alone():
    rng = np.random.default_rng(0)
    pixels = np.full((200, 300, 3), 255, np.uint8)
    pixels[50:150, 50:150] = (0, 114, 178)
    edges = rng.integers(0, 4, 300) * 60 + 5
    pixels[20, :, 0] = pixels[20, :, 1] = edges
    few = np.asarray(in_few_colours(pixels).convert("RGB"))
    apart = np.abs(few.astype(int) - pixels)
    assert apart[50:150].max() == 0 and apart.max() <= 17
    other = pixels.copy()
    other[20, 7, 0] += 40
    again = np.asarray(in_few_colours(other).convert("RGB"))
    changed = (again != few).any(axis=-1)
    assert changed.sum() == 1 and changed[20, 7]


def test_more_colours_than_a_byte_has_are_fewer_or_all_there():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (90, 90, 3)).astype(np.uint8)
    image = in_few_colours(pixels)
    few = np.asarray(image.convert("RGB")).astype(int)
    assert np.abs(few - pixels).max() <= 34


def test_nothing_is_cut_without_a_gap():
    pixels = np.full((10, 100, 3), 255, np.uint8)
    assert cuts(pixels, [(0.0, 40.0), (60.0, 100.0)]) == [50]
    pixels[:, 40:60:4] = 0
    assert cuts(pixels, [(0.0, 40.0), (60.0, 100.0)]) == []


def test_a_figure_keeps_the_canvas_that_it_had():
    """It got another, and the window that it was shown in was lost."""
    figure = Figure()
    figure.subplots()
    own = FigureCanvasSVG(figure)
    picture(figure)
    assert figure.canvas is own
