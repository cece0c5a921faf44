"""Guards on every page: "green, but nothing compared" cannot happen."""

from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from guards import ON_A_NOTEBOOK, cells, contents, headings

from tools.build.notebooks import WIDGET_VIEW, in_contents

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = in_contents(ROOT)


def read(path):
    return nbformat.read(path, as_version=4)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.mark.parametrize(
    "guard",
    ON_A_NOTEBOOK,
    ids=lambda guard: guard.__name__,
)
def test_a_notebook_keeps_the_rules(path, guard):
    assert guard(read(path)) == []


def test_a_notebook_is_written_by_the_one_command(path):
    assert cells.not_as_written(path) == []


def test_what_there_is_to_see_is_told_right_behind_its_picture(path):
    """Twice another cell stood between them, with its code and its table."""
    parted = [
        cell.id
        for before, cell in pairwise(read(path).cells)
        if cell.source.startswith("*What to see")
        and not any(
            {"image/png", "image/svg+xml"} & {*output.get("data", {})}
            for output in before.get("outputs", [])
        )
    ]
    assert parted == []


def test_no_table_in_sight_gives_a_predicted_picture_away(path):
    """The fold of a question ends with the words after its picture."""
    cells = read(path).cells
    in_sight = [
        table.id
        for asked, _, told, table in zip(
            cells, cells[1:], cells[2:], cells[3:], strict=False
        )
        if asked.source.split("\n\n")[-1].startswith("> **Predict.**")
        and told.source.startswith("*What to see")
        and "\n#" not in told.source
        and table.get("outputs")
    ]
    assert in_sight == []


def test_what_is_held_elsewhere_is_still_stated():
    stated = {
        (cell.id, number)
        for path in NOTEBOOKS
        for cell in read(path).cells
        for number, _ in headings.stated(cell)
    }
    listed = headings.listed()
    assert {(cell, x) for cell in listed for x in listed[cell]} <= stated


def test_nearly_every_output_is_compared():
    assert cells.too_many_ignored([read(path) for path in NOTEBOOKS]) == []


@pytest.mark.parametrize(
    "guard",
    [contents.orphans, contents.three_places],
    ids=lambda guard: guard.__name__,
)
def test_the_tree_keeps_the_rules(guard):
    assert guard(ROOT) == []


def test_there_is_a_notebook():
    assert NOTEBOOKS


def test_a_labs_cell_is_folded(path):
    """How the lab is made stood open in eight chapters of the others."""
    for cell in read(path).cells:
        outputs = cell.get("outputs", ())
        if any(WIDGET_VIEW in output.get("data", {}) for output in outputs):
            assert cells.HIDDEN & cells.tags(cell), cell.id


def test_how_far_the_past_moved_stands_in_one_column():
    """1.7 stood under nan, and 1.2e+02 under it, none under another."""
    [masks] = [path for path in NOTEBOOKS if path.stem == "masks"]
    texts = [
        output.text
        for cell in read(masks).cells
        for output in cell.get("outputs", [])
        if "past moved by" in output.get("text", "")
    ]
    [table] = [text for text in texts if "future" in text]
    numbers = [line.rpartition("by ")[2] for line in table.splitlines()]
    assert {len(number) for number in numbers} == {5}
    points = {number.find(".") for number in numbers if "nan" not in number}
    assert points == {3}
