"""What surrounds the book: pins, licences, README, workflows, the package."""

import importlib.metadata
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.setup.packages import PULLED_IN

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.y*ml"))
TORCH = "torch"


def pins(name: str) -> dict[str, Requirement]:
    """The requirements of one file by name, those of its includes not."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    bare = [line.split("#")[0].strip() for line in lines]
    wanted = [Requirement(line) for line in bare if line and line[0] != "-"]
    names = [canonicalize_name(one.name) for one in wanted]
    assert len(set(names)) == len(names)
    return dict(zip(names, wanted, strict=True))


BOOK = pins("requirements-book.txt")
REST = pins("requirements.txt")


def pulled_in(names: set[str]) -> set[str]:
    """All that these packages need here, themselves included."""
    found: set[str] = set()
    todo = [(name, "") for name in names]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        for line in importlib.metadata.requires(name) or []:
            need = Requirement(line)
            marker = need.marker
            if marker is None or marker.evaluate({"extra": extra}):
                other = canonicalize_name(need.name)
                todo += [(other, e) for e in {"", *need.extras}]
    return {name for name, _ in found}


def test_every_requirement_is_pinned_exactly_and_once():
    assert not BOOK.keys() & REST.keys()
    for requirement in (BOOK | REST).values():
        assert re.fullmatch(r"==[\w.]+", str(requirement.specifier))


def test_what_was_asked_for_is_there_by_name():
    first = (ROOT / "requirements.txt").read_text("utf-8")
    assert "-r requirements-book.txt" in first.split(PULLED_IN)[0]
    assert str(BOOK["jupyter-book"]) == "jupyter-book==1.0.4.post1"
    assert str(REST[TORCH]) == "torch==2.13.0"
    assert REST.keys() >= {"matplotlib", "ipywidgets", "nbval", "pytest"}


def here(wanted: dict[str, Requirement]) -> set[str]:
    """The names that this system is to install."""
    return {
        name
        for name, one in wanted.items()
        if one.marker is None or one.marker.evaluate()
    }


def test_the_site_needs_no_torch_and_its_pins_are_complete():
    assert pulled_in(here(BOOK)) == here(BOOK)
    assert not BOOK.keys() & {TORCH, "selfattn", "numpy"}


def test_the_pins_of_the_verification_are_complete():
    # On Linux the usual build of torch brings CUDA packages of its own.
    own = re.compile("nvidia-|cuda-|triton")
    needed = {n for n in pulled_in(here(REST)) if not own.match(n)}
    assert needed <= BOOK.keys() | REST.keys()
    assert here(REST) <= needed


def test_the_package_accepts_what_is_pinned():
    needs = [Requirement(r) for r in importlib.metadata.requires("selfattn")]
    plain = {r.name: r.specifier for r in needs if r.marker is None}
    assert set(plain) == {TORCH, "jaxtyping"}
    for name, allowed in plain.items():
        (pin,) = REST[name].specifier
        assert allowed.contains(pin.version)


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) < 80
    targets = re.findall(r"\]\(([^)]+)\)", text)
    here = [target for target in targets if "://" not in target]
    assert [t for t in here if not (ROOT / t).exists()] == []


def test_the_readme_maps_every_page_of_the_contents():
    text = (ROOT / "README.md").read_text("utf-8")
    contents = (ROOT / "_toc.yml").read_text("utf-8")
    pages = re.findall(r"file: (book/\S+)", contents)
    generated = {"book/bibliography"}
    assert [p for p in pages if p not in text] == sorted(generated & {*pages})


def test_the_licences_are_named_alike_everywhere():
    cite = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    package = importlib.metadata.metadata("selfattn")
    assert cite["license"] == package["License-Expression"] == "BSD-3-Clause"
    assert cite["version"] == package["Version"]
    assert cite["cff-version"] == "1.2.0"
    assert all(cite[key] for key in ("title", "message", "authors"))
    code = (ROOT / "LICENSE").read_text("utf-8")
    assert code.startswith("BSD 3-Clause License")
    text = (ROOT / "LICENSE-TEXT").read_text("utf-8")
    assert "SPDX-License-Identifier: CC-BY-4.0" in text
    assert "Section 8 – Interpretation." in text  # the whole of it


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.stem)
def workflow(request):
    """Each workflow, as it is written and as it is read."""
    text = request.param.read_text("utf-8")
    read = yaml.safe_load(text)
    # YAML 1.1 takes the key `on` for the truth value.
    return {"name": request.param.stem, "text": text, "on": read[True]} | read


def steps(workflow):
    """Every step of every job."""
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_the_three_workflows_are_there():
    assert [p.stem for p in WORKFLOWS] == ["publish", "test", "weekly"]


def test_actions_are_named_by_commit_with_their_version(workflow):
    lines = re.findall(r"uses:.*", workflow["text"])
    assert len(lines) == sum("uses" in step for step in steps(workflow))
    for line in lines:
        assert re.fullmatch(
            r"uses: actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line
        )


def test_one_action_has_one_commit():
    text = "".join(path.read_text("utf-8") for path in WORKFLOWS)
    used = set(re.findall(r"uses: (\S+)@(\S+)", text))
    assert len(used) == len({action for action, _ in used})


def test_a_workflow_may_do_no_more_than_it_needs(workflow):
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for name, job in workflow["jobs"].items():
        allowed = {"contents": "read"}
        if (workflow["name"], name) == ("publish", "deploy"):
            allowed = {"pages": "write", "id-token": "write"}
        assert job.get("permissions", allowed) == allowed
        assert 0 < job["timeout-minutes"] <= 45
    assert "pull_request_target" not in workflow["text"]
    assert "secrets." not in workflow["text"]


def test_a_checkout_leaves_no_credentials_behind(workflow):
    for step in steps(workflow):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"] == {"persist-credentials": False}


def test_no_step_puts_what_others_wrote_into_a_shell(workflow):
    assert not any("${{" in step.get("run", "") for step in steps(workflow))


def read(name):
    """One workflow."""
    path = ROOT / f".github/workflows/{name}.yml"
    return yaml.safe_load(path.read_text("utf-8"))


def test_test_runs_make_test_on_each_python_for_every_push():
    workflow = read("test")
    assert workflow[True] == {"push": None, "pull_request": None}
    job = workflow["jobs"]["test"]
    matrix = job["strategy"]["matrix"]
    assert matrix == {"python": ["3.11", "3.12", "3.13"]}
    assert [s["run"] for s in job["steps"] if "run" in s] == ["make test"]


def test_publish_builds_from_main_and_takes_its_address_from_the_run():
    workflow = read("publish")
    assert workflow[True]["push"] == {"branches": ["main"]}
    assert set(workflow[True]) == {"push", "workflow_dispatch"}
    build = [s for s in steps(workflow) if "run" in s]
    address = "${{ github.server_url }}/${{ github.repository }}"
    assert [(s["run"], s["env"]) for s in build] == [
        ("make book", {"BOOK_REPOSITORY_URL": address})
    ]


def test_weekly_tries_the_newest_packages_and_audits_the_pins():
    workflow = read("weekly")
    assert set(workflow[True]) == {"schedule", "workflow_dispatch"}
    commands = [s["run"] for s in steps(workflow) if "run" in s]
    assert "python3 -m tools.setup.prepare test --newest" in commands
    assert any("pip_audit" in c and "requirements.txt" in c for c in commands)


def test_ci_runs_the_test_command_and_nothing_else():
    lines = (ROOT / ".ci/run").read_text("utf-8").splitlines()
    assert lines == [
        "#!/usr/bin/env bash",
        "set -euo pipefail",
        'cd "$(dirname "$0")/.."',
        "make test",
    ]
    assert (ROOT / ".ci/run").stat().st_mode & 0o100


def test_the_built_package_holds_the_labs_and_its_types_and_no_test(tmp_path):
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet"]
    offline = ["--no-build-isolation", "--no-index", "--wheel-dir", tmp_path]
    subprocess.run([*pip, *offline, ROOT], check=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for kind in ("*.py", "*.js", "py.typed")
        for path in source.rglob(kind)
    }
    core = "selfattn/labs/machinery/core.js"
    assert {"selfattn/py.typed", core} <= wanted
    kept = {n for n in names if ".dist-info/" not in n}
    assert wanted <= kept
    assert {n.split("/")[0] for n in kept} == {"selfattn"}
    assert not [n for n in kept if "test_" in n]
    assert [n for n in names if n.endswith("licenses/LICENSE")]
