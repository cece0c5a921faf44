"""The workflow on the doctor's page: read as YAML, its lines executed."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
RIGHT = """
def attend(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
"""


@pytest.fixture(scope="module")
def workflow():
    """What stands on the page, as it is read."""
    page = json.loads((ROOT / "book/doctor.ipynb").read_text("utf-8"))
    texts = ("".join(cell["source"]) for cell in page["cells"])
    (text,) = (t for t in texts if t.startswith("WORKFLOW = "))
    return yaml.safe_load(ast.literal_eval(ast.parse(text).body[0].value))


def steps(workflow):
    (job,) = workflow["jobs"].values()
    return job["steps"]


def test_it_runs_at_every_push_and_may_only_read(workflow):
    assert workflow[True] == ["push", "pull_request"]  # the key `on`
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert job["env"] == {"BOOK": "${{ vars.BOOK }}"}


def test_its_actions_are_those_of_the_book(workflow):
    paths = (ROOT / ".github/workflows").glob("*.yml")
    ours = "".join(path.read_text("utf-8") for path in paths)
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert [re.sub("@.*", "", one) for one in used] == [
        "actions/checkout",
        "actions/setup-python",
    ]
    assert all(f"uses: {one} #" in ours for one in used)


@pytest.mark.parametrize(
    ("was", "becomes", "code"), [("0.5", "0.5", 0), ("** 0.5", "", 1)]
)
def test_its_lines_do_what_they_say(was, becomes, code, workflow, tmp_path):
    """In a folder of its own, into which pip installs, and from no index."""
    (tmp_path / "mine.py").write_text(RIGHT.replace(was, becomes), "utf-8")
    site = tmp_path / "site"
    offline = {
        "BOOK": str(ROOT),
        "PIP_TARGET": str(site),
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # so pip reads that it is not isolated
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONPATH": str(site),
        "PYTHONUTF8": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    lines = [step["run"] for step in steps(workflow) if "run" in step]
    done = [
        subprocess.run(
            ["bash", "-e", "-c", line],
            cwd=tmp_path,
            env={**os.environ, **offline},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )
        for line in lines
    ]
    assert [one.returncode for one in done] == [0, code], done
    assert (site / "selfattn" / "doctor" / "__main__.py").is_file()
    sign = "✓" if code == 0 else "✗"
    assert f"\n{sign} attend (attention): " in done[-1].stdout
