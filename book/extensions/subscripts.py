"""A subscript k as the page's own letter, set lower.

Titles cannot hold formulas, so that of the chapter on the scale is written
with Unicode's letter ₖ. No serif that readers have knows it: another font's
letter stood in the title, in the menus and on the cards. In what a browser
shows as text it becomes an element; its own title, code and drawings keep the
letter, which the fonts of interfaces and of code have.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

KEPT = "title|script|style|svg|math|option|pre|code|textarea"
PIECES = re.compile(rf"<({KEPT})\b.*?</\1>|<[^>]*>|([^\s<>]*)ₖ", re.DOTALL)
# No line ends between it and the letter before it, though one goes round it.
LOWER = '<span class="lowered">{}<sub class="letter">k</sub></span>'


def lowered(page: str) -> str:
    """A page whose text has no ₖ any more."""

    def changed(piece: re.Match[str]) -> str:
        return piece[0] if piece[2] is None else LOWER.format(piece[2])

    return PIECES.sub(changed, page)


def lower_all(app: Sphinx, exception: Exception | None) -> None:
    """Write each page that has such a letter anew."""
    if exception or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        page = path.read_text("utf-8")
        if "ₖ" in page:
            path.write_text(lowered(page), "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the last step."""
    app.connect(
        "build-finished", lower_all, priority=960
    )  # it is found by its letter
    return {"parallel_read_safe": True, "parallel_write_safe": True}
