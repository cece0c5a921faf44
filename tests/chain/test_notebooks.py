"""Green, but nothing compared: a notebook in which that could be is red."""

import copy

import pytest
from guards import ON_A_NOTEBOOK, cells

from tools.build import notebooks


def red(notebook):
    """The names of the guards that find something."""
    return [guard.__name__ for guard in ON_A_NOTEBOOK if guard(notebook)]


def test_nothing_is_red_before_something_is_broken(written, notebook):
    assert red(notebook) == []
    assert cells.not_as_written(written) == []
    assert cells.too_many_ignored([notebook]) == []


def set_tags(place, *tags, **more):
    """A break: these tags, and more metadata, on one cell."""

    def change(book):
        book.cells[place].metadata.update(tags=list(tags), **more)

    return change


def set_source(place, text):
    """A break: other text in one cell."""

    def change(book):
        book.cells[place].source = text

    return change


def set_printed(text):
    """A break: other printed text, as if the cell had printed it."""

    def change(book):
        book.cells[2].outputs[0].text = text

    return change


def null_a_count(book):
    book.cells[2].execution_count = None


def swap_two_cells(book):
    book.cells[2], book.cells[3] = book.cells[3], book.cells[2]


def drop_the_alt_text(book):
    del book.cells[3].metadata["mystnb"]["image"]["alt"]


def describe_by_a_file_name(book):
    book.cells[3].metadata["mystnb"]["image"]["alt"] = "figure.png"


def describe_with_another_number(book):
    book.cells[3].metadata["mystnb"]["image"]["alt"] += " It ends at .82."


def state_a_number_under_another_heading(book):
    book.cells.append(copy.deepcopy(book.cells[0]))
    book.cells[-1].update(id="another", source="## Another\n\nAgain .333.")


def state_without_its_minus(book):
    book.cells[2].source = "-0.444"
    book.cells[0].source = "It falls to .444."


def drop_the_class(book):
    del book.cells[3].metadata["mystnb"]["image"]["classes"]


def show_the_figure_twice(book):
    book.cells[3].outputs *= 2


def use_another_kernel(book):
    book.metadata.kernelspec.name = "my-kernel"


def repeat_an_id(book):
    book.cells[2].id = book.cells[3].id


def keep_the_times_of_a_run(book):
    book.cells[2].metadata["execution"] = {"iopub.execute_input": "now"}


def tell_before_one_has_tried(book):
    """Of code that is to be mended the doctor says what helps."""
    book.cells[2].source = 'print("a")\ncheck(attend, exercise="masks/late")'
    book.cells[2].outputs = book.cells[2].outputs[:1]
    book.cells[2].outputs[0].text = "✗ masks/late: late\n  Hide before it.\n"


def answer_a_prediction(book):
    """A number that the reader was to find."""
    tell_before_one_has_tried(book)
    book.cells[2].outputs[0].text = "✓ masks/late: right\n3\n"


def store_a_module(book):
    state = book.metadata.widgets[notebooks.WIDGET_STATE]["state"]
    [lab] = [m for m in state.values() if m["model_name"] == "AnyModel"]
    lab["state"]["_esm"] = "export default {}"


