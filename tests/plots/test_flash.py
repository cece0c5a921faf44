"""The picture of the tiles shows each that is visited, and what it hides."""

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from selfattn.plots.flash import tiles


@pytest.mark.parametrize(("n", "block"), [(12, 3), (14, 7), (11, 5)])
def test_a_tile_is_lighter_exactly_where_a_part_is_hidden(n, block):
    ax = Figure().subplots()
    visited = tiles(ax, n=n, block_q=block, block_k=block, causal=True)
    shown = {}  # how dark each tile is, by its first query and key
    for patch in ax.patches:
        assert isinstance(patch, Rectangle)
        left, top = patch.get_xy()
        shown.setdefault((top, left), []).append(patch.get_alpha())
    numbers = [number for row in visited for number in row]
    assert numbers == list(range(1, len(numbers) + 1))
    for (top, left), shades in shown.items():
        rows = range(top, min(top + block, n))
        columns = range(left, min(left + block, n))
        hidden = sum(j > i for i in rows for j in columns)
        if hidden == len(rows) * len(columns):
            assert shades == [None]  # the frame alone
        else:
            assert shades[1:] == [0.25 if hidden else 0.55]
