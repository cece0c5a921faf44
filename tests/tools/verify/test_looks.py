"""What has not changed is not looked at again; whatever has changed is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CONFTEST = """
import pathlib, pytest

@pytest.fixture
def site():
    return pathlib.Path(__file__).parents[2] / "html"

@pytest.fixture
def visited():
    return set()

@pytest.fixture
def page(site, visited):
    def go(name, *fetched):
        for one in (name, *fetched):
            visited.add(f"{site.as_uri()}/{one}?q=x#top")
        return (site / name).read_text()
    return go
"""
TESTS = """
import pathlib

def test_a(page):
    pathlib.Path("ran").open("a").write("a")
    assert "wrong" not in page("a.html")

def test_b(page):
    pathlib.Path("ran").open("a").write("b")
    page("b.html", "_static/b.js", "fetched.js")

def test_elsewhere(page, visited):
    pathlib.Path("ran").open("a").write("e")
    visited.add("http://127.0.0.1:1/a.html")

def test_reads(page, site):
    pathlib.Path("ran").open("a").write("r")
    page("b.html")

def test_no_browser():
    pathlib.Path("ran").open("a").write("n")
"""
COMPUTES = """
import pathlib
# import selfattn

def test_c(page):
    pathlib.Path("ran").open("a").write("c")
    page("b.html")
"""


@pytest.fixture
def tree(tmp_path):
    """A site of two pages, and tests that look at it."""
    for name, text in {
        "html/a.html": '<img src="a.svg"><a href="b.html">',
        "html/b.html": '<div data-lab="b"><script src="_static/b.js">',
        "html/a.svg": "<svg/>",
        "html/fetched.js": "later",
        "html/_static/b.js": "b",
        "html/_static/labs/b.js": "lab",
        "src/selfattn/b.py": "b = 1",
        "tests/site/conftest.py": CONFTEST,
        "tests/site/test_it.py": TESTS,
        "tests/site/test_lab.py": COMPUTES,
        "tests/guards/guard.py": "",
        "tests/accepted/none.txt": "",
        "pytest.ini": "[pytest]",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(tree, *options):
    """Run the tests; which did run, and what pytest ended with."""
    (tree / "ran").write_text("")
    plugins = ["-p", "no:cacheprovider", "-p", "tools.verify.looks"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests", *plugins, *options],
        cwd=tree,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    return "".join(sorted((tree / "ran").read_text())), done


def recorded(tree):
    """Everything looked at and written down; then what runs once more."""
    ran, done = run(tree, "--looks=all", "--record-looks")
    assert ran == "abcenr", done.stdout + done.stderr
    return run(tree, "--looks=changed")


def test_what_has_not_changed_is_not_looked_at_again(tree):
    ran, done = recorded(tree)
    assert ran == "n" and done.returncode == 0
    assert "looks: 0 taken, 5 not again" in done.stdout
    assert "6 passed" in done.stdout
    assert run(tree)[0] == "abcenr"  # unless that is asked for


@pytest.mark.parametrize(
    ("path", "ran"),
    [
        ("html/a.html", "aenr"),
        ("html/a.svg", "aenr"),
        ("html/_static/b.js", "bcenr"),
        ("html/_static/labs/b.js", "bcenr"),
        ("html/fetched.js", "benr"),
        ("html/new.html", "enr"),
        ("src/selfattn/b.py", "cn"),
        ("tests/guards/guard.py", "abcenr"),
        ("tests/site/conftest.py", "abcenr"),
        ("tests/site/test_lab.py", "cn"),
    ],
)
def test_what_has_changed_is_looked_at(tree, path, ran):
    recorded(tree)
    with (tree / path).open("a") as file:
        file.write("\n")
    assert run(tree, "--looks=changed")[0] == ran


def test_what_is_wrong_is_red_until_it_is_right_and_never_written(tree):
    recorded(tree)
    record = tree / "tests/accepted/looks.json"
    (tree / "html/a.html").write_text("wrong")
    for _ in range(2):
        ran, done = run(tree, "--looks=changed", "--record-looks")
        assert "a" in ran and done.returncode == 1
    names = [
        name.rpartition("::")[2] for name in json.loads(record.read_text())
    ]
    assert names == ["test_b", "test_elsewhere", "test_reads", "test_c"]


def test_a_page_that_is_gone_is_looked_for(tree):
    recorded(tree)
    (tree / "html/a.html").unlink()
    ran, done = run(tree, "--looks=changed")
    assert "a" in ran and done.returncode == 1


def test_one_that_did_not_pass_before_runs(tree):
    record = tree / "tests/accepted/looks.json"
    recorded(tree)
    looks = json.loads(record.read_text())
    looks["tests/site/test_it.py::test_b"]["digest"] = "0" * 24
    record.write_text(json.dumps(looks))
    assert run(tree, "--looks=changed")[0] == "bn"