@pytest.mark.parametrize(
    ("change", "guard"),
    [
        (null_a_count, "not_executed"),
        (swap_two_cells, "not_executed"),
        (set_tags(2, "nbval-skip"), "holes"),
        (set_tags(2, "skip-execution"), "holes"),
        (set_tags(2, "remove-output"), "holes"),
        (set_tags(2, "nbval-ignore-output"), "holes"),
        (set_source(2, "# NBVAL_IGNORE_OUTPUT\n1 / 3"), "holes"),
        (
            set_tags(2, "nbval-ignore-output", reason="it is random"),
            "folded_away",
        ),
        (set_tags(2, "hide-cell"), "folded_away"),
        (set_tags(2, "raises-exception"), "unexpected_errors"),
        (set_tags(4), "unexpected_errors"),
        (set_printed("/home/me/book.py"), "machine_traces"),
        (set_printed("<object at 0x7f32a1b2c3d0>"), "machine_traces"),
        (set_printed("it took 3.2 ms"), "machine_traces"),
        (set_printed("device='cuda'"), "machine_traces"),
        (set_source(1, "import torch\n\nx = 1"), "badly_written"),
        (set_source(2, "x = 1 / 3"), "badly_written"),
        (set_source(2, "1 / 3;"), "badly_written"),
        (set_source(2, "!pip install x"), "badly_written"),
        (set_source(2, "\n".join(["1 / 3"] * 16)), "badly_written"),
        (
            set_source(
                2, 'import warnings\nwarnings.filterwarnings("ignore")'
            ),
            "badly_written",
        ),
        (set_tags(2, "hide-input"), "hidden_without_need"),
        (drop_the_alt_text, "undescribed_figures"),
        (describe_by_a_file_name, "undescribed_figures"),
        (drop_the_class, "undescribed_figures"),
        (show_the_figure_twice, "undescribed_figures"),
        (tell_before_one_has_tried, "told_too_soon"),
        (answer_a_prediction, "told_too_soon"),
        (store_a_module, "stored_modules"),
        (use_another_kernel, "odd_metadata"),
        (repeat_an_id, "odd_metadata"),
        (keep_the_times_of_a_run, "odd_metadata"),
        (set_source(0, "A third is about .334."), "unheld_numbers"),
        (set_source(0, "Of 12 things"), "unheld_numbers"),
        (set_source(0, "It falls to −.333."), "unheld_numbers"),
        (describe_with_another_number, "unheld_numbers"),
        (state_a_number_under_another_heading, "far_numbers"),
        (state_without_its_minus, "far_numbers"),
        (set_source(0, "With $x = 7.5$ it is"), "far_numbers"),
        (set_source(0, "See {ref}`this`"), "dead_markup"),
        (set_source(0, "```python\n1 / 3\n```"), "dead_markup"),
        (set_source(0, "```{note}\nSo.\n```"), "dead_markup"),
        (set_source(0, ":::{margin}\nSo.\n:::"), "dead_markup"),
        (set_source(0, "![a picture](x.png)"), "dead_markup"),
        (set_source(0, "<img src='x.png'>"), "dead_markup"),
    ],
)
def test_a_break_turns_its_guard_red(notebook, change, guard):
    change(notebook)
    assert guard in red(notebook)


@pytest.mark.parametrize(
    "change",
    [
        set_source(0, "About .33, 33 % and 1/3, see section 9.3."),
        set_source(0, ":::{note}\nIn 2017, $x = .333$ and `12`.\n:::"),
        set_source(0, "{cite:t}`a2017` has {eq}`b`. Ten, 10, −3."),
    ],
)
def test_what_is_allowed_stays_green(notebook, change):
    change(notebook)
    assert red(notebook) == []


def test_a_number_may_say_why_no_cell_holds_it(notebook):
    notebook.cells[0].source = "Of 12 things"
    notebook.cells[0].metadata["numbers"] = {"12": "it is an idiom"}
    assert red(notebook) == []


@pytest.mark.parametrize(
    "text", ["○ masks/late: Not answered yet\n", "✗ masks/late: late\n"]
)
def test_an_exercise_says_nothing_before_one_has_tried(notebook, text):
    tell_before_one_has_tried(notebook)
    notebook.cells[2].outputs[0].text = text
    notebooks.normalise(notebook)
    assert "told_too_soon" not in red(notebook)
    hidden = notebook.cells[2].metadata.get("jupyter", {})
    assert bool(hidden) == text.startswith("✗")


def test_a_solution_may_be_folded_away(notebook):
    notebook.cells[0].source += "\n\n#### Solution"
    set_tags(2, "hide-cell")(notebook)
    assert red(notebook) == []


def test_a_printed_table_may_hide_its_code(notebook):
    set_tags(2, "hide-input")(notebook)
    set_printed("0.3")(notebook)
    assert "hidden_without_need" in red(notebook)
    set_printed("0.3\n0.3\n0.3\n0.3")(notebook)
    assert "hidden_without_need" not in red(notebook)


def test_too_many_uncompared_cells_are_red(notebook):
    set_tags(2, "nbval-ignore-output", reason="it is random")(notebook)
    assert cells.too_many_ignored([notebook])


def test_a_file_edited_by_hand_is_red(written, tmp_path):
    path = tmp_path / "small.ipynb"
    text = written.read_text("utf-8")
    path.write_text(
        text.replace('"name": "python3"', '"name": "mine"'), "utf-8"
    )
    assert cells.not_as_written(path)
