"""Outputs that were changed turn red: nbval compares them."""

import base64
import io
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image, PngImagePlugin

from tools.verify.pictures import other_pictures

ROOT = Path(__file__).resolve().parents[2]


def change_a_number(book):
    [output] = [o for o in book.cells[2].outputs if "data" in o]
    assert output.data["text/plain"] == "0.3333333333333333"
    output.data["text/plain"] = "0.3333333333333334"


def clear_an_output(book):
    book.cells[6].outputs = []


def png(shade, rows=100):
    """A grey picture in base64."""
    grey = Image.fromarray(np.full((rows, 200), shade, dtype=np.uint8))
    file = io.BytesIO()
    grey.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def drop_an_error(book):
    book.cells[4].source = "1 / 1"


def show_another_figure(book):
    """A picture that another cell, or another day, has drawn."""
    [output] = [o for o in book.cells[3].outputs if "data" in o]
    output.data["image/png"] = png(shade=200)


BREAKS = {
    "Cell 1": change_a_number,
    "Cell 2": show_another_figure,
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
    flags = [
        "-p",
        "tools.verify.pictures",
        "--nbval",
        "--nbval-current-env",
        "-q",
        f"--junitxml={report}",
    ]
    flags += ["-c", ROOT / "pyproject.toml", f"--rootdir={written.parent}"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *flags, written, broken],
        cwd=ROOT,
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


def outputs(picture, alt="words"):
    """The outputs of a cell that shows a picture."""
    metadata = {"image/png": {"alt": alt}}
    return [{"data": {"image/png": picture}, "metadata": metadata}]


def test_rounding_on_an_edge_is_no_other_picture():
    assert other_pictures(outputs(png(100)), outputs(png(102))) == []


@pytest.mark.parametrize(
    "fresh",
    [
        outputs(png(160)),
        outputs(png(100, rows=101)),
        outputs(png(100), alt="other words"),
        [],
        outputs(png(100)) * 2,
    ],
)
def test_another_picture_is_red(fresh):
    assert other_pictures(fresh, outputs(png(100)))


EMPTY = {
    "Cell 1": "torch.testing.assert_close(a, a)",
    "Cell 2": "torch.testing.assert_close(0 * a, a - a.clone())",
    "Cell 3": "assert torch.allclose(a, a)",
    "Cell 4": "assert torch.equal(a, a)",
}
SOUND = [
    "torch.testing.assert_close(a, a.clone())",
    "assert torch.equal(a > 9, a > 10)",
    "assert not (0 * a).any()",
    "assert torch.allclose(0 * a, torch.zeros(3))",
]


def test_a_comparison_of_nothing_is_red(tmp_path):
    """Zeros beside zeros, and a tensor beside itself, prove nothing."""
    cells = ["import torch\n\na = torch.ones(3)", *EMPTY.values(), *SOUND]
    book = new_notebook(cells=[new_code_cell(source) for source in cells])
    nbformat.write(book, tmp_path / "empty.ipynb")
    report = tmp_path / "report.xml"
    flags = ["-p", "tools.verify.comparisons", "--nbval", "-q"]
    flags += ["--nbval-current-env", f"--junitxml={report}"]
    flags += ["-c", ROOT / "pyproject.toml", f"--rootdir={tmp_path}"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *flags, tmp_path / "empty.ipynb"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    cases = list(ElementTree.parse(report).iter("testcase"))
    assert len(cases) == len(cells)
    red = [c for c in cases if c.find("failure") is not None]
    assert [c.attrib["name"] for c in red] == list(EMPTY)


def carrying(shade):
    """A picture that carries another for a phone, in this shade of grey."""
    notes = PngImagePlugin.PngInfo()
    notes.add(b"phOn", base64.b64decode(png(shade)))
    return base64.b64encode(blank(notes)).decode()


def blank(notes=None):
    """A white picture."""
    file = io.BytesIO()
    Image.new("L", (30, 20), 255).save(file, "PNG", pnginfo=notes)
    return file.getvalue()


def test_what_only_a_phone_shows_is_compared_too():
    stored = outputs(carrying(100))
    assert other_pictures(outputs(carrying(102)), stored) == []
    [why] = other_pictures(outputs(carrying(200)), stored)
    assert "for a phone" in why
    bare = base64.b64encode(blank()).decode()
    [why] = other_pictures(outputs(bare), stored)
    assert "carries 0 for a phone now" in why
