"""The figures on heads hold the numbers that they were given."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from selfattn.plots import colours, multihead

LOOKUPS = [
    {"arm": arm, "seed": seed, "next": share, "previous": share / 2}
    for arm, share in (("1 head", 0.2), ("2 heads", 1.0))
    for seed in range(5)
]
REPEATS = [
    {
        f"{kind} {layer}.{head}": size + head / 100 + seed / 1000
        for kind, size in (("before", 0.1), ("after", 0.5))
        for layer in (1, 2)
        for head in (1, 2, 3)
    }
    for seed in range(5)
]


@pytest.fixture
def ax():
    return Figure().subplots()


def test_each_cell_has_its_tokens_colour(ax):
    rows = [["the 1", "the 2"], ["cat 1", "sat 2"]]
    tokens = ["the", "cat", "sat"]
    assert multihead.owners(ax, rows, tokens, "t") is ax
    shown = {text.get_text(): text for text in ax.texts}
    assert set(shown) == {"the 1", "the 2", "cat 1", "sat 2"}
    assert shown["sat 2"].get_position() == (1, 1)
    for text, colour in zip(
        ("the 2", "cat 1", "sat 2"), multihead.TOKEN_COLOURS, strict=True
    ):
        box = shown[text].get_bbox_patch()
        assert to_hex(box.get_facecolor()).upper() == colour


def test_every_run_is_a_point_for_each_digit(ax):
    assert multihead.found_by_arm(ax, LOOKUPS) is ax
    following, previous, guess = ax.lines
    assert following.get_ydata().tolist() == [r["next"] for r in LOOKUPS]
    assert previous.get_ydata().tolist() == [r["previous"] for r in LOOKUPS]
    assert following.get_xdata().round().tolist() == [0] * 5 + [1] * 5
    assert to_hex(following.get_color()).upper() == colours.Q
    assert set(guess.get_ydata()) == {0.1}
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert names == ["1 head", "2 heads"]


def test_every_head_of_every_run_is_a_point(ax):
    assert multihead.looks_of_heads(ax, REPEATS) is ax
    for layer, line in zip((1, 2), ax.lines, strict=True):
        expected = {
            (run[f"before {layer}.{head}"], run[f"after {layer}.{head}"])
            for run in REPEATS
            for head in (1, 2, 3)
        }
        assert {tuple(point) for point in line.get_xydata()} == expected
    labels = [text.get_text() for text in ax.get_legend().texts]
    assert labels == ["heads of layer 1", "heads of layer 2"]
