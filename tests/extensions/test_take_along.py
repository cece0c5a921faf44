"""The wheel beside the site is whole, and pip can install it."""

import subprocess
import sys
import zipfile
from pathlib import Path

from take_along import install_cell, wheel_name, write_wheel

ROOT = Path(__file__).resolve().parents[2]


def test_the_wheel_installs_the_package_and_its_measurements(tmp_path):
    wheel = write_wheel(ROOT, tmp_path)
    assert wheel.name == wheel_name(ROOT)
    again = tmp_path / "again"
    again.mkdir()
    assert write_wheel(ROOT, again).read_bytes() == wheel.read_bytes()
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in (ROOT / "src").rglob("*.*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.relative_to(ROOT / "src").as_posix() in names
    assert "selfattn/measured/mutants.json" in names
    empty = tmp_path / "empty"
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index"]
    subprocess.run(
        [*pip, "-q", "--no-compile", "--target", empty, wheel], check=True
    )
    there = {path.relative_to(empty) for path in empty.rglob("*.py")}
    assert Path("selfattn/labs/intro.py") in there
    (about,) = empty.glob("selfattn-*.dist-info")
    needs = (about / "METADATA").read_text("utf-8")
    assert "Requires-Dist: torch>=" in needs


def test_the_cell_takes_the_wheel_from_the_site_if_it_knows_it():
    known = install_cell("a-1.whl", "https://some.where/book/")
    assert (
        '"selfattn[book] @ https://some.where/book/a-1.whl"'
        in (known["source"])
    )
    assert '"./a-1.whl[book]"' in install_cell("a-1.whl", "")["source"]
    assert not known["outputs"]
