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
PIECES = re.compile(rf"<({KEPT})\b.*?</\1>|<[^>]*>|(ₖ)", re.DOTALL)
# It is not parted from the letter before it, though the line goes round it.
LOWER = '\u2060<sub class="letter">k</sub>'


def lowered(page: str) -> str:
    """A page whose text has no ₖ any more."""
    return PIECES.sub(lambda piece: LOWER if piece[2] else piece[0], page)


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
