"""The glossary: a marked term shows what it means, and leads to its entry.

A link to ``glossary.md#causal`` becomes a term; so does, after that, the first
use in each part of a chapter, which is found here. ``terms.js`` shows what a
term means to whoever points at it or comes to it by keyboard. The directive
``glossary-terms`` writes the page. `glossary` reads the entries.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import yaml
from chapter_link import chapter_link
from docutils import nodes
from docutils.parsers.rst import Directive
from glossary import Term, read_glossary
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

PAGE = "book/glossary"


def entries(app: Sphinx) -> list[Term]:
    """The book's terms, in the order of the alphabet."""
    return read_glossary(Path(app.srcdir, f"{PAGE}.toml"))


def chapters(root: Path) -> dict[str, int]:
    """Each chapter's place in the table of contents, by its name."""
    path = root / "_toc.yml"
    if not path.exists():
        return {}
    parts = yaml.safe_load(path.read_text("utf-8")).get("parts", [])
    files = [one["file"] for part in parts for one in part["chapters"]]
    notebooks = [one for one in files if (root / f"{one}.ipynb").exists()]
    names = [name.removeprefix("book/") for name in notebooks]
    return {name: place for place, name in enumerate(names)}


def note_changes(app: Sphinx, config: Config) -> None:
    """Have every page read again when an entry has changed."""
    text = Path(app.srcdir, f"{PAGE}.toml").read_bytes()
    config["glossary_digest"] = hashlib.sha256(text).hexdigest()


def tells(node: nodes.Node) -> bool:
    """Whether it is a marked term, or text that stands in a paragraph."""
    if isinstance(node, nodes.reference):
        return "term" in node
    return isinstance(node, nodes.Text) and isinstance(
        node.parent, nodes.paragraph
    )


def part_of(node: nodes.Node) -> int:
    """Which part of its page a node stands in: each has another number."""
    sections = [one for one in above(node) if isinstance(one, nodes.section)]
    return id(sections[-2]) if len(sections) > 1 else 0


def above(node: nodes.Node) -> Iterator[nodes.Node]:
    """All that a node stands in, from the inside."""
    while node := node.parent:
        yield node


class Terms(SphinxPostTransform):
    """Make each link to a term show its meaning to who points at it."""

    default_priority = 8  # before MyST resolves the links, at 9

    def run(self, **kwargs: object) -> None:
        """Replace the links to terms in one page."""
        terms = {term.id: term for term in entries(self.app)}
        for link in list(self.document.findall(addnodes.pending_xref)):
            name = link.get("reftargetid") or ""
            if link["reftarget"] != PAGE or not name:
                continue
            words = nodes.inline("", "", *[c.deepcopy() for c in link])
            if name not in terms:
                logging.getLogger(__name__).warning(
                    "no term %s in the glossary", name, location=link
                )
                link.replace_self(words)
                continue
            link.replace_self(self.reference(terms[name], words))
        self.mark_uses(terms)

    def reference(self, term: Term, words: nodes.Node) -> nodes.reference:
        """Words that lead to a term's entry and say what it means."""
        builder, here = self.app.builder, self.env.docname
        found = make_refnode(builder, here, PAGE, term.id, words, term.says)
        found["classes"].append("term")
        found["term"] = term.id
        return found

    def mark_uses(self, terms: dict[str, Term]) -> None:
        """Mark each term's first use in each part, once it is explained.

        A part is what stands under a heading of the second level.
        """
        order = chapters(Path(self.app.srcdir))
        here = order.get(self.env.docname.removeprefix("book/"))
        if here is None:
            return
        known = {
            name: term
            for name, term in terms.items()
            if order.get(term.chapter, here) < here and not term.basic
        }
        told: set[tuple[int, str]] = set()
        for node in list(self.document.findall(tells)):
            if isinstance(node, nodes.reference):
                known[node["term"]] = terms[node["term"]]
                told.add((part_of(node), node["term"]))
            else:
                part = part_of(node)
                new = [t for t in known.values() if (part, t.id) not in told]
                told |= {(part, name) for name in self.mark(node, new)}

    def mark(self, text: nodes.Text, terms: list[Term]) -> list[str]:
        """Make links of the first use of each term; the marked ones' names."""
        uses = [(use.span(), t) for t in terms if (use := t.used.search(text))]
        marked: list[str] = []
        pieces, done = [], 0
        for (start, end), term in sorted(uses, key=lambda use: use[0]):
            if start >= done:
                words = nodes.inline("", text[start:end])
                pieces.append(nodes.Text(text[done:start]))
                link = self.reference(term, words)
                link["classes"].append("used")
                pieces.append(link)
                marked.append(term.id)
                done = end
        if marked:
            text.parent.replace(text, [*pieces, nodes.Text(text[done:])])
        return marked


class Glossary(Directive):
    """Every term, with its meaning and the chapter that explains it."""

    def run(self) -> list[nodes.Node]:
        """A list of definitions."""
        listed = nodes.definition_list(classes=["glossary"])
        for term in entries(self.state.document.settings.env.app):
            listed += self.entry(term)
        return [listed]

    def entry(self, term: Term) -> nodes.definition_list_item:
        """One term."""
        words, _ = self.state.inline_text(term.says, self.lineno)
        where = chapter_link(term.more.partition("#")[0] or term.chapter)
        said = nodes.paragraph("", "", *words, nodes.Text(" "))
        said += nodes.inline("", "", where, classes=["glossary-chapter"])
        return nodes.definition_list_item(
            "",
            nodes.term("", term.name, ids=[term.id]),
            nodes.definition("", said),
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about the terms and their page."""
    app.add_config_value("glossary_digest", "", "env", [str])
    app.connect("config-inited", note_changes)
    app.add_directive("glossary-terms", Glossary)
    app.add_post_transform(Terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
