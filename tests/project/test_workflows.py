"""The workflows do what the make targets do, and may do no more."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.y*ml"))


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
        elif (workflow["name"], name) == ("publish", "taken"):
            allowed = {"contents": "write"}
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


BEGIN = ["actions/checkout", "actions/setup-python"]


def done(name, job):
    """What the steps of a job use or run, in their order."""
    return [
        step.get("uses", "").split("@")[0] or step["run"]
        for step in read(name)["jobs"][job]["steps"]
    ]


def test_test_runs_make_test_on_each_python_for_every_push():
    workflow = read("test")
    assert workflow[True] == {"push": None, "pull_request": None}
    job = workflow["jobs"]["test"]
    matrix = job["strategy"]["matrix"]
    assert matrix == {"python": ["3.11", "3.12", "3.13"]}
    assert [s["run"] for s in job["steps"] if "run" in s] == ["make test"]


def test_only_what_make_test_passed_in_the_same_run_is_published():
    workflow = read("publish")
    assert workflow[True]["push"] == {"branches": ["main"]}
    assert set(workflow[True]) == {"push", "workflow_dispatch"}
    assert list(workflow["jobs"]) == ["test", "deploy", "taken"]
    assert workflow["jobs"]["deploy"]["needs"] == "test"
    assert done("publish", "test") == [
        *BEGIN,
        "make test",
        "actions/upload-pages-artifact",
    ]
    assert workflow["jobs"]["test"]["steps"][-1]["with"] == {
        "path": "_build/html"
    }
    assert done("publish", "deploy") == ["actions/deploy-pages"]


def test_colabs_copies_are_those_of_the_published_site_and_no_more_is_run():
    """What writes to the repository has no checkout, and runs none of it."""
    job = read("publish")["jobs"]["taken"]
    assert job["needs"] == "deploy"
    assert set(job["env"]) == {"BOOK_REPOSITORY_URL", "GH_TOKEN"}
    assert job["env"]["GH_TOKEN"] == "${{ github.token }}"
    first, second, third = job["steps"]
    assert first["uses"].startswith("actions/download-artifact@")
    assert first["with"] == {"name": "github-pages"}
    assert second == {"run": "gh auth setup-git"}
    lines = third["run"].splitlines()
    assert {line.split()[0] for line in lines} == {"git", "tar", "test", "cd"}
    text = (ROOT / ".github/workflows/publish.yml").read_text("utf-8")
    assert text.count("github.token") == 1


def test_what_is_published_knows_where_it_will_stand():
    """The notebooks to take along fetch the package from there."""
    given = read("publish")["jobs"]["test"]["env"]
    assert set(given) == {
        "PIP_EXTRA_INDEX_URL",
        "BOOK_REPOSITORY_URL",
        "BOOK_SITE_URL",
    }
    for part in ("vars.BOOK_SITE_URL ||", "'https://{0}.github.io/{1}/'"):
        assert part in given["BOOK_SITE_URL"]


def test_each_job_takes_these_steps_and_no_others():
    assert done("test", "test") == [*BEGIN, "make test"]
    stages = ".venv/bin/python -m tools.verify.stages"
    prepare = "python3 -m tools.setup.prepare test"
    assert done("weekly", "newest") == [*BEGIN, f"{prepare} --newest", stages]
    campaigns = ["hostile", "corruptions", "retrain"]
    for job in campaigns:
        module = f"tools.measure.{job}"
        command = f'.venv/bin/python -m {module} --seed "$GITHUB_RUN_NUMBER"'
        assert done("weekly", job) == [*BEGIN, prepare, command]
    plain = "env ATEN_CPU_CAPABILITY=default OMP_NUM_THREADS=1"
    plainly = f"{plain} {stages} notebooks"
    assert done("weekly", "plain") == [*BEGIN, prepare, plainly]
    sites = ["python3 -m tools.setup.prepare book"]
    sites += [".venv/bin/python -m tools.build.twice"]
    assert done("weekly", "twice") == [*BEGIN, *sites]
    audit = "python3 -m pip_audit --no-deps --disable-pip -r requirements.txt"
    install = "python3 -m pip install pip-audit=="
    *first, said, last = done("weekly", "audit")
    assert (first, last) == (BEGIN, audit) and said.startswith(install)
    assert done("weekly", "offline") == [*BEGIN, "make offline"]
    everything = ".venv/bin/python -m tools.verify.looks --all"
    painted = ".venv/bin/python -m tools.measure.paint --first --within 2"
    assert done("weekly", "looks") == [*BEGIN, prepare, everything, painted]
    others = {"newest", "plain", "twice", "audit", "offline", "looks"}
    assert set(read("weekly")["jobs"]) == {*campaigns, *others}


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
