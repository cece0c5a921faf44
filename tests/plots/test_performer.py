"""The figures on Performer hold the numbers that they were given."""

import pytest
from matplotlib.figure import Figure

from selfattn.plots import performer


def test_directions_are_as_large_as_what_they_give():
    ax = Figure().subplots()
    omega, parts = [[1.0, 2.0], [-0.5, 0.0], [0.0, -3.0]], [0.5, 2.0, 0.0]
    performer.directions(
        ax, omega, parts, [1.0, 0.0], [1.0, 1.5], title="a pair"
    )
    [dots] = ax.collections
    assert dots.get_offsets().tolist() == omega
    assert dots.get_sizes().tolist() == pytest.approx([67.0, 262.0, 2.0])
    q, k, both = (line.get_xydata().tolist() for line in ax.lines)
    assert q == [[0, 0], [1, 0]] and k == [[0, 0], [1, 1.5]]
    assert both == [[2.0, 1.5]]
    assert ax.get_title() == "a pair"
    assert [x.get_text() for x in ax.texts] == ["q", "k", "q + k"]


def test_a_strip_shows_every_run_and_the_median():
    ax = Figure().subplots()
    groups = {"first": [0.3, 0.1, 0.2], "second": [5.0, 1.0, 2.0]}
    performer.strip(ax, groups, label="loss")
    rows = [ax.lines[2 * i].get_xdata().tolist() for i in range(2)]
    assert rows == [[0.1, 0.2, 0.3], [1.0, 2.0, 5.0]]
    middles = [[*ax.lines[2 * i + 1].get_xdata()] for i in range(2)]
    assert middles == [[0.2, 0.2], [2.0, 2.0]]
    names = [x.get_text() for x in ax.get_yticklabels()]
    assert names == ["first", "second"]
    low, high = ax.get_ylim()
    assert low > high  # the first on top
    assert ax.get_xlabel() == "loss"
