"""The chain's own tests: what is broken, on a copy, turns it red.

Those of the labs' arithmetic and of the exercises stand with their other
tests, in test_labs.py and test_doctor.py.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from guards import cells, contents, prose, source
from guards.claims import ledger_breaks
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.build import notebooks
from tools.verify.slowest import seconds, too_slow

ROOT = Path(__file__).parent.parent
ALT = "A straight line that climbs from one at the left to two at the right."
FIGURE = {"mystnb": {"image": {"alt": ALT, "classes": "dark-light"}}}
LAB = """\
class Lab(anywidget.AnyWidget):
    _esm = "export default {render() {}}"
    d_k = traitlets.Int(2).tag(sync=True)

    def __repr__(self):
        return "Lab()"


Lab()"""


def small_notebook():
    """One of everything that a chapter has, not executed, without ids."""
    book = new_notebook()
    book.cells = [
        new_markdown_cell("# A page\n\nA third of 1 is about .333."),
        new_code_cell(
            "import anywidget\n"
            "import matplotlib.pyplot as plt\n"
            "import traitlets"
        ),
        new_code_cell('print("a")\nprint("b")\n1 / 3'),
        new_code_cell(
            "_, ax = plt.subplots(figsize=(2, 1))\nax.plot([1, 2])\nNone",
            metadata=FIGURE,
        ),
        new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]}),
        new_code_cell(LAB),
        new_code_cell("2 / 3"),
    ]
    for cell in book.cells:
        del cell["id"]
    book.nbformat_minor = 4
    return book


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The path of a small notebook after `make notebooks`."""
    path = tmp_path_factory.mktemp("written") / "small.ipynb"
    nbformat.write(small_notebook(), path)
    notebooks.write(path)
    return path


@pytest.fixture
def notebook(written):
    """A copy of the written notebook, to be broken."""
    return nbformat.read(written, as_version=4)


GUARDS = [
    cells.not_executed,
    cells.unexpected_errors,
    cells.machine_traces,
    cells.holes,
    cells.badly_written,
    cells.hidden_without_need,
    cells.undescribed_figures,
    cells.stored_modules,
    cells.odd_metadata,
    prose.unheld_numbers,
    prose.dead_markup,
]


def red(notebook):
    """The names of the guards that find something."""
    return [guard.__name__ for guard in GUARDS if guard(notebook)]


def test_nothing_is_red_before_something_is_broken(written, notebook):
    assert red(notebook) == []
    assert cells.not_as_written(written) == []
    assert cells.too_many_ignored([notebook]) == []


# The writer


def test_writing_twice_writes_the_same_bytes(written, tmp_path):
    again = tmp_path / "small.ipynb"
    shutil.copy(written, again)
    notebooks.write(again)
    assert again.read_bytes() == written.read_bytes()


