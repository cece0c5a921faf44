"""The wheel beside the site is whole, and pip can install it."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from reading import install_line
from take_along import (
    furnish,
    install_cell,
    site_address,
    wheel_name,
    write_wheel,
)

from tools.build.notebooks import in_contents

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
    assert wheel.stat().st_size < 2e6  # a hundredth of what torch weighs
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


SITE = "https://someone.github.io/their-book/"


@pytest.fixture
def publishing(tmp_path, monkeypatch):
    """A folder with the artifact of a site, and an empty repository."""
    site = tmp_path / "site"
    for path in in_contents(ROOT):
        taken = site / "_sources" / path.relative_to(ROOT)
        taken.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, taken)
    (site / "_sources/book/claims.md").write_text("# No notebook")
    monkeypatch.setenv("BOOK_SITE_URL", SITE)
    builder = SimpleNamespace(format="html")
    furnish(SimpleNamespace(srcdir=ROOT, outdir=site, builder=builder), None)
    archive(tmp_path)
    git(tmp_path, "init", "--quiet", "--bare", "theirs")
    return tmp_path


def archive(folder):
    """What the action that uploads a site makes of it."""
    with tarfile.open(folder / "artifact.tar", "w") as tar:
        tar.add(folder / "site", ".")


def git(folder, *words):
    """What git says in a folder, as on a machine that knows nobody."""
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def publish(folder):
    """The workflow's own lines, run there as they are; their exit status."""
    path = ROOT / ".github/workflows/publish.yml"
    *_, last = yaml.safe_load(path.read_text("utf-8"))["jobs"]["taken"][
        "steps"
    ]
    told = {
        "BOOK_REPOSITORY_URL": str(folder / "theirs"),
        "GITHUB_SHA": "0123abc",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    return subprocess.run(
        ["bash", "-e", "-c", last["run"]], cwd=folder, env=os.environ | told
    ).returncode


def test_colabs_branch_holds_each_notebook_with_its_cell_and_no_past(
    publishing,
):
    assert publish(publishing) == 0
    shutil.rmtree(publishing / "taken")  # another run, on another machine
    assert publish(publishing) == 0
    theirs = publishing / "theirs"
    assert git(theirs, "branch", "--format=%(refname:short)") == "taken\n"
    (commit,) = git(theirs, "log", "--format=%s", "taken").splitlines()
    assert commit.startswith("The notebooks of 0123abc")
    names = git(theirs, "ls-tree", "-r", "--name-only", "taken").splitlines()
    ours = {str(path.relative_to(ROOT)): path for path in in_contents(ROOT)}
    assert sorted(names) == sorted(ours)
    for name, path in ours.items():
        copy = json.loads(git(theirs, "show", f"taken:{name}"))
        cell = copy["cells"].pop(1)
        wheel = f"{SITE}{wheel_name(ROOT)}"
        assert f'%pip install -q "selfattn[book] @ {wheel}"' in cell["source"]
        assert copy == json.loads(path.read_text("utf-8"))


def test_a_notebook_without_the_cell_goes_to_no_branch(publishing):
    shutil.copy(ROOT / "book/masks.ipynb", publishing / "site/_sources/book")
    archive(publishing)
    assert publish(publishing) != 0
    assert git(publishing / "theirs", "branch") == ""


def test_the_first_page_says_what_colab_opens_where_it_opens_it(monkeypatch):
    monkeypatch.setenv("BOOK_SITE_URL", SITE)
    monkeypatch.delenv("BOOK_REPOSITORY_URL", raising=False)
    told, line = install_line(ROOT)
    assert "Colab" not in told.astext() and SITE in line.astext()
    monkeypatch.setenv("BOOK_REPOSITORY_URL", "https://github.com/a/b")
    told, _ = install_line(ROOT)
    assert "Colab, on top of each chapter, too, opens the same copies." in (
        told.astext()
    )
