"""The terms of the field: what each means, and which chapter explains it.

An entry of ``book/glossary.toml`` has the words by which a reader meets the
term, so that a guard can hold its first use against the chapter that explains
it. Read here without Sphinx; `terms` shows the entries on the site.
"""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

LINK = re.compile(r"\[([^\[\]]+)\]\((?:\.\./)*glossary\.md#([\w-]+)\)")


@dataclass(frozen=True)
class Term:
    """One entry of the glossary."""

    name: str
    says: str
    chapter: str  # that explains it, and marks it: efficient/linear
    forms: list[str] = field(default_factory=list)  # besides its name
    more: str = ""  # the section that tells most of it, if another
    basic: bool = False  # readers bring it along: it is marked once

    @property
    def id(self) -> str:
        """By which a page links to it."""
        return re.sub(r"\W+", "-", self.name.lower()).strip("-")

    @property
    def used(self) -> re.Pattern[str]:
        """The term, in any of its forms, as words of a text."""
        forms = "|".join(map(re.escape, [self.name, *self.forms]))
        return re.compile(rf"(?<![\w-])(?:{forms})(?![\w-])", re.IGNORECASE)


def read_glossary(path: Path) -> list[Term]:
    """All entries, in the order of the alphabet.

    Raises:
        ValueError: if an entry lacks something or has too much; it names the
            entry.
    """
    terms = []
    for row in tomllib.loads(path.read_text("utf-8"))["term"]:
        try:
            terms.append(Term(**row))
        except TypeError as why:
            raise ValueError(
                "a term has name, says and chapter, and may have forms, more "
                f"and basic, but {row.get('name')}: {why}"
            ) from None
    return sorted(terms, key=lambda term: term.name.lower())
