"""The one command that writes notebooks."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools.build import notebooks

ROOT = Path(__file__).resolve().parents[3]


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
