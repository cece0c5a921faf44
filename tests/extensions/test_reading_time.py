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
HIDDEN = {"tags": ["hide-input"]}
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
    assert first_reading.first_minutes(notebook) == 401 / 200 + 24 / 12


def test_everything_counts_folds_exercises_and_hidden_code():
    notebook = new_notebook(cells=CELLS)
    said = 400 + 1 + 200 + 200 + 3
    code = 2 + 6 * 12
    wanted = said / 200 + code / 12
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
    assert first_reading.first_minutes(notebook) == 1 / 12


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
