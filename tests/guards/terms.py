"""Guards on the glossary: no term before the chapter that explains it."""

import re
from collections.abc import Iterator
from pathlib import Path

from glossary import LINK, Term, read_glossary
from record import prose

from guards.prose import NOT_PROSE
from tools.build.notebooks import in_contents

# The first page leads to chapters by these, the words in which one asks.
HOME, ASKED = "intro", {"NaN", "RoPE", "softmax"}
HEADING = re.compile(r"^#+ .*$", re.M)


def term_breaks(root: Path) -> list[str]:
    """All that is wrong between the glossary and the chapters."""
    terms = read_glossary(root / "book" / "glossary.toml")
    book = root / "book"
    texts = {
        path.relative_to(book).with_suffix("").as_posix(): prose(path)
        for path in in_contents(root)
    }
    ids = [term.id for term in terms]
    found = [f"{name}: twice" for name in {*ids} if ids.count(name) > 1]
    for chapter, text in texts.items():
        for words, name in LINK.findall(text):
            if name not in ids:
                found.append(f"{chapter}: {words} is in no glossary")
    return found + [fault for term in terms for fault in faults(term, texts)]


def faults(term: Term, texts: dict[str, str]) -> Iterator[str]:
    """What is wrong with one term."""
    marked = mark_of(term, texts.get(term.chapter, ""))
    if marked is None:
        yield f"{term.name}: not marked in {term.chapter}"
        return
    chapters = [x for x in texts if x != HOME or term.name not in ASKED]
    for chapter in chapters[: chapters.index(term.chapter)]:
        if used := first_use(term, texts[chapter]):
            yield f"{term.name}: used in {chapter}, before it: {used}"
    if used := first_use(term, texts[term.chapter][:marked]):
        yield f"{term.name}: used before it is explained: {used}"


def mark_of(term: Term, text: str) -> int | None:
    """Where a chapter marks a term, with words that are the term's."""
    for mark in LINK.finditer(text):
        if mark[2] == term.id and term.used.fullmatch(mark[1]):
            return mark.start()
    return None


def first_use(term: Term, text: str) -> str:
    """The first use of a term in running text, with what stands around it."""
    plain = NOT_PROSE.sub(" ", HEADING.sub("", text))
    used = term.used.search(plain)
    if not used:
        return ""
    return " ".join(plain[max(0, used.start() - 30) : used.end() + 20].split())
