"""Guards on the built site that need no browser: they read its files."""

import gc
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

SHORTEST_ALT = 40
FETCHES = {"script", "link", "img", "iframe", "source", "video", "object"}
LINKS = ("href", "src", "srcset", "data", "poster", "action")
HASH = re.compile(r"[0-9a-f]{16,}", re.IGNORECASE)
IN_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
SCRIPT_LEFT = re.compile(
    r"THEBE_JS_URL|thebe_selector|mathjax|require\.min\.js"
    r"|html-manager|unpkg\.com|jsdelivr|cdnjs|fontawesome",
    re.IGNORECASE,
)
FILE_LEFT = re.compile(r"fontawesome|webfonts|thebe|mathjax|\.map$", re.I)


def pages(site: Path) -> list[Path]:
    """The site's pages, without what lies beside them."""
    return sorted(
        path
        for path in site.rglob("*.html")
        if not {"_static", "_sources"} & set(path.parts)
    )


@cache
def _parse(path: Path, changed: int) -> BeautifulSoup:
    # All of it stays: to look for garbage in it took as long as to read it.
    gc.disable()
    try:
        return BeautifulSoup(path.read_text("utf-8"), "html.parser")
    finally:
        gc.enable()


def parse(path: Path) -> BeautifulSoup:
    """A page's elements; read again only when the file has changed."""
    return _parse(path, path.stat().st_mtime_ns)


def name(page: Path, site: Path) -> str:
    """How a finding calls a page."""
    return page.relative_to(site).as_posix()


def is_elsewhere(address: str) -> bool:
    """Whether an address leaves the site."""
    return bool(urlsplit(address).netloc)


def addresses(element: Tag) -> list[str]:
    """All that an element points to."""
    return [str(element[link]) for link in LINKS if element.get(link)]


def fetched_elsewhere(site: Path) -> list[str]:
    """No page and no style sheet fetches anything from another host."""
    found = [
        f"{name(page, site)} fetches {address}"
        for page in pages(site)
        for element in parse(page).find_all(FETCHES)
        for address in addresses(element)
        if is_elsewhere(address) and element.get("rel") != ["canonical"]
    ]
    for sheet in sorted(site.rglob("*.css")):
        for match in IN_STYLE.finditer(sheet.read_text("utf-8")):
            address = match[1] or match[2]
            if is_elsewhere(address):
                found.append(f"{name(sheet, site)} fetches {address}")
    return found


@cache
def _targets(page: Path, changed: int) -> set[str]:
    ids = {str(tag["id"]) for tag in _parse(page, changed).find_all(id=True)}
    return ids | {"", "top"}


def targets(page: Path) -> set[str]:
    """The fragments that a page can be entered at."""
    return _targets(page, page.stat().st_mtime_ns)


def dead_link(page: Path, address: str) -> bool:
    """Whether an address within the site leads nowhere."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return False
    target = page
    if parts.path:
        target = (page.parent / unquote(parts.path)).resolve()
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        return True
    fragment = unquote(parts.fragment)
    is_page = target.suffix == ".html"
    return is_page and "=" not in fragment and fragment not in targets(target)


def dead_links(site: Path) -> list[str]:
    """Every link within the site leads to a file, and to a place in it."""
    found = [
        f"{name(page, site)} leads to {address}, which does not exist"
        for page in pages(site)
        for element in parse(page).find_all(True)
        for address in addresses(element)
        if dead_link(page, address)
    ]
    for sheet in sorted(site.rglob("*.css")):
        for match in IN_STYLE.finditer(sheet.read_text("utf-8")):
            if dead_link(sheet, match[1] or match[2]):
                found.append(f"{name(sheet, site)} wants {match[0]}")
    return found


def undescribed_figures(site: Path) -> list[str]:
    """Every picture in a text has words of its own for who cannot see it."""
    found = []
    for page in pages(site):
        for image in parse(page).select("main img"):
            alt = str(image.get("alt", "")).strip()
            file = Path(str(image.get("src", ""))).stem
            which = f"{name(page, site)}: {file[:12]}"
            if HASH.search(alt) or (alt and alt == file):
                found.append(f"{which} has a file's name for words")
            elif len(alt) < SHORTEST_ALT:
                found.append(f"{which} says only {alt!r}")
    return found


def left_overs(site: Path) -> list[str]:
    """Nothing of the scripts and fonts that the book does without."""
    found = [
        f"{name(path, site)} is published"
        for path in sorted(site.rglob("*"))
        if path.is_file() and FILE_LEFT.search(name(path, site))
    ]
    for page in pages(site):
        for element in parse(page).find_all(["script", "link"]):
            if match := SCRIPT_LEFT.search(str(element)):
                found.append(f"{name(page, site)} has {match[0]} in its head")
    return found


def undrawn_formulas(site: Path) -> list[str]:
    """Every formula is drawn, without a script, and without an error.

    Two backslashes for one are no error: they break the line, and what they
    stand before is spelt out. In a sentence no formula has a second line.
    """
    found = []
    for page in pages(site):
        for formula in parse(page).select(".math"):
            broken = formula.name == "span" and formula.select(".newline")
            wrong = broken or formula.select(".katex-error")
            if wrong or not formula.select(".katex"):
                text = " ".join(formula.get_text().split())[:60]
                found.append(f"{name(page, site)}: not drawn: {text}")
    return found
