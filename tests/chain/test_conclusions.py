"""A conclusion that its runs, its test or its page do not bear is red."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from guards.conclusions import conclusion_breaks

from tools.build import accept

ROOT = Path(__file__).resolve().parents[2]
KEPT = (
    "book/conclusions",
    "book/measurements",
    "tests/conclusions",
    "tools/measure/experiments",
)
RECORD = "book/conclusions/layers.toml"
PAGE = "book/layers.ipynb"
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they need no plugin
IDENTICAL = "**Without the path, tokens become identical**"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The root of a copy of all that a conclusion leans on."""
    root = tmp_path_factory.mktemp("sound")
    for name in KEPT:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    for path in (ROOT / "book").rglob("*.ipynb"):
        place = root / path.relative_to(ROOT)
        place.parent.mkdir(exist_ok=True)
        shutil.copy(path, place)
    assert conclusion_breaks(root) == []
    return root


@pytest.fixture
def copy(sound, tmp_path):
    """A copy of that, to be broken."""
    return shutil.copytree(sound, tmp_path / "copy")


def replaced(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


@pytest.mark.parametrize(
    ("name", "old", "new", "finding"),
    [
        (RECORD, IDENTICAL, "**Tokens become identical**", "the page says"),
        (PAGE, IDENTICAL, "**Tokens become identical**", "the page says"),
        (PAGE, "#layers-identical)", "#layers-alike)", "not on the page"),
        (PAGE, "not yet so in every seed", "not yet so", "does not say"),
        (RECORD, "seed = [0, 1, 2,", "seed = [1, 2,", "the runs have seed"),
        (RECORD, 'norm = ["none", "pre", "post"]', "", "1 nuisances with 3"),
        (RECORD, 'over = ["rate", "seed"]', 'over = ["seed"]', "one rate"),
        (
            RECORD,
            "not_in = [{block = 4},",
            "not_in = [{block = 5},",
            "none of",
        ),
        (RECORD, "not_in = [{blocks = 4}]", "not_in = [{}]", "half of its"),
        (RECORD, 'says = "Exactly 1 is', 'says = "because 1 is', "no rival"),
        (
            "tests/conclusions/test_layers.py",
            "def test_a_calmed_block_has",
            "def tested_a_calmed_block_has",
            "no test_a_calmed_block_has_its_gradient_back",
        ),
        (
            RECORD,
            'test = "test_a_calmed_block_has_its_gradient_back"',
            'test = "test_gradients_are_larger_without_a_norm"',
            "is in no row",
        ),
    ],
)
def test_a_break_is_red(copy, name, old, new, finding):
    replaced(copy / name, old, new)
    assert any(finding in fault for fault in conclusion_breaks(copy))


def test_an_experiment_without_rows_is_red(copy):
    (copy / "tools/measure/experiments/width.py").write_text("SEEDS = 5\n")
    found = "width: an experiment without rows"
    assert found in conclusion_breaks(copy)


def test_more_rows_than_a_chapter_may_have_are_red(copy):
    path = copy / "book/conclusions/layers.toml"
    text = path.read_text("utf-8")
    first = "[[conclusion]]" + text.split("[[conclusion]]")[1]
    path.write_text(text + 10 * first, "utf-8")
    assert "layers: 20 rows" in conclusion_breaks(copy)


def judged(root):
    """How the tests of the copy end for one conclusion: exit code, words."""
    (root / "pytest.ini").write_text("[pytest]\n")
    name = "tests/conclusions/test_layers.py::test_gradients_are_larger"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"{name}_without_a_norm"],
        cwd=root,
        env=os.environ | ALONE | {"PYTHONPATH": paths()},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout


def paths():
    """Where the tests of a copy find the package and the record's reader."""
    return os.pathsep.join(
        str(ROOT / part) for part in ("src", "book/extensions")
    )


def test_a_row_that_its_runs_do_not_support_is_red(copy):
    path = copy / "book/measurements/stacks.json"
    stacks = json.loads(path.read_text("utf-8"))
    for run in stacks["runs"]:
        if (run["norm"], run["seed"]) == ("none", 3):
            run["path 4"] = -9.0
    path.write_text(json.dumps(stacks))
    code, words = judged(copy)
    assert code == 1
    assert "[False-4-3]" in words and "2 failed, 58 passed" in words


def test_a_row_that_holds_where_it_says_it_does_not_is_red(copy):
    path = copy / RECORD
    row = 'test = "test_gradients_are_larger_without_a_norm"'
    replaced(path, row, f"not_in = [{{block = 8, seed = 3}}]\n{row}")
    code, words = judged(copy)
    assert code == 1
    assert "XPASS(strict)" in words and "2 failed, 58 passed" in words


def test_one_edit_of_a_page_is_one_edit(copy):
    replaced(copy / PAGE, IDENTICAL, '**Without it \\"tokens\\" are one**')
    assert conclusion_breaks(copy)
    changes = accept.accept(copy / "book")
    assert changes[0] == "layers-identical:"
    assert {"  - identical**", "  + one**"} <= set(changes)
    assert conclusion_breaks(copy) == []
    assert accept.accept(copy / "book") == []
