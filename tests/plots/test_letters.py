"""No letter of a figure is smaller than nine points: twelve pixels.

On a phone those of seven and eight points could not be read.
"""

import ast
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEAST = 9  # points
SIZES = {"fontsize", "labelsize", "size"}


def small(text):
    """Each size of letters that a program sets, if it is below the least."""
    return [
        word.value.value
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
        for word in call.keywords
        if word.arg in SIZES and isinstance(word.value, ast.Constant)
        if is_small(word.value.value)
    ]


def is_small(size):
    """Whether a size, in words or in points, is below the least."""
    if isinstance(size, str):
        return "small" in size
    return isinstance(size, int | float) and size < LEAST


def test_small_letters_are_seen():
    told = small("a(fontsize=8)\nb(labelsize='small', fontsize=9)\nc(size=3)")
    assert told == [8, "small", 3]


@pytest.mark.parametrize("path", sorted(ROOT.glob("src/selfattn/plots/*.py")))
def test_no_plot_sets_small_letters(path):
    assert small(path.read_text("utf-8")) == []


def test_no_notebook_sets_small_letters():
    cells = {
        cell["id"]: "".join(cell["source"])
        for path in ROOT.glob("book/**/*.ipynb")
        for cell in json.loads(path.read_text("utf-8"))["cells"]
        if cell["cell_type"] == "code"
    }
    drawn = {name: text for name, text in cells.items() if "fontsize" in text}
    assert {name: small(text) for name, text in drawn.items()} == {
        name: [] for name in drawn
    }
