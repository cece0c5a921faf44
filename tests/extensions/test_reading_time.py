"""How long a chapter takes to read, measured and told on its page."""

import first_reading
import nbformat
import pytest
from nbformat.v4 import (
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_output,
)
from reading import in_words
from small_book import built

PRINTS = new_output("stream", text="1\n")
HIDDEN, AWAY = {"tags": ["hide-input"]}, {"tags": ["hide-cell"]}
WIDGET = first_reading.WIDGET


def shown(*kinds):
    """An output of these kinds, as a figure or a lab has."""
    return new_output("display_data", data=dict.fromkeys(kinds, "x"))


CELLS = [
    new_markdown_cell("# Masks\n\n" + "word " * 399),
    new_code_cell("import torch\n\nimport numpy"),
    new_code_cell("from torch import nn\n" * 12),
    new_markdown_cell("## Seen"),
    new_code_cell("print(1)\n\n" * 12, outputs=[PRINTS]),
    new_code_cell("import torch\n" * 12),
    new_code_cell("x\n" * 12, metadata=HIDDEN),
    new_markdown_cell("## Folded (second reading)\n\n" + "word " * 197),
    new_code_cell("x\n" * 12),
    new_markdown_cell("## Exercises\n\n" + "word " * 199),
    new_code_cell("x\n" * 12),
    new_markdown_cell("### Solution\n\nIt is."),
]


def test_a_first_reading_counts_what_is_seen():
    notebook = new_notebook(cells=CELLS)
    code = list(first_reading.visible_code(notebook))
    assert [cell.id for cell in code] == [CELLS[4].id, CELLS[5].id]
    # 399 words and a title of one, and one of another; 24 lines
    assert first_reading.reading_alone(notebook) == 401 / 200 + 24 / 12
    # and what is printed once
    wanted = 401 / 200 + 24 / 12 + 10 / 60
    assert first_reading.first_minutes(notebook) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [
        (new_code_cell("x", outputs=[PRINTS, PRINTS]), 10),
        (new_code_cell("x", outputs=[PRINTS], metadata=HIDDEN), 10),
        (new_code_cell("x", outputs=[shown("image/png"), PRINTS]), 20),
        (new_code_cell("x", outputs=[shown("image/svg+xml")]), 20),
        (new_code_cell("x", outputs=[shown("image/png", WIDGET)]), 120),
        (new_code_cell("x", outputs=[PRINTS], metadata=AWAY), 0),
        (new_markdown_cell("> **Predict.** Is it?\n\n> No."), 20),
        (new_markdown_cell("## Predict: a row"), 0),
    ],
    ids=[
        "prints",
        "folds",
        "draws",
        "lines",
        "lab",
        "away",
        "predict",
        "heading",
    ],
)
def test_what_is_looked_at_or_guessed_takes_time(cell, seconds):
    notebook = new_notebook(cells=[cell])
    alone = first_reading.reading_alone(notebook)
    seen = first_reading.first_minutes(notebook) - alone
    assert seen * 60 == pytest.approx(seconds)


def test_what_a_second_reading_shows_takes_no_time_at_first():
    cells = [new_markdown_cell("## More (second reading)"), CELLS[4]]
    notebook = new_notebook(cells=cells)
    assert first_reading.first_minutes(notebook) == 0
    # three words and 12 lines, and what is printed
    wanted = 3 / 200 + 12 / 12 + 10 / 60
    assert first_reading.all_minutes(notebook) == pytest.approx(wanted)


def test_everything_counts_folds_exercises_and_hidden_code():
    notebook = new_notebook(cells=CELLS)
    said = 400 + 1 + 200 + 200 + 3
    code = 2 + 6 * 12
    wanted = said / 200 + code / 12 + 10 / 60
    assert first_reading.all_minutes(notebook) == pytest.approx(wanted)


@pytest.mark.parametrize(
    "cell",
    [
        new_code_cell("import torch", outputs=[PRINTS]),
        new_code_cell("x = 1"),
    ],
    ids=["prints", "computes"],
)
def test_a_first_cell_that_is_not_folded_is_counted(cell):
    notebook = new_notebook(cells=[cell])
    assert first_reading.reading_alone(notebook) == 1 / 12


def test_both_are_told_and_one_where_they_are_the_same():
    both = "About 28 minutes at first reading, 74 with everything"
    assert in_words(28, 74, 0) == f"{both}."
    assert in_words(28, 74, 1) == f"{both}; 1 exercise."
    assert in_words(28, 74, 4) == f"{both}; 4 exercises."
    assert in_words(28, 28, 0) == "About 28 minutes."


def test_they_stand_under_the_title(tmp_path):
    lexer = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    notebook = nbformat.writes(new_notebook(cells=CELLS, metadata=lexer))
    (page,) = built(
        tmp_path,
        {"chapter.ipynb": notebook},
        ["chapter"],
        extensions=["myst_nb", "reading"],
        nb_execution_mode="off",
    )
    told = page.select_one("h1 + p.reading-time").get_text()
    wanted = (
        "About 5 minutes at first reading, 11 with everything; 1 exercise."
    )
    assert told == wanted
