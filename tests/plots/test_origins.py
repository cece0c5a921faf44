"""The figures on origins hold the numbers that they were given."""

import pytest
import torch
from matplotlib.figure import Figure

from selfattn.plots import origins

RUNS = [
    {
        "arm": arm,
        "question": question,
        "size": size,
        "right 300": right + size / 10_000,
    }
    for arm, right in zip(origins.NETWORKS, (0.5, 0.6, 0.7), strict=True)
    for question in ("pattern", "place")
    for size in (64, 256)
    for _ in range(5)
]


@pytest.fixture
def ax():
    return Figure().subplots()


def test_every_distance_of_every_network_is_drawn_and_nothing_is_little(ax):
    curves = {"one": [1.0, 0.5, 0.0], "other": [1.0, 1.0, 1.0]}
    assert origins.by_distance(ax, curves) is ax
    drawn = [line.get_ydata().tolist() for line in ax.lines]
    assert drawn == [[1.0, 0.5, origins.LEAST], [1.0, 1.0, 1.0]]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["one", "other"]
    looks = {(line.get_color(), line.get_linestyle()) for line in ax.lines}
    assert len(looks) == 2


def test_an_alignment_has_a_row_for_what_is_written(ax):
    weights = torch.rand(2, 5)
    assert origins.alignment(ax, weights, "3 May", "05") is ax
    assert ax.images[0].get_array().tolist() == pytest.approx(
        weights.double().numpy()
    )
    assert [t.get_text() for t in ax.get_xticklabels()] == list("3 May")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0", "5"]


def test_every_run_of_a_question_is_a_point_beside_its_size(ax):
    origins.by_examples(ax, RUNS, question="place", steps=300)
    assert ax.get_title() == "place"
    for part, right in zip(ax.collections, (0.5, 0.6, 0.7), strict=True):
        points = part.get_offsets()
        assert len(points) == 10
        assert all(
            abs(x / size - 1) < 0.15
            for (x, _), size in zip(points, [64] * 5 + [256] * 5, strict=True)
        )
        assert list(points[:, 1]) == pytest.approx(
            [right + 0.0064] * 5 + [right + 0.0256] * 5
        )
