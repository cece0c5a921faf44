"""Outputs that were changed turn red: nbval compares them."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]


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
