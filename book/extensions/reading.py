"""What a page holds, in a line under its title, and on the home page.

So many minutes at first reading and with everything, so many exercises:
counted when the site is built, by `first_reading`. On the home page, the
lines of the way through the book become cards with the minutes of a first
reading, and today's numbers stand under what *verified* means.
"""

import math
import os
from pathlib import Path

import nbformat
from counts import COUNTS
from docutils import nodes
from first_reading import all_minutes, first_minutes
from repository_buttons import repository_options
from sphinx.application import Sphinx
from take_along import project, requirement, site_address, wheel_name
from whereabouts import is_exercise

WAY, NUMBERS = "the-way-through-the-book", "what-verified-means"
USE, RUN = "how-to-use-it", "Run."
DOCTOR = "the-doctor-what-is-wrong-with-your-attention"
PRINT, QUESTIONS = "print-a-chapter", "Came with a question?"
# Where a page's address is to set its lab: the first page's link, and how.
LAB_SET = {
    "multihead.html#try-it": "multihead.html#lab=multihead&n_heads=2"
    "&n_kv_heads=2"
}
# What each number counts, in the words that follow it.
VERIFIED = {
    "code cells": "code cells are executed again, and their outputs compared",
    "claims with a test": "claims of the sources have a test",
    "wrong claims": "of the claims are wrong",
    "settings of conclusions": "settings were tried to break our conclusions",
    "caught mistakes": "planted mistakes were caught by the tests",
    "labs": "labs compute what the package computes",
}


def exercises(document: nodes.document) -> int:
    """How many sections end in a solution."""
    return sum(map(is_exercise, document.findall(nodes.section)))


def in_words(first: int, everything: int, count: int) -> str:
    """The line under the title, with so many exercises."""
    told = f"About {first} minutes"
    if everything > first:
        told += f" at first reading, {everything} with everything"
    if count:
        told += f"; {count} exercise" + "s" * (count > 1)
    return told + "."


def note_minutes(app: Sphinx, document: nodes.document) -> None:
    """Remember the minutes of a chapter, and write its line."""
    env = app.env
    if not hasattr(env, "reading_minutes"):
        env.reading_minutes = {}
    path = Path(env.doc2path(env.docname))
    title = next(document.findall(nodes.title), None)
    if path.suffix != ".ipynb" or title is None:
        return
    notebook = nbformat.read(path, as_version=4)
    first = math.ceil(first_minutes(notebook))
    env.reading_minutes[env.docname] = first
    if env.docname == app.config.root_doc:
        return
    everything = math.ceil(all_minutes(notebook))
    line = nodes.paragraph(classes=["reading-time"])
    line += nodes.Text(in_words(first, everything, exercises(document)))
    title.parent.insert(title.parent.index(title) + 1, line)


def merge(app: Sphinx, env, names, other) -> None:
    """What another process has counted."""
    counted = getattr(env, "reading_minutes", {})
    env.reading_minutes = counted | getattr(other, "reading_minutes", {})


def furnish_home(app: Sphinx, document: nodes.document, name: str) -> None:
    """The home page's cards, and its numbers."""
    if name != app.config.root_doc:
        return
    for line in list(document.findall(nodes.paragraph)):
        if line.astext().startswith(QUESTIONS):
            ask(line)
    for section in document.findall(nodes.section):
        if WAY in section["ids"]:
            for entry in list(section.findall(nodes.list_item)):
                make_card(app, entry)
        if USE in section["ids"]:
            (run,) = [p for p in section if p.astext().startswith(RUN)]
            place = section.index(run) + 1
            section[place:place] = install_line(Path(app.srcdir))
        if DOCTOR in section["ids"]:
            section[1:1] = without_a_clone(Path(app.srcdir))
        if PRINT in section["ids"]:
            section[1:1] = to_print(app)
        if NUMBERS in section["ids"]:
            title = next(section.findall(nodes.title))
            place = section.index(title) + 1
            section.insert(place, numbers(Path(app.srcdir, "book")))


