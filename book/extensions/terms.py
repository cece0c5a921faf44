"""The glossary: a marked term shows what it means, and leads to its entry.

A link to ``glossary.md#causal`` becomes a term; the directive
``glossary-terms`` writes the page. `glossary` reads the entries.
"""

import hashlib
from pathlib import Path

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


def note_changes(app: Sphinx, config: Config) -> None:
    """Have every page read again when an entry has changed."""
    text = Path(app.srcdir, f"{PAGE}.toml").read_bytes()
    config["glossary_digest"] = hashlib.sha256(text).hexdigest()


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
            reference = make_refnode(
                self.app.builder,
                self.env.docname,
                PAGE,
                name,
                words,
                terms[name].says,
            )
            reference["classes"].append("term")
            link.replace_self(reference)


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
        where = addnodes.pending_xref(
            "",
            nodes.inline("", term.chapter),
            refdomain="std",
            reftype="doc",
            reftarget=f"/book/{term.chapter}",
            refexplicit=False,  # so it shows the chapter's title
            refwarn=True,
        )
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
