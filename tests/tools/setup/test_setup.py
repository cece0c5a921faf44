"""The set-up on a copy of the project that needs no network: what it says
when something is missing, and that nothing half-done passes for whole.
"""

import ast
import base64
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.setup import browser, packages, prepare
from tools.setup.environment import MissingError

ROOT = Path(__file__).resolve().parents[3]
SET_UP = [
    "tools/__init__.py",
    "tools/setup/__init__.py",
    "tools/setup/prepare.py",
    "tools/setup/environment.py",
    "tools/setup/packages.py",
    "tools/setup/browser.py",
]
THING = "VALUE = 42\n"


def wheel(folder: Path, name: str, version: str) -> None:
    """The smallest package that pip installs."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": THING,
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        ),
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
            "Tag: py3-none-any\n"
        ),
    }
    record = "".join(
        f"{path},sha256={urlsafe(text)},{len(text)}\n"
        for path, text in files.items()
    )
    target = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")


def urlsafe(text: str) -> str:
    """A hash as RECORD writes it."""
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class Project:
    """A copy of the set-up beside requirements that are here already."""

    def __init__(self, root: Path):
        self.root = root
        (root / "tools" / "setup").mkdir(parents=True)
        (root / "wheels").mkdir()
        wheel(root / "wheels", "thing", "1.0")
        for name in SET_UP:
            (root / name).write_text((ROOT / name).read_text())
        self.require("thing==1.0")

    def require(self, *lines: str) -> None:
        """Write what `make book` would install."""
        text = "\n".join(lines) + "\n"
        (self.root / "requirements-book.txt").write_text(text)

    def environment(self, **changes: str) -> dict[str, str]:
        """Variables under which pip looks nowhere but in `wheels`."""
        kept = {k: v for k, v in os.environ.items() if k[:4] != "PIP_"}
        here = {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_FIND_LINKS": str(self.root / "wheels"),
        }
        return kept | here | (changes or {"PIP_NO_INDEX": "1"})

    def set_up(self, **changes: str) -> subprocess.CompletedProcess:
        """Run the set-up; whatever happens, no traceback is shown."""
        done = subprocess.run(
            [sys.executable, "-m", "tools.setup.prepare", "book"],
            cwd=self.root,
            env=self.environment(**changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done

    @property
    def mark(self) -> dict[str, str]:
        """What the set-up has noted as installed."""
        return json.loads((self.root / ".venv/installed.json").read_text())

    @property
    def packages(self) -> Path:
        """The folder that pip installs into."""
        return next((self.root / ".venv").glob("lib/*/site-packages"))

    def value(self) -> str:
        """What a program in .venv gets from the package."""
        python = self.root / ".venv/bin/python"
        code = "import thing; print(thing.VALUE)"
        return subprocess.check_output([python, "-c", code], text=True).strip()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One .venv for all, since making one takes seconds."""
    project = Project(tmp_path_factory.mktemp("project"))
    first = project.set_up()
    assert first.returncode == 0, first.stderr
    return project


@pytest.fixture
def project(shared):
    """A project that is set up, whatever the test before has broken."""
    shared.require("thing==1.0")
    done = shared.set_up()
    assert done.returncode == 0, done.stderr
    assert shared.value() == "42"
    return shared


