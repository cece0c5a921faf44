"""Claims of the sources: a badge at each mention, and the page of them all.

A link to ``claims.md#000-018`` shows the verdict on that claim and the test
that gives it; the directive ``claims-ledger`` writes the page it leads to.
Both show rows of the ledger, which `ledger` reads.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from chapter_link import chapter_link
from claim_tests import PAGE as TESTS
from claim_tests import linked
from docutils import nodes
from docutils.parsers.rst import Directive
from ledger import ID, VERDICTS, Claim, read_ledger
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

PAGE = "book/claims"
SOURCES = 5


def by_id(app: Sphinx) -> dict[str, Claim]:
    """The book's claims by id."""
    claims = read_ledger(Path(app.srcdir, PAGE))
    return {claim.id: claim for claim in claims}


def note_changes(app: Sphinx, config: Config) -> None:
    """Have every page read again when a row has changed."""
    digest = hashlib.sha256()
    for path in sorted(Path(app.srcdir, PAGE).rglob("*.toml")):
        digest.update(path.read_bytes())
    config["claims_digest"] = digest.hexdigest()


class Badges(SphinxPostTransform):
    """Make each link to a claim show its verdict and its test."""

    default_priority = 8  # before MyST resolves the links, at 9

    def run(self, **kwargs: object) -> None:
        """Replace the links to claims in one page."""
        claims = by_id(self.app)
        for link in list(self.document.findall(addnodes.pending_xref)):
            name = link.get("reftargetid") or ""
            if link["reftarget"] != PAGE or not ID.fullmatch(name):
                continue
            if name not in claims:
                logging.getLogger(__name__).warning(
                    "no claim %s in the ledger", name, location=link
                )
                link.replace_self(link[0].deepcopy())
                continue
            link.replace_self(self.badge(claims[name], link))

    def badge(self, claim: Claim, link: addnodes.pending_xref) -> nodes.inline:
        """The link's own words, the verdict, and what shows it.

        The style sheet shows the last only to those who point at the link or
        reach it by key, so that sentences stay readable, and on paper.
        """
        verdict, _, _ = VERDICTS[claim.verdict]
        said = nodes.inline("", "", *[child.deepcopy() for child in link])
        reference = make_refnode(
            self.app.builder, self.env.docname, PAGE, claim.id, said
        )
        reference["classes"].append("claim")
        reference += [nodes.Text(" "), chip(claim.verdict, verdict)]
        test = settled(claim)
        test.insert(0, nodes.Text(" "))  # for paper; on screen it is apart
        return nodes.inline("", "", reference, test, classes=["claim-mention"])


def chip(verdict: str, words: str) -> nodes.inline:
    """A verdict as a small coloured label; the words say it, too."""
    return nodes.inline("", words, classes=["verdict", f"verdict-{verdict}"])


def settled(claim: Claim) -> nodes.inline:
    """By which test a claim is settled, or why by none."""
    shown: nodes.Node = nodes.Text(f"no test: {claim.reason}")
    if claim.test:
        shown = nodes.literal("", claim.test)
    return nodes.inline("", "", shown, classes=["claim-test"])


class Ledger(Directive):
    """The tables of all claims, errors and disagreements first."""

    def run(self) -> list[nodes.Node]:
        """Sections with one table a verdict, after a table of counts."""
        env = self.state.document.settings.env
        claims = by_id(env.app).values()
        content: list[nodes.Node] = [counts(list(claims))]
        for verdict, (_, title, meaning) in VERDICTS.items():
            rows = [claim for claim in claims if claim.verdict == verdict]
            if rows:
                section = nodes.section(ids=[f"verdict-{verdict}"])
                section += nodes.title("", title)
                section += nodes.paragraph("", meaning)
                section += table(
                    (2, 3),
                    ("The source says", "What is so"),
                    [(said(claim), so(claim)) for claim in rows],
                    "claims",
                )
                content.append(section)
        return content


def counts(claims: list[Claim]) -> nodes.table:
    """How many claims of which verdict each source makes."""
    count = Counter((claim.verdict, int(claim.id[:3])) for claim in claims)
    rows = []
    for verdict, (words, _, _) in VERDICTS.items():
        numbers = [count[verdict, source] for source in range(SOURCES)]
        if sum(numbers):
            link = nodes.reference("", "", refid=f"verdict-{verdict}")
            link += chip(verdict, words)
            rows.append((paragraph(link), *texts(*numbers, sum(numbers))))
    heads = ("verdict", *map(str, range(SOURCES)), "all")
    return table((3, *[1] * SOURCES, 1), heads, rows, "claims-count")


def said(claim: Claim) -> nodes.paragraph:
    """Where a claim is made, and in which words."""
    quote = re.sub(r'"([^"]*)"', r"‘\1’", claim.quote)
    return paragraph(
        nodes.target("", "", ids=[claim.id]),
        nodes.strong("", claim.id),
        nodes.Text(f", {claim.where}: “{quote}”"),
    )


def so(claim: Claim) -> nodes.paragraph:
    """What is so, what shows it, and where the book speaks of it."""
    chapter = chapter_link(claim.chapter)
    return paragraph(
        nodes.Text(claim.statement + " "),
        shown_by(claim),
        nodes.Text(" "),
        nodes.inline("", "", chapter, classes=["claim-chapter"]),
    )


def shown_by(claim: Claim) -> nodes.inline:
    """The test, as a link to its code, or why there is none."""
    if not claim.test:
        return settled(claim)
    link = linked(TESTS, claim.chapter, claim.test)
    return nodes.inline("", "", link, classes=["claim-test"])


def paragraph(*parts: nodes.Node) -> nodes.paragraph:
    """A paragraph of nodes."""
    return nodes.paragraph("", "", *parts)


def texts(*values: object) -> Iterator[nodes.paragraph]:
    """A paragraph for each value."""
    return (nodes.paragraph("", str(value)) for value in values)


def table(
    widths: tuple[int, ...],
    heads: tuple[str, ...],
    rows: list[tuple[nodes.paragraph, ...]],
    name: str,
) -> nodes.table:
    """A table with a head, its columns in these proportions, of a class."""
    group = nodes.tgroup("", cols=len(widths))
    group += [nodes.colspec("", colwidth=width) for width in widths]
    group += nodes.thead("", row(tuple(texts(*heads))))
    group += nodes.tbody("", *[row(cells) for cells in rows])
    return nodes.table("", group, classes=[name])


def row(cells: tuple[nodes.paragraph, ...]) -> nodes.row:
    """One row of a table."""
    return nodes.row("", *[nodes.entry("", cell) for cell in cells])


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about the badges, the page and their colours."""
    app.add_config_value("claims_digest", "", "env", [str])
    app.connect("config-inited", note_changes)
    app.add_directive("claims-ledger", Ledger)
    app.add_post_transform(Badges)
    app.add_css_file("claims.css")
    app.add_js_file("claims.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
