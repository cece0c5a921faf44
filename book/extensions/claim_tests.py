"""The tests of claims and of conclusions, as they are run, on two pages.

The directive ``claim-tests`` writes each file of ``tests/claims`` in pieces,
in the order of the book and under the chapter's title: every test under
its name, to which the page of claims links, and between them what they share.
``conclusion-tests`` does the same with ``tests/conclusions``.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from chapter_link import title_of
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

PAGE = "book/claim-tests"
FOLDER = "tests/claims"


def anchor(chapter: str, test: str) -> str:
    """Where a test stands on the page."""
    return f"{chapter}-{test}".replace("_", "-").replace("/", "-")


def linked(page: str, chapter: str, test: str) -> nodes.reference:
    """A test's name, as a link from a page beside the one of its code."""
    link = nodes.reference("", "", nodes.literal("", test), internal=True)
    place = anchor(chapter, test)
    link["refuri"] = f"{page.rpartition('/')[2]}.html#{place}"
    return link


def chapter_of(path: Path) -> str:
    """The chapter of a file of tests: efficient/test_flash.py is of one."""
    return path.with_suffix("").as_posix().replace("test_", "")


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """A file cut before each test and after it: its name, and its lines.

    What stands between two tests has no name: it is of the next, if of any.
    """
    lines = text.splitlines()
    cuts = [(1, "")]
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name[:5] == "test_":
            marks = [mark.lineno for mark in node.decorator_list]
            start = min([node.lineno, *marks])
            cuts.append((titled(lines, start), node.name))
            cuts.append((node.end_lineno + 1, ""))
    ends = [start for start, _ in cuts[1:]] + [len(lines) + 1]
    for (start, name), end in zip(cuts, ends, strict=True):
        if text := "\n".join(lines[start - 1 : end - 1]).strip():
            yield name, text


def titled(lines: list[str], start: int) -> int:
    """Where a test starts with the comment above it, a title of what follows.

    >>> titled(["x = 1", "", "# Masks", "", "", "def test_mask():"], 6)
    3
    """
    for number in range(start - 1, 0, -1):
        line = lines[number - 1]
        if line.startswith("#"):
            start = number
        elif line:
            break
    return start


class Tests(Directive):
    """Every file, a section each."""

    folder = FOLDER

    def run(self) -> list[nodes.Node]:
        """Read the files anew."""
        env = self.state.document.settings.env
        content: list[nodes.Node] = []
        folder = Path(env.srcdir, self.folder)
        places = [*getattr(env, "external_site_map", ())]  # of the contents

        def place(path: Path) -> int:
            name = f"book/{chapter_of(path.relative_to(folder))}"
            return places.index(name) if name in places else len(places)

        for path in sorted(sorted(folder.rglob("test_*.py")), key=place):
            env.note_dependency(str(path))
            chapter = chapter_of(path.relative_to(folder))
            name = chapter.replace("/", "-")
            section = nodes.section(ids=[f"tests-of-{name}"])
            page = Path(env.doc2path(f"book/{chapter}"))
            section += nodes.title("", title_of(page))
            for name, text in pieces(path.read_text("utf-8")):
                place = [anchor(chapter, name)] if name else []
                block = nodes.literal_block(text, text, language="python")
                section += nodes.container("", block, ids=place)
            content.append(section)
        return content


class OurTests(Tests):
    """Those of the conclusions."""

    folder = "tests/conclusions"


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about the directives."""
    app.add_directive("claim-tests", Tests)
    app.add_directive("conclusion-tests", OurTests)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
