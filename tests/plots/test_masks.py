"""The figures on masks hold the numbers that they were given."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from selfattn.masks import causal_mask
from selfattn.plots import colours, masks

RUNS = [
    {"arm": arm, "seed": seed, "read": read + seed, "served": 9.0}
    for arm, read in zip(masks.ARMS, (1, 2, 3, 4, 5, 0), strict=True)
    for seed in range(5)
]


@pytest.fixture
def ax():
    return Figure().subplots()


def test_a_mask_is_dark_where_it_allows(ax):
    mask = causal_mask(3, 5)
    assert masks.mask_grid(ax, mask, title="t") is ax
    (image,) = ax.images
    assert (image.get_array() == mask.numpy()).all()
    assert to_hex(image.cmap(1.0)).upper() == colours.NEUTRAL
    assert to_hex(image.cmap(0.0)) == "#ffffff"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("key", "query")


def test_every_run_is_a_point_and_none_is_below_the_edge(ax):
    assert masks.losses(ax, RUNS) is ax
    lines = [line for line in ax.lines if len(line.get_xdata()) == 5]
    assert len(lines) == 2 * len(masks.ARMS)
    assert lines[0].get_ydata().tolist() == [1, 2, 3, 4, 5]
    last_read = lines[-2].get_ydata().tolist()
    assert last_read == [masks.FLOOR, 1, 2, 3, 4]
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown == ["read", "served", "ln 2"]