def program(path: Path, text: str) -> str:
    """An executable shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_second_run_does_nothing_and_says_nothing(project):
    before = project.mark
    # An index that is asked would be missed: this one does not answer.
    again = project.set_up(PIP_INDEX_URL="http://127.0.0.1:9/simple")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert project.mark == before


def test_a_changed_pin_is_installed(project):
    wheel(project.root / "wheels", "thing", "1.1")
    project.require("thing==1.1")
    assert "Installed" in project.set_up().stdout
    assert [p.name for p in project.packages.glob("thing-*")] == [
        "thing-1.1.dist-info"
    ]


def test_without_a_network_it_says_so_and_marks_nothing(project):
    project.require("thing==1.0", "elsewhere==1.0")
    done = project.set_up(
        PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="1"
    )
    assert done.returncode == 1
    assert "could not reach its package index" in done.stderr
    assert "Is this machine online?" in done.stderr
    assert "book" not in project.mark


def test_an_index_without_the_package_is_not_called_a_lost_network(project):
    project.require("elsewhere==1.0")
    done = project.set_up()
    assert done.returncode == 1
    assert "does not have what is asked for" in done.stderr
    assert "online" not in done.stderr


def breaking_off(project: Project) -> None:
    """What pip leaves when it is killed while it writes a package."""
    (project.packages / "thing.py").write_text("VAL")
    (project.packages / "thing-1.0.dist-info/RECORD").unlink()


def losing_power(project: Project) -> None:
    """A package whose last bytes never reached the disk."""
    (project.packages / "thing.py").write_text("")


@pytest.mark.parametrize("harm", [breaking_off, losing_power])
def test_a_half_written_package_is_mended(project, harm):
    harm(project)
    (project.root / ".venv/installed.json").unlink()
    done = project.set_up()
    assert (done.returncode, "Mending thing." in done.stdout) == (0, True)
    assert project.value() == "42"


def test_an_environment_without_all_of_pip_is_made_again(project):
    """The making of .venv was broken off, and it had no time for a mark."""
    (project.root / ".venv/installed.json").unlink()
    next(project.packages.glob("pip-*/RECORD")).unlink()
    done = project.set_up()
    assert (done.returncode, "Clearing away" in done.stdout) == (0, True)
    assert project.value() == "42"


def test_an_environment_that_was_moved_here_is_not_usable(project):
    """Its scripts point to where it was made."""
    mark = project.root / ".venv/installed.json"
    code = "from tools.setup import environment; print(environment.usable())"
    ask = [sys.executable, "-c", code]
    for root, usable in [(str(project.root), "True"), ("/else", "False")]:
        mark.write_text(json.dumps(project.mark | {"root": root}))
        said = subprocess.check_output(ask, cwd=project.root, text=True)
        assert said.strip() == usable
    mark.write_text(json.dumps(project.mark | {"root": str(project.root)}))


def test_ended_in_the_middle_it_ends_pip_and_marks_nothing(project):
    project.require("thing==1.0", "elsewhere==1.0")
    with socket.create_server(("127.0.0.1", 0)) as index:
        index.settimeout(60)
        url = f"http://127.0.0.1:{index.getsockname()[1]}/simple"
        running = subprocess.Popen(
            [sys.executable, "-m", "tools.setup.prepare", "book"],
            cwd=project.root,
            env=project.environment(PIP_INDEX_URL=url, NO_PROXY="*"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = index.accept()  # pip asks, and is left waiting
        running.send_signal(signal.SIGTERM)
        _, words = running.communicate(timeout=60)
        connection.settimeout(60)
        with connection:
            while connection.recv(4096):  # ends when pip has ended
                pass
    assert running.returncode == 130
    assert "Run the same command again" in words
    assert "book" not in project.mark


def test_an_old_python_is_named_with_what_is_needed(tmp_path):
    old = program(tmp_path / "python3", "echo 3 9")
    words = r"needs Python 3\.11 or newer; found: 3\.9\.\s+Get one from"
    with pytest.raises(MissingError, match=words):
        prepare.find_python([old, str(tmp_path / "python3.13")])


def test_of_two_pythons_one_that_was_tried_is_taken(tmp_path):
    new = program(tmp_path / "new", "echo 3 99")
    tried = program(tmp_path / "tried", "echo 3 12")
    old = program(tmp_path / "old", "echo 3 10")
    find = prepare.find_python
    assert find([old, new, tried]) == tried
    assert find([old, new]) == new


def test_a_python_that_cannot_make_a_venv_leaves_none(tmp_path, monkeypatch):
    half = program(
        tmp_path / "python3",
        'case "$2" in *ensurepip*) exit 1;; *) echo 3 12;; esac',
    )
    monkeypatch.setattr(prepare, "VENV", str(tmp_path / ".venv"))
    words = "no module ensurepip[^$]*apt-get install python3.12-venv"
    with pytest.raises(MissingError, match=words):
        prepare.make_environment(half)
    assert not (tmp_path / ".venv").exists()


@pytest.fixture
def no_browser(monkeypatch, tmp_path):
    """A machine on which no browser is to be found."""
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "BROWSER_PLACES", [])
    return browser


def test_without_a_browser_it_says_how_to_get_one(no_browser, monkeypatch):
    tried = []
    monkeypatch.setattr(no_browser, "run", tried.append)
    words = "no Chromium or Chrome[^$]*apt-get install chromium"
    with pytest.raises(MissingError, match=words):
        no_browser.ensure_browser()
    assert tried  # it did not give up before it had tried


def test_a_browser_is_installed_once(no_browser, monkeypatch, tmp_path):
    tried = []

    def install(command):
        tried.append(command)
        program(tmp_path / "chromium", "echo Chromium 156")

    monkeypatch.setattr(no_browser, "run", install)
    no_browser.ensure_browser()
    no_browser.ensure_browser()
    assert len(tried) == 1


def test_a_stub_that_does_not_start_is_no_browser(no_browser, tmp_path):
    program(tmp_path / "chromium-browser", "echo install the snap; exit 1")
    assert no_browser.find_browser() is None
    real = program(tmp_path / "google-chrome", "echo Google Chrome 156")
    assert no_browser.find_browser() == real


def test_the_newest_packages_keep_what_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "ROOT", str(tmp_path))
    monkeypatch.setattr(packages, "VENV", str(tmp_path))
    pulled_in = f"\n{packages.PULLED_IN}\ndocutils==0.21\n"
    book = "jupyter-book==1.0  # held: for the user\nnode==24\n" + pulled_in
    rest = "-r requirements-book.txt\ntorch==2.13.0  # tensors\n" + pulled_in
    (tmp_path / "requirements-book.txt").write_text(book)
    (tmp_path / "requirements.txt").write_text(rest)
    assert Path(packages.loosened()).read_text().splitlines() == [
        "torch>=2.13.0  # tensors",
        "jupyter-book==1.0  # held: for the user",
        "node>=24",
    ]


@pytest.mark.parametrize("name", SET_UP)
def test_an_old_python_can_read_it_to_the_end(name):
    tree = ast.parse((ROOT / name).read_text("utf-8"), feature_version=(3, 6))
    ours = {path[:-3].replace("/", ".") for path in SET_UP}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {node.module}
        else:
            continue
        assert names <= sys.stdlib_module_names | ours


@pytest.mark.parametrize("name", SET_UP)
def test_no_package_index_is_named(name):
    text = (ROOT / name).read_text("utf-8")
    hosts = set(re.findall(r"https?://([^/\"\s]+)", text))
    assert hosts <= {"www.python.org", "pytorch.org"}