def test_a_failing_cell_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "bad.ipynb"
    book = new_notebook(cells=[new_code_cell("1"), new_code_cell("1 / 0")])
    nbformat.write(book, path)
    before = path.read_bytes()
    ran = subprocess.run(
        [sys.executable, "-m", "tools.build.notebooks", path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert f"cell 1 ({book.cells[1].id}) did not finish" in ran.stderr
    assert "ZeroDivisionError" in ran.stderr
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_heavy_figure_is_refused(notebook, monkeypatch):
    monkeypatch.setattr(notebooks, "LARGEST_PNG", 100)
    with pytest.raises(notebooks.NotebookError, match="may weigh 100 bytes"):
        notebooks.check_sizes(notebook)


# Outputs, compared by nbval


def change_a_number(book):
    [output] = [o for o in book.cells[2].outputs if "data" in o]
    assert output.data["text/plain"] == "0.3333333333333333"
    output.data["text/plain"] = "0.3333333333333334"


def clear_an_output(book):
    book.cells[6].outputs = []


def drop_an_error(book):
    book.cells[4].source = "1 / 1"


def lose_a_figure(book):
    book.cells[3].outputs = []


BREAKS = {
    "Cell 1": change_a_number,
    "Cell 2": lose_a_figure,
    "Cell 3": drop_an_error,
    "Cell 5": clear_an_output,
}


@pytest.fixture(scope="module")
def compared(written):
    """Which cells nbval finds red: in the notebook, in a broken copy."""
    book = nbformat.read(written, as_version=4)
    for change in BREAKS.values():
        change(book)
    broken = written.with_name("broken.ipynb")
    nbformat.write(book, broken)
    report = written.with_name("report.xml")
    flags = ["--nbval", "--nbval-current-env", "-q", f"--junitxml={report}"]
    flags += ["-c", ROOT / "pyproject.toml", f"--rootdir={written.parent}"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *flags, written, broken],
        capture_output=True,
        check=False,
    )
    red = {written.name: [], broken.name: []}
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None:
            red[case.attrib["classname"]].append(case.attrib["name"])
    return red


def test_the_written_notebook_is_green(compared):
    assert compared["small.ipynb"] == []


@pytest.mark.parametrize("cell", BREAKS)
def test_a_changed_output_is_red(compared, cell):
    assert cell in compared["broken.ipynb"]


def test_the_cells_left_alone_are_green(compared):
    assert set(compared["broken.ipynb"]) == set(BREAKS)


# Green, but nothing compared


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
        (store_a_module, "stored_modules"),
        (use_another_kernel, "odd_metadata"),
        (repeat_an_id, "odd_metadata"),
        (keep_the_times_of_a_run, "odd_metadata"),
        (set_source(0, "A third is about .334."), "unheld_numbers"),
        (set_source(0, "Of 12 things"), "unheld_numbers"),
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
        set_tags(2, "nbval-ignore-output", reason="it is random"),
        set_source(0, "About .33, 33 % and 1/3, see section 9.3."),
        set_source(0, ":::{note}\nIn 2017, $x = 7.5$ and `12`.\n:::"),
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


def test_a_slow_notebook_is_red(tmp_path):
    report = tmp_path / "report.xml"
    case = '<testcase classname="book.slow.ipynb" name="Cell 0" time="{}"/>'
    report.write_text(f"<a>{case.format(31.0)}{case.format(30.0)}</a>")
    assert too_slow(seconds(report))
    report.write_text(f"<a>{case.format(30.0)}{case.format(29.0)}</a>")
    assert too_slow(seconds(report)) == []


# The tree


@pytest.fixture
def tree(tmp_path):
    """A small book with a chapter, its module and its test."""
    for name in (
        "book/intro.md",
        "book/masks.ipynb",
        "src/selfattn/masks.py",
        "tests/test_masks.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    contents_file = tmp_path / "_toc.yml"
    contents_file.write_text(
        "root: book/intro\nparts: [{chapters: [{file: book/masks}]}]\n"
    )
    assert contents.orphans(tmp_path) == contents.three_places(tmp_path) == []
    return tmp_path


@pytest.mark.parametrize("name", ["book/masks.ipynb", "book/intro.md"])
def test_a_listed_page_that_is_missing_is_red(tree, name):
    (tree / name).unlink()
    assert len(contents.orphans(tree)) == 1


def test_an_unlisted_page_is_red(tree):
    (tree / "book/lost.ipynb").touch()
    assert contents.orphans(tree) == ["book/lost: in no table of contents"]


@pytest.mark.parametrize(
    "name", ["src/selfattn/masks.py", "tests/test_masks.py"]
)
def test_a_chapter_without_module_or_test_is_red(tree, name):
    (tree / name).unlink()
    assert len(contents.three_places(tree)) == 1


# Claims


@pytest.fixture
def claims(tmp_path):
    """A copy of the ledger and of its tests, to be broken."""
    shutil.copytree(ROOT / "book" / "claims", tmp_path / "ledger")
    shutil.copytree(
        ROOT / "tests" / "claims",
        tmp_path / "tests",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    ledger = tmp_path / "ledger" / "dot_product.toml"
    tests = tmp_path / "tests" / "test_dot_product.py"

    def broken(path, old, new):
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), "utf-8")
        return ledger_breaks(ledger.parent, tests.parent)

    assert ledger_breaks(ledger.parent, tests.parent) == []
    return ledger, tests, broken


def test_a_renamed_test_is_red(claims):
    _, tests, broken = claims
    assert broken(tests, "def test_the_shapes(", "def test_shapes(")


def test_an_edited_verdict_is_red(claims):
    ledger, _, broken = claims
    wrong, holds = 'verdict = "wrong"', 'verdict = "holds"'
    assert broken(ledger, wrong, holds)


def test_a_verdict_edited_in_the_test_is_red(claims):
    _, tests, broken = claims
    assert broken(tests, '"004-028", "wrong"', '"004-028", "holds"')


def test_a_row_without_test_and_reason_is_red(claims):
    ledger, _, broken = claims
    assert broken(ledger, 'reason = "convention"\n', "")


def test_a_reason_of_ones_own_is_red(claims):
    ledger, _, broken = claims
    assert broken(ledger, 'reason = "convention"', 'reason = "no time"')


def test_a_dropped_row_is_red(claims):
    ledger, _, broken = claims
    assert broken(ledger, 'id = "004-028"', 'id = "004-999"')


def test_a_test_that_settles_nothing_any_more_is_red(claims):
    _, tests, broken = claims
    assert broken(tests, '@settles("004-028", "wrong")\n', "")


# Style


@pytest.fixture
def package(tmp_path):
    """A package with one good module, to which others are added."""
    (tmp_path / "efficient").mkdir()

    def red_with(name, text):
        (tmp_path / name).write_text(text, "utf-8")
        guards = (
            source.too_long,
            source.asserts,
            source.undocumented,
            source.named_badly,
            source.imports_backwards,
            source.without_header,
        )
        return [guard.__name__ for guard in guards if guard(tmp_path)]

    good = '"""Masks."""\n\nimport torch\n\n\ndef full():\n    """All."""\n'
    assert red_with("masks.py", good) == []
    return red_with


LONG = '"""M."""\n\n\ndef f():\n    """F."""\n' + "    x = 1\n" * 30
HEADER = '"""M.\n\nComputes:  x\nTime: x\nSupports: x\nReference: x\n"""\n'


@pytest.mark.parametrize(
    ("name", "text", "guard"),
    [
        ("layers.py", LONG, "too_long"),
        ("layers.py", '"""M."""\n' + "x = 1\n" * 201, "too_long"),
        ("layers.py", '"""M."""\nassert True\n', "asserts"),
        ("layers.py", '"""M."""\ndef f(): ...\n', "undocumented"),
        ("layers.py", "x = 1\n", "undocumented"),
        ("layers.py", '"""M."""\nattn = 1\n', "named_badly"),
        ("utils.py", '"""M."""\n', "named_badly"),
        ("strange.py", '"""M."""\n', "imports_backwards"),
        (
            "dot_product.py",
            '"""M."""\nfrom selfattn.layers import x\n',
            "imports_backwards",
        ),
        (
            "efficient/flash.py",
            HEADER + "from selfattn.efficient.window import x\n",
            "imports_backwards",
        ),
        (
            "efficient/flash.py",
            HEADER.replace("Supports", "Takes"),
            "without_header",
        ),
    ],
)
def test_a_breach_of_style_is_red(package, name, text, guard):
    assert guard in package(name, text)


def test_a_test_that_takes_any_error_is_red(tmp_path):
    wide = "with pytest.raises(" + "Exception):\n    f()\n"
    (tmp_path / "test_x.py").write_text(wide)
    assert source.weak_tests(tmp_path)
    (tmp_path / "test_x.py").write_text("assert True\n")
    assert source.weak_tests(tmp_path) == []
