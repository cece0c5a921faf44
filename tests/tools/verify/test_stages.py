"""The order of the verification: it goes on after red, and ends red."""

import os
import re
import sys

import pytest

from tools.build import notebooks
from tools.verify import stages


@pytest.fixture
def two_stages(monkeypatch, tmp_path):
    """A red stage and then a green one that leaves a trace."""
    trace = tmp_path / "ran"
    monkeypatch.setattr(
        stages,
        "stages",
        lambda: {
            "first": ["-c", "raise SystemExit(3)"],
            "second": ["-c", f"open({str(trace)!r}, 'w').close()"],
        },
    )
    monkeypatch.setattr(stages, "REPORT", tmp_path / "report.xml")
    return trace


def test_a_red_stage_makes_all_red_and_stops_none(
    two_stages, monkeypatch, capfd
):
    monkeypatch.setattr(sys, "argv", ["stages"])
    assert stages.main() == 1
    assert two_stages.exists()
    assert capfd.readouterr().out.splitlines()[-1] == "red: first"


def test_a_stage_can_be_run_alone(two_stages, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["stages", "second"])
    assert stages.main() == 0
    out = capfd.readouterr().out
    assert out.splitlines()[-1] == "every stage is green"
    assert "first" not in out


@pytest.mark.parametrize("code", [0, 3])
def test_what_is_built_beside_speaks_in_its_turn(code, monkeypatch, capfd):
    said = f"print('built', flush=True)\nraise SystemExit({code})"
    monkeypatch.setattr(stages, "BESIDE", "second")
    results = stages.run_all(
        {
            "first": ["-c", "print('one', flush=True)"],
            "second": ["-c", said],
            "third": ["-c", "print('three', flush=True)"],
        }
    )
    said = capfd.readouterr().out.splitlines()
    assert [line for line in said if line in ("one", "built", "three")] == [
        "one",
        "built",
        "three",
    ]
    assert [green for green, _ in results.values()] == [True, code == 0, True]


def test_what_is_built_beside_gives_way():
    """A notebook must not seem slow because a site is built meanwhile."""
    told = "import os; print('nice', os.nice(0))"
    _, _, said = stages.run_beside(["-c", told], stages.GIVING_WAY)
    assert int(said.split()[1]) > os.nice(0)


@pytest.mark.parametrize("others", [0, 1])
def test_what_is_built_alone_gives_way_to_nobody(others, monkeypatch, capfd):
    told = "import os; print('nice', os.nice(0), flush=True)"
    monkeypatch.setattr(stages, "BESIDE", "built")
    more = {"other": ["-c", "pass"]} if others else {}
    stages.run_all(more | {"built": ["-c", told]})
    [found] = re.findall(r"nice (\d+)\n", capfd.readouterr().out)
    assert (int(found) > os.nice(0)) == bool(others)


def test_a_stage_that_does_not_exist_is_refused(
    two_stages, monkeypatch, capfd
):
    monkeypatch.setattr(sys, "argv", ["stages", "third"])
    with pytest.raises(SystemExit, match="2"):
        stages.main()
    assert "no such stage: third" in capfd.readouterr().err


def test_notebooks_are_compared_strictly_and_by_name():
    arguments = stages.notebooks()
    plugins = ["-p", "tools.verify.pictures"]
    plugins += ["-p", "tools.verify.comparisons"]
    assert arguments[:6] == [*plugins, "--nbval", "--nbval-current-env"]
    assert "--nbval-lax" not in arguments
    paths = [a for a in arguments[4:] if not a.startswith("-")]
    assert "book/dot_product.ipynb" in paths
    assert [p for p in paths if not p.startswith("book/")] == []


def test_without_a_notebook_pytest_is_not_let_loose_on_everything(
    monkeypatch,
):
    monkeypatch.setattr(notebooks, "in_contents", lambda root: [])
    (nothing,) = [a for a in stages.notebooks()[4:] if a[0] != "-"]
    assert not (stages.ROOT / nothing).exists()


def test_every_kind_of_check_has_its_stage():
    known = stages.stages()
    assert list(known) == [
        "style",
        "format",
        "types",
        "spelling",
        "notebooks",
        "slowest",
        "site",
        "tests",
    ]
    assert known["style"] == ["-m", "ruff", "check"]
    assert known["format"] == ["-m", "ruff", "format", "--check"]
    assert known["types"] == ["-m", "mypy"]
    assert known["spelling"] == ["-m", "codespell_lib"]
    assert known["site"] == ["-m", "tools.build.website"]
    assert known["slowest"][:2] == ["-m", "tools.verify.slowest"]
    flags = [x for x in known["tests"] if x.startswith("-")]
    assert [x.partition("=")[0] for x in flags] == [
        "-m",
        "-pno:nbval",
        "-ptools.verify.looks",
        "--looks",
        "--numprocesses",
        "--dist",
        "--durations",
        "--durations-min",
        "--doctest-glob",
    ]
    places = [x for x in known["tests"] if not x.startswith("-")]
    assert places[:4] == ["pytest", "tests", "src", "README.md"]
    assert len(places) > 8


def test_a_newcomer_is_told_of_every_stage():
    text = (stages.ROOT / "CONTRIBUTING.md").read_text("utf-8")
    listed = re.search(r"runs one stage alone: ([^.]+)\.", text)[1]
    assert re.split(r",\s+|\s+or\s+", listed) == list(stages.stages())
