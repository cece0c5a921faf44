"""The book to take along: the site as an archive, and all pages as a PDF.

    python -m tools.build.offline

The archive works from a disk as it is, search and labs too; the PDF is what
a browser prints of each page, with labs as still pictures, joined under
bookmarks and numbered through, in which a link to another page leads to that
page's beginning.
"""

import io
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Page, sync_playwright
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import Link
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    Fit,
    NameObject,
    TextStringObject,
)

from tools.build.notebooks import files_in_contents
from tools.build.website import BUILD, ROOT, SITE, SiteError, build
from tools.setup.browser import find_browser

NAME = "self-attention-verified"
ARCHIVE = BUILD / f"{NAME}.zip"
PRINTED = BUILD / f"{NAME}.pdf"
TITLE = "Self-Attention, Verified"
MARGIN = "18mm"
FOOT = """
@page {{ @bottom-center {{
  content: {title} " · " counter(page); font: 8pt serif; color: black;
}} }}
html {{ counter-reset: page {before}; }}
"""
# Told to a page: on paper, nothing is folded.
WHOLE = "document.documentElement.dataset.paper = 'whole'"


def write_archive(site: Path, target: Path) -> None:
    """The site in one folder of a ZIP: the same files give the same bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(site.rglob("*")):
            if path.is_file():
                name = f"{NAME}/{path.relative_to(site).as_posix()}"
                told = zipfile.ZipInfo(name)  # its date is that of all ZIPs
                told.compress_type = zipfile.ZIP_DEFLATED
                told.external_attr = 0o644 << 16
                archive.writestr(told, path.read_bytes())


def printed(
    page: Page, address: str, whole: bool = True, before: int = 0
) -> bytes:
    """One page of the site as PDF, light, with its headings as bookmarks.

    ``whole``, with all that is folded; or as a reader prints it. So many
    pages of paper stand ``before`` it: its own are numbered from there.
    """
    page.goto(address, wait_until="load")
    page.evaluate("document.fonts.ready")
    if whole:
        page.evaluate(WHOLE)
    title = json.dumps(page.title(), ensure_ascii=False)
    page.add_style_tag(content=FOOT.format(title=title, before=before))
    page.emulate_media(media="print", color_scheme="light")
    return page.pdf(
        format="A4",
        margin=dict.fromkeys(("top", "right", "bottom", "left"), MARGIN),
        outline=True,
        tagged=True,
    )


def headings(page: Page) -> list[str]:
    """The words of an open page's headings, without the links to them."""
    texts = page.locator("article :is(h1, h2, h3, h4)").all_text_contents()
    return [text.removesuffix("#") for text in texts]


def all_printed(site: Path) -> Iterator[tuple[str, PdfReader, list[str]]]:
    """Each page of the contents, by its path in the site; its headings."""
    before = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox"]
        )
        for name in files_in_contents():
            path = site / f"{name}.html"
            page = browser.new_page(viewport={"width": 720, "height": 1000})
            content = printed(page, path.as_uri(), before=before)
            reader = PdfReader(io.BytesIO(content))
            before += len(reader.pages)
            yield f"{name}.html", reader, headings(page)
            page.close()
        browser.close()


def write_pdf(site: Path, target: Path) -> None:
    """All pages in one PDF, a bookmark a page, its headings under it."""
    writer = PdfWriter()
    begins = {}
    for name, reader, heads in all_printed(site):
        begins[(site / name).as_uri()] = len(writer.pages)
        lead_to_places(reader)
        spell_out(reader, heads)
        writer.append(reader, import_outline=True)
        print(f"{name}: {len(reader.pages)} pages", flush=True)
    lead_home(writer, begins, site.as_uri())
    writer.add_metadata({"/Title": TITLE, "/Author": "The contributors"})
    writer.page_mode = "/UseOutlines"
    writer.compress_identical_objects()
    writer.write(target)


def spell_out(reader: PdfReader, heads: list[str]) -> None:
    """Bookmarks in the words of their headings.

    The browser leaves out the space at which a heading's line ends.
    """
    whole = {"".join(head.split()): head for head in heads}
    for mark in bookmarks(reader.root_object["/Outlines"].get_object()):
        if said := whole.get("".join(str(mark["/Title"]).split())):
            mark[NameObject("/Title")] = TextStringObject(said)


def bookmarks(above: Any) -> Iterator[Any]:
    """Each bookmark below one, in their order."""
    mark = above.get("/First")
    while mark:
        yield mark.get_object()
        yield from bookmarks(mark.get_object())
        mark = mark.get_object().get("/Next")


def lead_to_places(reader: PdfReader) -> None:
    """Links by name lead to a place: other pages have the same names."""
    places = reader.named_destinations
    for page in reader.pages:
        for reference in page.get("/Annots", ArrayObject()):
            note = reference.get_object()
            if isinstance(name := note.get("/Dest"), str) and name in places:
                note[NameObject("/Dest")] = places[name].dest_array


def lead_home(writer: PdfWriter, begins: dict[str, int], site: str) -> None:
    """Links to the site's files: to their page of the PDF, or none at all."""
    for place, page in enumerate(writer.pages):
        kept = ArrayObject()
        links = []
        for reference in page.get("/Annots", ArrayObject()):
            note = reference.get_object()
            address = address_of(note)
            if not address.startswith("file:"):
                kept.append(reference)
            elif (target := without_fragment(address)) in begins:
                links.append((note["/Rect"], begins[target]))
        page[NameObject("/Annots")] = kept
        for where, target in links:
            link = Link(rect=where, target_page_index=target, fit=Fit.fit())
            writer.add_annotation(place, link)


def address_of(note: DictionaryObject) -> str:
    """Where an annotation leads outside its PDF, or nothing."""
    action = note.get("/A", {})
    return str(action.get_object().get("/URI", "")) if action else ""


def without_fragment(address: str) -> str:
    """The file that an address means."""
    return Path(unquote(urlsplit(address).path)).as_uri()


def main() -> int:
    """Build the site if need be, then both files."""
    try:
        build()
    except SiteError as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1
    write_archive(SITE, ARCHIVE)
    write_pdf(SITE, PRINTED)
    for path in (ARCHIVE, PRINTED):
        size = path.stat().st_size / 1e6
        print(f"{path.relative_to(ROOT)}: {size:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
