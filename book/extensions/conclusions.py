"""Our own conclusions: a strip of settings at each, and the page of them all.

A link to ``conclusions.md#id`` becomes its sentence and a strip, a mark a
setting, filled where it held, which leads to the row; beside the first of a
page stands what a mark is. The directive ``conclusions-record`` writes the
page of rows, each with a link to its test. `record` reads them. Of many
settings in which it did not hold, all but the first are folded.
"""

import hashlib
import itertools
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from chapter_link import title_of
from claim_tests import linked
from docutils import nodes
from docutils.parsers.rst import Directive
from folds import SECOND
from record import COMPUTED, Conclusion, Setting, read_record
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

PAGE = "book/conclusions"
TESTS = "book/conclusion-tests"
SPACE = re.compile(r"(?<!\b[dn])_")
LONGEST = 24  # marks in a row of a strip
SIDE, GAP = 5, 2
FEW = 6  # settings that are read where it did not hold
LEGEND = "one mark a setting: filled where it held, empty where it did not"
SOURCES = {COMPUTED: "computed by the test: nothing is trained"}


def note_changes(app: Sphinx, config: Config) -> None:
    """Have every page read again when a row has changed."""
    digest = hashlib.sha256()
    for path in sorted(Path(app.srcdir, PAGE).rglob("*.toml")):
        digest.update(path.read_bytes())
    config["conclusions_digest"] = digest.hexdigest()


