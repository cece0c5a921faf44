"""Look at what `make offline` has made: a stage of its own, weekly.

    python -m tools.verify.offline

The archive is opened from a disk in a browser without a network; the PDF is
read page by page.
"""

import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright
from pypdf import PdfReader
from pypdf.generic import Destination

from tools.build.notebooks import files_in_contents
from tools.build.offline import ARCHIVE, NAME, PRINTED, SITE, address_of
from tools.setup.browser import find_browser

MOST = 40e6  # bytes: of either file
LEAST_PAGES = 10  # of paper, for each page of the site, on the average
NUMBER = re.compile(r" · \d+$")  # at the foot of a page of paper
FOUND = "#search-results a[href*='dot_product']"


def archive(path: Path = ARCHIVE, site: Path = SITE) -> Iterator[str]:
    """What is wrong with the archive."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(path) as packed:
            packed.extractall(folder)
        home = Path(folder, NAME)
        there = {p.relative_to(home) for p in home.rglob("*") if p.is_file()}
        ours = {p.relative_to(site) for p in site.rglob("*") if p.is_file()}
        yield from (f"{name} is in one alone" for name in there ^ ours)
        yield from from_disk(home)


def from_disk(home: Path) -> Iterator[str]:
    """What does not work without a network: pages, search, labs."""
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox"]
        )
        context = browser.new_context(offline=True)
        page = context.new_page()
        page.on("requestfailed", lambda it: wrong.append(f"no {it.url}"))
        page.on("pageerror", lambda it: wrong.append(f"error: {it}"))
        page.goto(Path(home, "search.html").as_uri() + "?q=softmax")
        page.locator(FOUND).first.wait_for(timeout=20_000)
        page.goto(Path(home, "book/dot_product.html").as_uri())
        page.locator(".lab-runs").wait_for(timeout=20_000)
        page.locator(".answer-place input").wait_for(timeout=20_000)
        browser.close()
    yield from wrong


def printed(path: Path = PRINTED) -> Iterator[str]:
    """What is wrong with the PDF."""
    reader = PdfReader(path)
    heads = [one for one in reader.outline if isinstance(one, Destination)]
    names = files_in_contents()
    if len(heads) != len(names):
        yield f"{len(heads)} bookmarks for {len(names)} pages"
    begins = [reader.get_destination_page_number(one) for one in heads]
    if begins != sorted(begins) or begins[:1] != [0]:
        yield "the bookmarks are in another order than the pages"
    if len(reader.pages) < LEAST_PAGES * len(names):
        yield f"only {len(reader.pages)} pages"
    for place, page in enumerate(reader.pages, 1):
        lines = page.extract_text().splitlines()
        feet = [line for line in lines if NUMBER.search(line)]
        if len(lines) <= len(feet):
            yield f"page {place} has no text"
        if not any(line.endswith(f" · {place}") for line in feet):
            yield f"page {place} is numbered otherwise: {feet}"
        for note in page.get("/Annots", []):
            if address_of(note.get_object()).startswith("file:"):
                yield f"page {place} leads to a file of the maker's"


def main() -> int:
    """Say what is wrong; the exit status."""
    found = [*archive(), *printed()]
    for path in (ARCHIVE, PRINTED):
        if path.stat().st_size > MOST:
            found.append(f"{path.name} is larger than {MOST:,.0f} bytes")
    for line in found:
        print(line, file=sys.stderr)
    print("The book to take along is whole." if not found else "It is not.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
