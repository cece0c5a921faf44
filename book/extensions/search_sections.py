"""Search by section: what each section says, in one script for search.js.

The theme's search knows pages, and quotes them by fetching them, which a page
opened from disk may not. Here the text of every section is written beside the
search page when the site is built, in the order in which the book is read.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from glossary import read_glossary
from sphinx.application import Sphinx

# Formulas once, no badges, no buttons; code is found by what is said of it.
UNREAD = ".katex-html, annotation, .claim-test, summary, .headerlink, script"
UNREAD += ", style, div.highlight, .lab-place, table.claims, .printed-tables"
UNREAD += ", .reading-time"
FIRST = "a.term:not(.used)"  # where a term of the glossary is explained
GLOSSARY = Path("book", "glossary.toml")
SHORT = re.compile(r"(\w+) for short")  # "...; GQA for short."
CODE = re.compile(r'(?<=<div class="highlight">)<pre>.*?</pre>', re.DOTALL)
# What a formula draws is said by signs; what may be raised without one.
RAISED = {"⊤", "′", "∗", "+", "−"}
# Whatever stands below the last, on the page: its words run on otherwise.
BLOCKS = "p, li, dt, dd, td, th, br, div, blockquote, pre, figcaption, h2, h3"
HEADING = re.compile("^h[1-6]$")
# Of what repeats the chapters, or is code, the title alone is found.
REPEATING = {
    "book/claim-tests",
    "book/conclusion-tests",
    "book/conclusions",
}
THEMES_OWN = ["searchindex.js", "_static/searchtools.js"]


def sections(html: str, page: str) -> Iterator[dict[str, str | list[str]]]:
    """Each section of a page but the solutions: address, titles and text.

    And the terms of the glossary that it explains.
    """
    article = article_of(html)
    if article is None or article.h1 is None:
        return
    for part in article.select(UNREAD):
        part.extract()
    say_signs(article)
    for folded in article.select("details.second-reading"):
        folded.unwrap()  # its sections are found like any others
    chapter = words(article.h1)
    for section in article.select("section"):
        heading = section.find(HEADING, recursive=False)
        if heading is None or words(heading) == "Solution":
            continue
        own = [
            child
            for child in section.children
            if isinstance(child, Tag)
            and child.name != "section"
            and child is not heading
        ]
        yield {
            "address": f"{page}#{section['id']}",
            "chapter": chapter,
            "title": words(heading),
            "text": " ".join(filter(None, map(words, own))),
            "terms": within(own, FIRST),
            "strong": " ".join(within(own, "strong")),
        }


def say_signs(article: Tag) -> None:
    """Put roots, powers and fractions of formulas into signs."""
    for root in article.select("msqrt"):
        root.insert_before("√")
    for raised in article.select("msup"):
        if words(raised.find_all(recursive=False)[-1]) not in RAISED:
            raised.find_all(recursive=False)[0].insert_after("^")
    for fraction in article.select("mfrac"):
        fraction.find_all(recursive=False)[0].insert_after("/")


def within(parts: list[Tag], wanted: str) -> list[str]:
    """What stands in the elements of a kind, in the order of the parts."""
    return [words(one) for part in parts for one in part.select(wanted)]


def article_of(html: str) -> Tag | None:
    """A page's article without its code, which is half of its elements."""
    start, end = html.find("<article"), html.rfind("</article>")
    uncoded = CODE.sub("", html[start:end])
    article = BeautifulSoup(uncoded, "html.parser").article
    for block in article.select(BLOCKS) if article else ():
        block.insert_after(" ")
    return article


def words(element: Tag) -> str:
    """The text of an element, its white space folded."""
    return re.sub(r"\s+", " ", element.get_text()).strip()


def terms(path: Path) -> list[dict[str, str | list[str]]]:
    """What each term of the glossary means, and the words that ask for it."""
    if not path.exists():
        return []
    return [
        {
            "name": term.name,
            "says": term.says,
            "forms": [term.name, *term.forms, *SHORT.findall(term.says)],
            "address": f"book/glossary.html#{term.id}",
            "more": f"book/{term.more.replace('#', '.html#')}",
        }
        for term in read_glossary(path)
    ]


def write_sections(app: Sphinx, exception: Exception | None) -> None:
    """Write the script, in the order of the table of contents."""
    if exception or app.builder.format != "html":
        return
    site, found = Path(app.outdir), []
    for document in app.env.collect_relations():
        page = app.builder.get_target_uri(document)
        told = [*sections((site / page).read_text("utf-8"), page)]
        found += told[:1] if document in REPEATING else told
    data = {
        "searchSections": found,
        "searchTerms": terms(Path(app.srcdir, GLOSSARY)),
    }
    script = site / "_static" / "search-sections.js"
    with script.open("w", encoding="utf-8") as file:
        for name, known in data.items():
            text = json.dumps(known, ensure_ascii=False, separators=(",", ":"))
            file.write(f"window.{name} = {text};\n")
    for name in THEMES_OWN:
        (site / name).unlink(missing_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook; pages are complete by then."""
    app.connect("build-finished", write_sections, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
