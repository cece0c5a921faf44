"""What a search engine and a shared link say of a page.

A description in each page's head: what the first page says that one can do
afterwards, and how the page begins. For links that are shared also its title,
its kind and the book's name. Addresses and a picture are told
where the build knows where the site will stand (`take_along`): who shows a
link fetches them from there, and no page does.
"""

import os
import shutil
from html import escape
from pathlib import Path

from docutils import nodes
from reading import WAY
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from take_along import site_address

MOST, LEAST = 200, 40  # characters of a description
PICTURE = "readme-page.png"


def said(paragraph: nodes.Node) -> str:
    """A paragraph's words in one line."""
    return " ".join(paragraph.astext().split())


def shortened(text: str) -> str:
    """As many sentences as fit; or as many words, and … behind them."""
    if len(text) <= MOST:
        return text
    end = max(text.rfind(end, 0, MOST) for end in (". ", "? "))
    if end >= LEAST:
        return text[: end + 1]
    return text[: text.rfind(" ", 0, MOST - 1)].rstrip(",;") + " …"


def promises(first_page: nodes.document) -> dict[str, str]:
    """What the way through the book says of each page, by its file's name."""
    found = {}
    for section in first_page.findall(nodes.section):
        entries = (
            section.findall(nodes.list_item) if WAY in section["ids"] else []
        )
        for entry in entries:
            link = next(entry.findall(pending_xref))
            words = said(entry).removeprefix(said(link))
            for needs in entry.findall(nodes.emphasis):
                words = words.replace(said(needs), "")
            words = words.removeprefix(":").strip()
            found[Path(link["reftarget"]).stem] = words[:1].upper() + words[1:]
    return found


def beginning(document: nodes.document) -> str:
    """A page's first paragraph, if it has no formula."""
    for one in document.findall(nodes.paragraph):
        own = isinstance(one.parent, nodes.section)
        if own and "reading-time" not in one["classes"]:
            return "" if any(one.findall(nodes.math)) else said(one)
    return ""


def description(document: nodes.document, promised: str) -> str:
    """A page in at most two hundred letters."""
    begins = beginning(document)
    if begins.startswith(promised.removesuffix(".")):
        promised = ""  # it says that already
    return shortened(f"{promised} {begins}".strip())


def tags(told: dict[str, str]) -> str:
    """The lines of a head that say this, by what each is called."""
    lines = []
    for name, content in told.items():
        kind = "property" if name.startswith("og:") else "name"
        lines.append(f'<meta {kind}="{name}" content="{escape(content)}" />')
    return "\n".join(lines) + "\n"


def told_of(
    title: str, words: str, book: str, site: str = "", page: str = ""
) -> dict[str, str]:
    """What is told of a page; of its address where the site has one."""
    told = {"description": words, "og:type": "article", "og:title": title}
    told |= {"og:site_name": book, "og:description": words}
    told |= {"twitter:card": "summary"}
    if site:
        told |= {"og:url": f"{site}{page}.html"}
        told |= {"og:image": f"{site}_static/{PICTURE}"}
        told |= {"twitter:card": "summary_large_image"}
    return {name: content for name, content in told.items() if content}


def describe(app: Sphinx, pagename, templatename, context, doctree) -> None:
    """Add a page's lines to its head."""
    if doctree is None:
        return
    env, root = app.env, app.config.root_doc
    if not hasattr(env, "promises"):
        env.promises = promises(env.get_doctree(root))
    promised = env.promises.get(Path(pagename).name, "")
    title, book = (env.titles[name].astext() for name in (pagename, root))
    words = description(doctree, promised)
    told = told_of(title, words, book, site_address(os.environ), pagename)
    context["metatags"] = context.get("metatags", "") + tags(told)


def bring_picture(app: Sphinx, exception: Exception | None) -> None:
    """The picture of a shared link, where the site has an address."""
    path = Path(app.srcdir) / "book" / PICTURE
    if exception or app.builder.format != "html" or not path.exists():
        return
    if site_address(os.environ):
        shutil.copy(path, Path(app.outdir) / "_static" / PICTURE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hooks."""
    app.connect("html-page-context", describe)
    app.connect("build-finished", bring_picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
