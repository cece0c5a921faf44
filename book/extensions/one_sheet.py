"""All style sheets in one: a page waits for one file before its first line.

The theme, its parts and ours bring fifteen, the first of which asks for one
more when it is there. On a line where each question takes its time, a page
was white until the last of them had come. What in it is for those who write
it, comments and indents, stays here.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(
    r'<link rel="stylesheet"[^>]* href="(?P<root>[./]*)_static/'
    r'(?P<name>[^"?]+)[^"]*" />\s*'
)
IMPORT = re.compile(r'@import "([^"]+)";')
CHARSET = re.compile(r'@charset "[^"]*";', re.IGNORECASE)
BESIDE = re.compile(r"url\((?![\"']?(?:data:|#))[\"']?([^\"')]+)[\"']?\)")
JOINED = "book.css"
# A string as it is, or a comment.
COMMENT = re.compile(r"(\"[^\"\n]*\"|'[^'\n]*')|/\*.*?\*/", re.DOTALL)


def in_order(lists: Iterator[list[str]]) -> list[str]:
    """All sheets of all pages, in an order that is that of each page.

    Raises:
        ValueError: if two pages have the same sheets in another order.
    """
    every: list[str] = []
    for names in sorted(map(tuple, lists), key=len, reverse=True):
        place = 0
        for name in names:
            if name in every:
                at = every.index(name)
                if at < place:
                    raise ValueError(f"{name} comes before, and after")
                place = at + 1
            else:
                every.insert(place, name)
                place += 1
    return every


def sheet(static: Path, name: str, gone: set[Path]) -> str:
    """A sheet with those that it asks for, as it is read from ``static``."""
    path = static / name
    gone.add(path)
    folder = posixpath.dirname(name)

    def asked_for(match: re.Match[str]) -> str:
        other = posixpath.normpath(posixpath.join(folder, match[1]))
        return sheet(static, other, gone)

    def moved(match: re.Match[str]) -> str:
        there = posixpath.normpath(posixpath.join(folder, match[1]))
        return f"url({there})"

    text = CHARSET.sub("", path.read_text("utf-8"))
    return IMPORT.sub(asked_for, BESIDE.sub(moved, text))


def lighter(text: str) -> str:
    """A sheet without comments, indents and empty lines."""
    told = COMMENT.sub(lambda found: found[1] or "", text)
    return re.sub(r"\n\s+", "\n", told).lstrip()


def join_sheets(app: Sphinx, exception: Exception | None) -> None:
    """Write the one, and have every page ask for it."""
    if exception or app.builder.format != "html":
        return
    out = Path(app.outdir)
    static = out / "_static"
    pages = {path: path.read_text("utf-8") for path in out.rglob("*.html")}
    asked = {path: LINK.findall(text) for path, text in pages.items()}
    names = in_order([name for _, name in links] for links in asked.values())
    gone: set[Path] = set()
    text = lighter("\n".join(sheet(static, name, gone) for name in names))
    (static / JOINED).write_text(text, encoding="utf-8")
    version = hashlib.sha256(text.encode()).hexdigest()[:8]
    for path, links in asked.items():
        if links:
            address = f"{links[0][0]}_static/{JOINED}?v={version}"
            link = f'<link rel="stylesheet" href="{address}" />\n'
            first, rest = LINK.sub("\0", pages[path]).split("\0", 1)
            whole = first + link + rest.replace("\0", "")
            path.write_text(whole, encoding="utf-8")
    for path in gone:
        path.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook, once every sheet is as it will be."""
    app.connect("build-finished", join_sheets, priority=990)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