def strip(row: Conclusion) -> list[nodes.Node]:
    """A mark a setting and the count in words, or that it is proved."""
    words = row.summary()
    if row.proved:
        return [nodes.inline("", words, classes=["conclusion-proved"])]
    stands = row.stands()
    rows = -(-len(stands) // LONGEST)
    columns = -(-len(stands) // rows)
    step = SIDE + GAP
    marks = "".join(
        f'<rect x="{i % columns * step + 0.5}" y="{i // columns * step + 0.5}"'
        f' width="{SIDE - 1}" height="{SIDE - 1}"'
        f' class="{"held" if held else "fell"}"/>'
        for i, held in enumerate(stands)
    )
    width, height = columns * step - GAP, rows * step - GAP
    drawing = (
        f'<svg class="conclusion-strip" aria-hidden="true" width="{width}"'
        f' height="{height}" viewBox="0 0 {width} {height}">{marks}</svg>'
    )
    count = nodes.inline("", words, classes=["conclusion-count"])
    return [nodes.raw("", drawing, format="html"), nodes.Text(" "), count]


class Strips(SphinxPostTransform):
    """Make each link to a conclusion show where it held."""

    default_priority = 8  # before MyST resolves the links, at 9

    def run(self, **kwargs: object) -> None:
        """Replace the links to conclusions in one page."""
        record = read_record(Path(self.app.srcdir, PAGE))
        rows = {row.id: row for row in record}
        drawn = []
        for link in list(self.document.findall(addnodes.pending_xref)):
            name = link.get("reftargetid") or ""
            if link["reftarget"] != PAGE or not name:
                continue
            words = [child.deepcopy() for child in link]
            if name in rows:
                words += [nodes.Text(" "), self.leading(rows[name])]
            else:
                logging.getLogger(__name__).warning(
                    "no conclusion %s in the record", name, location=link
                )
            said = nodes.inline("", "", *words)
            link.replace_self(said)
            if name in rows and not rows[name].proved:
                drawn.append(said)
        drawn.sort(key=is_folded)
        for first in drawn[:1]:
            legend = nodes.inline("", f"({LEGEND})")
            legend["classes"].append("conclusion-legend")
            first += [nodes.Text(" "), legend]

    def leading(self, row: Conclusion) -> nodes.reference:
        """The strip, as a link to the row."""
        shown = nodes.inline("", "", *strip(row))
        where = self.env.docname, PAGE, row.id
        told = None if row.proved else LEGEND
        reference = make_refnode(self.app.builder, *where, shown, told)
        reference["classes"].append("conclusion")
        return reference


def is_folded(node: nodes.Node) -> bool:
    """Whether a node stands in a section of a second reading."""
    while node := node.parent:
        if isinstance(node, nodes.section) and SECOND.search(node[0].astext()):
            return True
    return False


class Record(Directive):
    """Every row, by chapter."""

    def run(self) -> list[nodes.Node]:
        """A section a chapter, in it a block a row."""
        env = self.state.document.settings.env
        record = read_record(Path(env.app.srcdir, PAGE))
        content: list[nodes.Node] = []
        places = [*getattr(env, "external_site_map", ())]  # of the contents

        def place(row: Conclusion) -> int:
            name = f"book/{row.chapter}"
            return places.index(name) if name in places else len(places)

        record = sorted(record, key=place)
        for chapter, rows in itertools.groupby(record, lambda r: r.chapter):
            section = nodes.section(ids=[f"of-{chapter.replace('/', '-')}"])
            page = Path(env.doc2path(f"book/{chapter}"))
            section += nodes.title("", title_of(page))
            for row in rows:
                section += self.block(row)
            content.append(section)
        return content

    def block(self, row: Conclusion) -> nodes.container:
        """One row: its sentence, the strip, and what is known of it."""
        words, _ = self.state.inline_text(as_title(row.says), self.lineno)
        head = nodes.paragraph("", "", nodes.strong("", "", *words))
        bar = nodes.paragraph("", "", *strip(row))
        facts = nodes.bullet_list()
        for name, text, *more in known(row):
            fact = nodes.paragraph("", "", nodes.emphasis("", f"{name}: "))
            fact += nodes.Text(text)
            facts += nodes.list_item("", fact, *map(folded, more))
        test = nodes.paragraph("", "", nodes.emphasis("", "test: "))
        test += linked(TESTS, row.chapter, row.test)
        facts += nodes.list_item("", test)
        return nodes.container(
            "", head, bar, facts, ids=[row.id], classes=["conclusion-row"]
        )


def as_title(says: str) -> str:
    """A sentence, or a part of one, with a capital and without a full stop."""
    first = len(says) - len(says.lstrip("*"))
    capital = says[first : first + 1].upper()
    return (says[:first] + capital + says[first + 1 :]).removesuffix(".")


def known(row: Conclusion) -> Iterator[tuple[str, ...]]:
    """What is known of a row, by name, and what of it is folded."""
    if not row.proved:
        yield "from", SOURCES.get(row.source, f"the runs of {row.source}")
        yield "in common", listed(row.held)
        yield "varied", listed(row.varied)
    if row.over:
        yield "in each setting over every", ", ".join(row.over)
    if row.not_in:
        yield "did not hold at", *parted([*map(listed, row.not_in)])
        yield "there the page says", row.instead
    if row.instead_of:
        yield "instead of", row.instead_of


def parted(settings: list[str]) -> list[str]:
    """Settings in a line; a wall of them in two, of which one is folded."""
    few = FEW if len(settings) > FEW + 2 else len(settings)
    return [
        "; ".join(part) for part in (settings[:few], settings[few:]) if part
    ]


def folded(words: str) -> nodes.raw:
    """Settings that one sees when one wants to."""
    many = words.count(";") + 1
    return nodes.raw(
        "",
        f'<details class="more-settings"><summary>{many} more</summary>'
        f"<p>{escape(words)}</p></details>",
        format="html",
    )


def listed(setting: Setting) -> str:
    """Names and values in words; d_head is a name as it is."""
    return ", ".join(
        f"{SPACE.sub(' ', name)} {in_words(value)}"
        for name, value in setting.items()
    )


def in_words(value: object) -> str:
    """A value, or several, as a reader wants them."""
    if isinstance(value, list):
        return "\N{NO-BREAK SPACE}/ ".join(map(in_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about the strips, the page and their colours."""
    app.add_config_value("conclusions_digest", "", "env", [str])
    app.connect("config-inited", note_changes)
    app.add_directive("conclusions-record", Record)
    app.add_post_transform(Strips)
    app.add_css_file("conclusions.css")
    app.add_js_file("conclusions.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
