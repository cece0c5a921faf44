"""An index of exercises, labs, pictures and famous bugs, made from the pages.

``{whereabouts}`` on a page becomes four lists, a part a chapter, in the order
of the book. Nothing in them is typed: an exercise is a section with a
solution, or one on paper with its answer, a bug a section that calls itself
one or famous. What is called no more than that is told by the first sentence
of its section.
"""

import copy
import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

BUG = re.compile(r"\b(?:bug|famous)", re.IGNORECASE)
ENOUGH = 6  # words, to say what a figure shows
FOLDED = " (second reading)"
LAB = re.compile(r"\blab: (.+)$")
PAPER = "On paper"
LISTS = ("Exercises", "Labs", "Famous bugs", "Figures")
SENTENCE = re.compile(r"[.?!](?=\s|$)|:$")
# Of a sentence, or of its part before a colon.
END = re.compile(r"[.?!](?=\s|$)|:(?=\s|$)")
# Which list, the words of the link, what is after them, the section's id.
Found = tuple[str, str, list[nodes.Node], str]


class Whereabouts(nodes.General, nodes.Element):
    """Where the lists will stand."""


class Directive(SphinxDirective):
    """The directive ``whereabouts``."""

    def run(self) -> list[nodes.Node]:
        """A place for the lists, which other pages fill."""
        return [Whereabouts()]


def things(document: nodes.document) -> Iterator[Found]:
    """What a page has of each list."""
    for section in document.findall(nodes.section):
        title, where = title_of(section), section["ids"][0]
        if is_exercise(section):
            told = first_words(section) if title == PAPER else []
            yield "Exercises", title, told, where
        if BUG.search(title):
            told = first_sentence(section)
            yield "Famous bugs", title, told, where
    for image in document.findall(nodes.image):
        section, words = section_of(image), image.get("alt", "")
        where = section["ids"][0]
        is_lab = "lab-still" in image.get("classes", []) or shows_lab(image)
        if is_lab:
            called = LAB.search(title_of(section))
            told = f" ({called[1]})" if called else ""
            yield "Labs", "", [nodes.Text(told)], where
        elif words:
            yield "Figures", called_by(words), [], where


def is_exercise(section: nodes.section) -> bool:
    """Whether it has a solution, or is one on paper and answered below."""
    title = title_of(section)
    inner = [s for s in section.children if isinstance(s, nodes.section)]
    if any(part[0].astext() == "Solution" for part in inner):
        return True
    answers = [x for x in section.children if "answer" in x.get("classes", [])]
    return title.startswith(PAPER) and bool(answers)


def called_by(words: str) -> str:
    """What a figure shows, in short: its description's first sentence.

    If that is too short to say what it is, with the next.

    >>> called_by("Three curves of loss against the steps: they fall.")
    'Three curves of loss against the steps.'
    >>> called_by("A roofline: a rising line of bandwidth. Below it, dots.")
    'A roofline: a rising line of bandwidth.'
    """
    ends = [one.start() for one in re.finditer(r"[.:](?=\s|$)", words)]
    told = [words[:end] for end in ends] or [words]
    long = [one for one in told if len(one.split()) >= ENOUGH]
    short = [*long, told[-1]][0].replace("'", "’")
    return re.sub(r"(?<!\w)-(?=\d)", "−", short) + "."


def title_of(section: nodes.section) -> str:
    """What it is called, without where it is folded."""
    return section[0].astext().removesuffix(FOLDED)


def first_sentence(section: nodes.section) -> list[nodes.Node]:
    """What a section begins with, if its title does not tell all."""
    if ":" in title_of(section):
        return []
    own = (x for x in section.children if isinstance(x, nodes.paragraph))
    first = next(own, None)
    return [] if first is None else up_to(SENTENCE, first)


def first_words(section: nodes.section) -> list[nodes.Node]:
    """What a section begins with, up to a colon."""
    return up_to(END, next(section.findall(nodes.paragraph)))


def plain(part: nodes.Node) -> nodes.Node:
    """A piece of a sentence, by itself: it is kept from run to run."""
    if isinstance(part, nodes.Text):
        return nodes.Text(part.astext())
    if isinstance(part, nodes.math | nodes.literal):
        return type(part)("", part.astext())
    return nodes.emphasis("", part.astext())  # a link would lead nowhere


def up_to(end_of: re.Pattern[str], said: nodes.paragraph) -> list[nodes.Node]:
    """The words of a paragraph up to an end, with its formulas and code."""
    told: list[nodes.Node] = [nodes.Text(": ")]
    for part in said.children:
        end = end_of.search(part) if isinstance(part, nodes.Text) else None
        if end is None:
            told.append(plain(part))
            continue
        words = part[: end.start()] + (" …" if end[0] == ":" else end[0])
        return [*told, nodes.Text(words)]
    return told


def shows_lab(image: nodes.image) -> bool:
    """Whether a picture is the still one of a lab."""
    bundle = image.parent and image.parent.parent
    return bundle is not None and any(
        "widget-view" in part.get("mime_type", "")
        for part in bundle.findall(nodes.container)
    )


def section_of(node: nodes.Node) -> nodes.section:
    """The section that holds it."""
    while not isinstance(node, nodes.section):
        node = node.parent
    return node


def note_things(app: Sphinx, document: nodes.document) -> None:
    """Remember what is on a page."""
    env = app.env
    if not hasattr(env, "whereabouts"):
        env.whereabouts = {}
    env.whereabouts[env.docname] = list(things(document))


def merge(app: Sphinx, env, names, other) -> None:
    """What another process has found."""
    found = getattr(env, "whereabouts", {})
    env.whereabouts = found | getattr(other, "whereabouts", {})


def fill(app: Sphinx, document: nodes.document, name: str) -> None:
    """Put the lists where the directive stands."""
    for place in list(document.findall(Whereabouts)):
        parts = []
        for which in LISTS:
            part = nodes.section(ids=[nodes.make_id(which)])
            part += nodes.title(text=which)
            # The labs, one a chapter, are one list.
            whole = nodes.bullet_list() if which == "Labs" else part
            for page in app.env.collect_relations():
                whole += chapter_of(app, name, page, which)
            if whole is not part:
                part += whole
            parts.append(part)
        place.replace_self(parts)


def chapter_of(app: Sphinx, here: str, page: str, which: str) -> list:
    """A chapter's name, and its things of one list; of labs these alone."""
    mine = [f for f in app.env.whereabouts.get(page, []) if f[0] == which]
    if not mine:
        return []
    address = app.builder.get_relative_uri(here, page)
    chapter = name_of(app, page)
    lines = nodes.bullet_list()
    for _, words, more, where in mine:
        link = nodes.reference(
            "", words or chapter, refuri=f"{address}#{where}", internal=True
        )
        line = nodes.paragraph("", "", link)
        line += [copy.deepcopy(part) for part in more]
        lines += nodes.list_item("", line)
    if which == "Labs":
        return [*lines]
    return [nodes.paragraph("", "", nodes.strong(text=chapter)), lines]


def name_of(app: Sphinx, page: str) -> str:
    """A chapter's title with its number, as it stands over the chapter."""
    title = app.env.titles[page].astext()
    number = app.env.toc_secnumbers.get(page, {}).get("", ())
    return f"{'.'.join(map(str, number))}. {title}" if number else title


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the hooks."""
    app.add_node(Whereabouts)
    app.add_directive("whereabouts", Directive)
    app.connect("doctree-read", note_things)
    app.connect("env-merge-info", merge)
    app.connect("doctree-resolved", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
