"""The package alone brings the doctor: torch and jaxtyping are enough.

Everything else that happens to be installed here is hidden from the imports,
but for the standard library and what those two ask for themselves.
"""

import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
ASKED_FOR = ("torch", "jaxtyping")
HOOK = """
import sys


def absent(name):
    top = name.partition(".")[0]
    return top not in {allowed!r} and top not in sys.stdlib_module_names


class Only:  # a finder that does not find what is absent
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if not absent(name):
            return self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


for name in list(sys.modules):
    if absent(name) and name != "sitecustomize":
        del sys.modules[name]
sys.meta_path[:] = map(Only, sys.meta_path)
sys.path.insert(0, {source!r})
"""
FILE = """
from torch import nn
from selfattn import MultiHeadAttention

def attend(q, k, v):
    return (q @ k.mT / q.shape[-1]).softmax(-1) @ v

layer = MultiHeadAttention(12, 3)
"""


def with_their_own(names):
    """Distributions, and all that they ask for without extras."""
    found, left = set(), list(names)
    while left:
        name = left.pop()
        if name in found:
            continue
        try:
            listed = distribution(name).requires or []
        except PackageNotFoundError:  # not on this system
            continue
        found.add(name)
        wanted = map(Requirement, listed)
        left += [
            one.name
            for one in wanted
            if one.marker is None or one.marker.evaluate({"extra": ""})
        ]
    return found


def modules_of(names):
    """The top modules that distributions bring."""
    files = (path for name in names for path in distribution(name).files or ())
    return {
        path.parts[0].partition(".")[0]
        for path in files
        if path.suffix in (".py", ".so") and path.parts[0] != ".."
    }


@pytest.fixture(scope="module")
def bare():
    """Run some lines where nothing else can be imported."""
    allowed = modules_of(with_their_own(ASKED_FOR)) | {"selfattn"}
    assert {"torch", "jaxtyping", "sympy"} <= allowed
    assert not {"numpy", "rich", "matplotlib", "pytest"} & allowed
    hook = HOOK.format(allowed=sorted(allowed), source=str(ROOT / "src"))

    def run(lines, folder):
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", hook + lines],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            env={"PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"},
            timeout=300,
        )

    return run


def test_the_package_asks_for_two(bare):
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    asked = tomllib.loads(text)["project"]["dependencies"]
    assert [Requirement(line).name for line in asked] == [*ASKED_FOR]


@pytest.mark.parametrize("name", ["numpy", "rich", "matplotlib", "pytest"])
def test_nothing_else_can_be_imported_there(name, bare, tmp_path):
    done = bare(f"import {name}", tmp_path)
    assert f"No module named '{name}'" in done.stderr


def test_the_doctor_examines_a_file_with_these_two(bare, tmp_path):
    (tmp_path / "mine.py").write_text(FILE, "utf-8")
    lines = "from selfattn.doctor.__main__ import main\n"
    done = bare(f"{lines}sys.exit(main(['mine.py']))", tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "\n✗ attend (attention): divided by d\n" in done.stdout
    assert "\n✓ MultiHeadAttention (self-attention): healthy" in done.stdout


def test_the_doctor_examines_in_python_with_these_two(bare, tmp_path):
    lines = """
from selfattn import attention
from selfattn.doctor import assert_healthy, check, survival
assert_healthy(attention, kind="attention")
check(3.91, exercise="doctor/first_loss")
"""
    done = bare(lines, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "✓ doctor/first_loss: right\n"
