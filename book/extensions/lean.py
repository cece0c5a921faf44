"""The theme's style sheets without the rules that no page of the book needs.

They have rules for carousels, forms and toasts: three quarters of what a page
would wait for before its first line is drawn. A rule stays if each class that
it names is a word of a page or of a script.
"""

import re
from collections.abc import Iterator
from pathlib import Path

SHEETS = [
    "styles/bootstrap.css",
    "styles/pydata-sphinx-theme.css",
    "styles/sphinx-book-theme.css",
    "mystnb.*.css",
]
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
GROUPS = ("@media", "@supports", "@layer", "@container")
# What stands in brackets is an alternative, or must not be there.
BRACKETS = re.compile(r":(?:not|is|where|has)\((?:[^()]|\([^()]*\))*\)")
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
COMMA = re.compile(r",(?![^()]*\))")
PUT_TOGETHER = "bs-"  # a script makes such names of pieces


def blocks(css: str) -> Iterator[tuple[str, str | None]]:
    """Each rule: what stands before its brace, and in it; None: no brace."""
    place = 0
    while match := re.compile(r"[{;]").search(css, place):
        head = css[place : match.start()].strip()
        if match[0] == ";":
            yield head, None
            place = match.end()
            continue
        depth, end = 1, match.end()
        while depth:
            brace = re.compile(r"[{}]").search(css, end)
            depth += 1 if brace[0] == "{" else -1
            end = brace.end()
        yield head, css[match.end() : end - 1]
        place = end


def lean(css: str, words: set[str]) -> str:
    """A style sheet without the rules that these words do not call for."""
    kept = []
    for head, body in blocks(COMMENT.sub("", css)):
        if body is None:
            kept.append(f"{head};")
        elif head.startswith(GROUPS):
            if inner := lean(body, words):
                kept.append(f"{head}{{{inner}}}")
        elif head.startswith("@"):
            kept.append(f"{head}{{{body}}}")
        elif needed := [one for one in COMMA.split(head) if calls(one, words)]:
            kept.append(f"{','.join(needed)}{{{body.strip()}}}")
    return "\n".join(kept)


def calls(selector: str, words: set[str]) -> bool:
    """Whether a selector may mean something in these pages."""
    names = CLASS.findall(BRACKETS.sub("", selector))
    return all(n in words or n.startswith(PUT_TOGETHER) for n in names)


def make_lean(app, exception):
    """Go through the theme's style sheets, once all pages are written."""
    if exception or app.builder.format != "html":
        return
    out = Path(app.outdir)
    words: set[str] = set()
    for path in [*out.rglob("*.html"), *(out / "_static").rglob("*.js")]:
        words |= set(re.findall(r"[\w-]+", path.read_text("utf-8")))
    for pattern in SHEETS:
        for path in (out / "_static").glob(pattern):
            text = lean(path.read_text("utf-8"), words)
            path.write_text(text + "\n", encoding="utf-8")


def setup(app):
    """Register the hook, after the labs' scripts and the theme's own."""
    app.connect("build-finished", make_lean, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
