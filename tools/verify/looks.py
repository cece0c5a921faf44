"""Look anew, in the browser, only at what has changed since it was looked at.

    .venv/bin/python -m tools.verify.looks           what has changed
    .venv/bin/python -m tools.verify.looks --all     everything

Both write what they have seen to be right to ``tests/accepted/looks.json``:
of each test that opened pages of the site, which pages these were, and one
digest of all that its outcome hangs on. That is the pages with the pictures,
styles and scripts that they name or fetch, the test's own file, the guards,
the versions of the browser's driver and of axe, and, where a test computes
what a lab must show, the whole package. A test whose digest is the recorded
one would see what it saw, and is not run again; a changed byte anywhere among
these, and it is. A test that opens what is no page of the site, copies with a
planted fault above all, or that reads the site's files besides, hangs on the
whole site.

As a plugin of pytest, ``-p tools.verify.looks --looks=changed``, it writes
nothing: so `make test` uses it. Without that option every test is run.
"""

import argparse
import hashlib
import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path("tests", "accepted", "looks.json")
SITE, VISITED = "site", "visited"  # fixtures: its folder, what was asked of it
LOOK, AS_BEFORE = "a look", "as before"
EVERYTHING = "*"  # in place of a page: the whole site
DRIVERS = ("playwright", "axe-playwright-python")
# What every test of the site hangs on, besides the file that it stands in.
SHARED = ("tests/conftest.py", "tests/site/conftest.py")
SHARED += ("tests/guards", "tests/assertions")
PACKAGE = ("src/selfattn", "tools/build/answers.py", "book/extensions")
COMPUTES = re.compile(r"selfattn|answers|predict")  # a test that needs that
BROUGHT = re.compile(r"""(?:src|href|data-[a-z]+)=["']([^"'#?]+)""")
LABS = "_static/labs"  # scripts, which bring one another


def pytest_addoption(parser: pytest.Parser) -> None:
    """Whether to look at everything or at what has changed; and to write."""
    group = parser.getgroup("looks")
    group.addoption("--looks", choices=("all", "changed"), default="all")
    group.addoption("--record-looks", action="store_true")


def pytest_configure(config: pytest.Config) -> None:
    """In each process; what they report comes together in the first."""
    config.pluginmanager.register(Looks(config), "looks-of-this-run")


class Looks:
    """What was looked at before, and what is looked at in this run."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.record: bool = config.getoption("record_looks")
        self.saving = config.getoption("looks") == "changed"
        self.known = read(self.root / RECORD)
        self.new: dict[str, Any] = {}
        self.kept: dict[str, Any] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Leave a test out that would see what it saw: it is done."""
        before = self.known.get(pyfuncitem.nodeid)
        if not (self.saving and before and VISITED in pyfuncitem.fixturenames):
            return None
        if before != self.seen(pyfuncitem, before["pages"]):
            return None
        pyfuncitem.user_properties.append((AS_BEFORE, before))
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Function, call: pytest.CallInfo
    ):
        """Have a test's report say what it has looked at."""
        passed = call.when == "call" and not call.excinfo
        looked = VISITED in getattr(item, "fixturenames", ())
        if passed and looked and AS_BEFORE not in dict(item.user_properties):
            look = self.seen(item, opened(item))
            item.user_properties.append((LOOK, look))
        return (yield)

    def seen(self, item: pytest.Function, pages: list[str]) -> dict[str, Any]:
        """These pages, and one digest of all that a test hangs on."""
        site = item.funcargs[SITE]
        folders = SHARED
        if COMPUTES.search(item.path.read_text("utf-8")):
            folders += PACKAGE
        known = [f"{name} {installed(name)}" for name in DRIVERS]
        known.append(file_digest(item.path))
        known += [folder_digest(self.root / name) for name in folders]
        for page in pages:
            whole = page == EVERYTHING
            known.append(folder_digest(site) if whole else brought(site, page))
        return {"pages": pages, "digest": digest("\n".join(known).encode())}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what the tests that passed looked at."""
        if report.when != "call" or not report.passed:
            return
        for name, look in report.user_properties:
            if name == LOOK:
                self.new[report.nodeid] = look
            elif name == AS_BEFORE:
                self.kept[report.nodeid] = look

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """How many looks there were, and write them if that was asked."""
        if self.new or self.kept:
            terminalreporter.write_line(
                f"looks: {len(self.new)} taken, {len(self.kept)} not again, "
                "since nothing that they hang on has changed"
            )
        if self.record:
            write(self.root / RECORD, self.kept | self.new)


def opened(item: pytest.Function) -> list[str]:
    """The files of the site that a test opened but those that they name."""
    site, visits = item.funcargs[SITE], item.funcargs[VISITED]
    homes = (f"{site.as_uri()}/", item.funcargs.get("site_url", ""))
    files = set()
    for address in visits:
        home = next((h for h in homes if h and address.startswith(h)), None)
        path = re.split("[?#]", address.removeprefix(home or ""))[0]
        files.add(path if home and path else EVERYTHING)
    if not files or SITE in inspect.signature(item.function).parameters:
        files.add(EVERYTHING)
    if EVERYTHING in files:
        return [EVERYTHING]
    named = {one for page in files for one in parts(site, page)}
    return sorted(one for one in files if site / one not in named)


@cache
def brought(site: Path, page: str) -> str:
    """A digest of a page, or another file, and of all that it names."""
    files = [site / page, *parts(site, page)]
    known = [file_digest(file) for file in files]
    return digest("\n".join(known).encode())


@cache
def parts(site: Path, page: str) -> list[Path]:
    """The files of the site, no pages themselves, that a page names."""
    path = site / page
    if path.suffix != ".html" or not path.is_file():
        return []
    text = path.read_text("utf-8")
    named = {(path.parent / name).resolve() for name in BROUGHT.findall(text)}
    if "data-lab" in text:
        named |= set((site / LABS).glob("*"))
    return sorted(f for f in named if f.suffix != ".html" and f.is_file())


@cache
def file_digest(path: Path) -> str:
    """A digest of a file, if there is one."""
    return digest(path.read_bytes()) if path.is_file() else "gone"


@cache
def folder_digest(folder: Path) -> str:
    """A digest of a folder's files and their names, or of a file."""
    files = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
    total = hashlib.sha256()
    for file in files:
        if file.is_file() and "__pycache__" not in file.parts:
            total.update(file.relative_to(folder).as_posix().encode())
            total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def digest(data: bytes) -> str:
    """Enough of SHA-256 that no two differ by chance."""
    return hashlib.sha256(data).hexdigest()[:24]


@cache
def installed(name: str) -> str:
    """The version of a package."""
    return importlib.metadata.version(name)


def read(path: Path) -> dict[str, Any]:
    """What is on record, by the tests' names."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def write(path: Path, looks: dict[str, Any]) -> None:
    """Put the looks on record, one a line, so that they merge."""
    lines = [
        f" {json.dumps(name)}: {json.dumps(looks[name])}"
        for name in sorted(looks)
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> int:
    """Look, and write down what was seen to be right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--all", action="store_true", help="also at what has not changed"
    )
    looks = "all" if parser.parse_args().all else "changed"
    from tools.verify.stages import CORES

    command = [sys.executable, "-m", "pytest", "-q", "tests/site"]
    command += [f"--numprocesses={CORES + 1}", "--dist=worksteal"]
    command += ["-p", "tools.verify.looks", f"--looks={looks}"]
    return subprocess.call([*command, "--record-looks"], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
