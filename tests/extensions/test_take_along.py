"""The wheel beside the site is whole, and pip can install it."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from take_along import install_cell, site_address, wheel_name, write_wheel

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "selfattn": "src/selfattn",
    "selfattn/measured": "book/measurements",
}


def test_the_wheel_holds_the_packages_files_and_no_others(tmp_path):
    wheel = write_wheel(ROOT, tmp_path)
    assert wheel.name == wheel_name(ROOT)
    again = tmp_path / "again"
    again.mkdir()
    assert write_wheel(ROOT, again).read_bytes() == wheel.read_bytes()
    assert wheel.stat().st_size < 1.5e6
    ours = {
        f"{name}/{path.relative_to(ROOT / source).as_posix()}": path
        for name, source in FOLDERS.items()
        for path in (ROOT / source).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if ".dist-info/" not in n]
        assert sorted(names) == sorted(ours)
        for name in names:
            assert archive.read(name) == ours[name].read_bytes(), name
        (licence,) = [n for n in archive.namelist() if "/licenses/" in n]
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()


def test_pip_installs_the_wheel(tmp_path):
    wheel = write_wheel(ROOT, tmp_path)
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


RUN = """
import importlib.util, json, sys
from IPython.core.interactiveshell import InteractiveShell

cell, there = json.load(sys.stdin)
asked = []
shell = InteractiveShell()
shell.register_magic_function(asked.append, "line", "pip")
find = importlib.util.find_spec
importlib.util.find_spec = lambda name: there or None
done = shell.run_cell(cell)
importlib.util.find_spec = find
print(json.dumps([done.success, asked]))
"""


def asked_of_pip(cell, folder, there=False):
    """What a cell says to pip in a folder, the package there or not."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([cell["source"], there]),
        cwd=folder,
        env=os.environ | {"IPYTHONDIR": str(folder / "ipython")},
        capture_output=True,
        text=True,
    )
    success, asked = json.loads(done.stdout.splitlines()[-1])
    assert success and len(done.stdout.splitlines()) == 1, done.stdout
    return asked


def test_the_cell_takes_the_wheel_from_the_site_if_it_knows_it(tmp_path):
    cell = install_cell("a-1.whl", "https://some.where/book/")
    place = "https://some.where/book/a-1.whl"
    asked = asked_of_pip(cell, tmp_path)
    assert asked == [f'install -q "selfattn[book] @ {place}"']
    assert asked_of_pip(cell, tmp_path, there=True) == []
    assert cell["outputs"] == [] and cell["execution_count"] is None


def test_without_an_address_it_finds_the_wheel_below_which_it_lies(tmp_path):
    cell = install_cell("a-1.whl", "")
    lower = tmp_path / "_sources" / "book"
    lower.mkdir(parents=True)
    assert "beside this notebook" in cell["source"]
    beside = f'install -q "{lower}/a-1.whl[book]"'
    assert asked_of_pip(cell, lower) == [beside]  # and pip says what lacks
    (tmp_path / "a-1.whl").touch()
    above = f'install -q "{tmp_path}/a-1.whl[book]"'
    assert asked_of_pip(cell, lower) == [above]
    (lower / "a-1.whl").touch()
    assert asked_of_pip(cell, lower) == [beside]
    assert asked_of_pip(cell, lower, there=True) == []


def test_an_address_is_one_that_pip_may_fetch_from():
    assert site_address({}) == site_address({"BOOK_SITE_URL": " "}) == ""
    given = {"BOOK_SITE_URL": "https://a.github.io/b"}
    assert site_address(given) == "https://a.github.io/b/"
    for wrong in (
        "a.github.io",
        "http://a.io/",
        'https://a"; rm',
        "https://{}",
    ):
        with pytest.raises(ValueError, match="must look like https"):
            site_address({"BOOK_SITE_URL": wrong})