def make_card(app: Sphinx, entry: nodes.list_item) -> None:
    """A line of the list as a card, with a first reading's minutes."""
    if "cards" not in entry.parent["classes"]:
        entry.parent["classes"].append("cards")
    link = next(entry.findall(nodes.reference))
    text = link.next_node(nodes.Text, descend=False, siblings=True)
    told = text.removeprefix(":").lstrip()
    text.parent.replace(text, nodes.Text(told[:1].upper() + told[1:]))
    target = link["refuri"].partition("#")[0]
    known, address = app.env.reading_minutes, app.builder.get_target_uri
    found = [name for name in known if address(name).endswith(target)]
    for name in found[:1]:
        link[:0] = number(app, name)
    needs = list(entry.findall(nodes.emphasis))
    if found and needs:
        told = nodes.inline(classes=["card-minutes"])
        told += nodes.Text(f"{known[found[0]]} minutes")
        entry[0] += [nodes.Text(" "), told]


def number(app: Sphinx, name: str) -> list[nodes.Node]:
    """What stands before a chapter's title: in the contents, so here."""
    counted = app.env.toc_secnumbers.get(name, {}).get("", ())
    told = ".".join(map(str, counted)) + app.config.html_secnumber_suffix
    return [nodes.inline("", told, classes=["section-number"])] * bool(counted)


def ask(line: nodes.paragraph) -> None:
    """The row of questions: where a lab answers, the link sets it."""
    line["classes"].append("questions")
    for link in line.findall(nodes.reference):
        if lab := LAB_SET.get(link.get("refuri", "")):
            link["refuri"] = lab


def to_print(app: Sphinx) -> list[nodes.Node]:
    """A number for each chapter; it opens the browser's window for printing.

    See ``_static/print.js``.
    """
    numbers = nodes.paragraph(classes=["print-numbers"])
    for name, known in app.env.toc_secnumbers.items():
        if told := known.get("", ()):
            address = app.builder.get_relative_uri(app.config.root_doc, name)
            link = nodes.reference("", str(told[0]), refuri=f"{address}?print")
            link["reftitle"] = f"Print “{app.env.titles[name].astext()}”"
            numbers += [link, nodes.Text(" ")]
    first = nodes.paragraph(text="Press its number:")
    then = nodes.paragraph(text="Or step by step:")
    for line in (first, numbers, then):
        line["classes"].append("not-on-paper")
    return [first, numbers, then]


def without_a_clone(root: Path) -> list[nodes.Node]:
    """How to get the doctor, from where the site stands, and to call it.

    Where the site does not know, `_static/wheel.js` asks the browser.
    """
    wheel, site = wheel_name(root), site_address(os.environ)
    told = nodes.paragraph()
    saved = nodes.inline(classes=["wheel-saved"])
    saved += nodes.Text("First save ")
    saved += nodes.reference("", wheel, refuri=f"../{wheel}")
    saved += nodes.Text(" in your folder. ")
    python = project(root)["project"]["requires-python"].removeprefix(">=")
    told += [saved, nodes.Text(f"It needs Python {python} or later.")]
    line = f"pip install {site}{wheel}\npython -m selfattn.doctor yours.py"
    return [nodes.literal_block(line, line, language="sh"), told]


def install_line(root: Path) -> list[nodes.Node]:
    """What a notebook of one's own begins with; what Colab opens."""
    site = site_address(os.environ)
    told = ""
    if repository_options(os.environ)["launch_buttons"]:
        told = "Colab, on top of each chapter, too, opens the same copies. "
    told += "In a notebook of your own, let this be the first cell"
    told += (
        ":" if site else ", with the site’s wheel in the notebook’s folder:"
    )
    line = f'%pip install -q "{requirement(wheel_name(root), site)}"'
    block = nodes.literal_block(line, line, language="ipython3")
    block["classes"].append("install")
    return [nodes.paragraph(text=told), block]


def numbers(book: Path) -> nodes.bullet_list:
    """Today's numbers, each with its words."""
    tiles = nodes.bullet_list(classes=["tiles"])
    for what, words in VERIFIED.items():
        line = nodes.paragraph()
        line += nodes.strong(text=f"{COUNTS[what](book):,}")
        line += nodes.Text(f" {words}")
        tiles += nodes.list_item("", line)
    return tiles


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hooks."""
    app.connect("doctree-read", note_minutes)
    app.connect("env-merge-info", merge)
    app.connect("doctree-resolved", furnish_home)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
