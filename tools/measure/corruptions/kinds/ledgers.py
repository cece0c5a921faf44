"""Claims, conclusions and references: a word, a verdict, a link, a field."""

import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tools.accepted.rows import ENTRY, rows
from tools.measure.corruptions import texts
from tools.measure.corruptions.corruption import (
    Content,
    Corruption,
    kind,
)
from tools.measure.corruptions.kinds.numerals import of_pieces
from tools.measure.corruptions.kinds.words import turned_round
from tools.measure.corruptions.texts import Piece

VERDICTS = ("wrong", "holds", "holds-with-caveat")
ROW = re.compile(r"\[\[(\w+)\]\]\n(.*?)(?=\n\[\[|\Z)", re.DOTALL)
FIELD = re.compile(
    r'^(\w+) = ("""\\?\n.*?"""|"[^"\n]*"|[^\n]*)$', re.M | re.DOTALL
)
LINK = re.compile(r"(?<=\]\(claims\.md#)00\d-\d{3}")


def fields(root: Path, ledger: str, *names: str) -> Iterator[Piece]:
    """Some fields of every row of a ledger."""
    for whole in texts.files(root, f"book/{ledger}/*.toml"):
        for row in ROW.finditer(whole.text):
            for field in FIELD.finditer(row[2]):
                if field[1] not in names:
                    continue
                a = row.start(2) + field.start(2)
                b = a + len(field[2])
                yield Piece(
                    whole.path,
                    f"{row[2].split(chr(10))[0]} {field[1]}",
                    field[2],
                    lambda text, w=whole.text, a=a, b=b: w[:a] + text + w[b:],
                )


@kind("claims")
def claims(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A quote, a place or a statement, in a word or in a number."""
    said = list(fields(root, "claims", "quote", "statement"))
    yield from turned_round("claims", said)
    numbered = list(fields(root, "claims", "quote", "statement", "place"))
    yield from of_pieces("claims", numbered, rng)
    yield from verdicts(root)


def verdicts(root: Path) -> Iterator[Corruption]:
    """A verdict, flipped in the ledger and in the mark of its test."""
    for path in sorted((root / "book/claims").glob("*.toml")):
        tests = f"tests/claims/test_{path.stem}.py"
        text, marks = path.read_text("utf-8"), (root / tests).read_text()
        for row in rows(path, "claim"):
            was = row["verdict"]
            becomes = next(v for v in VERDICTS if v != was)
            pattern = rf'(id = "{row["id"]}".*?verdict = )"{was}"'
            flipped = re.sub(
                pattern, rf'\1"{becomes}"', text, count=1, flags=re.DOTALL
            )
            mark = rf'(settles\(\s*"{row["id"]}",\s*)"{was}"'
            name = path.relative_to(path.parents[2]).as_posix()
            other = re.sub(mark, rf'\1"{becomes}"', marks)
            both: dict[str, Content] = {name: flipped, tests: other}
            place = f"{name}: {row['id']}"
            yield Corruption("claims", "verdict", place, was, becomes, both)


@kind("links to claims")
def links(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A link of a page that leads to another claim of the page."""
    for piece in texts.cells(root):
        others = sorted(set(LINK.findall(piece.text)))
        for match in LINK.finditer(piece.text):
            if near := [o for o in others if o != match.group()]:
                other = rng.choice(near)
                text = texts.replaced(piece.text, match, other)
                yield Corruption(
                    "links to claims",
                    "another claim",
                    f"{piece.place} at {match.start()}",
                    match.group(),
                    other,
                    {piece.path: partial(piece.put, text)},
                )


@kind("conclusions")
def conclusions(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A conclusion's words, on its page and in its row alike."""
    for piece in fields(root, "conclusions", "says", "instead"):
        sentence = piece.text.strip('"')
        stem = Path(piece.path).stem
        pages = [p for p in texts.cells(root) if Path(p.path).stem == stem]
        for made in [
            *turned_round("conclusions", [piece]),
            *of_pieces("conclusions", [piece], rng),
        ]:
            edited = piece.text.replace(made.was, made.becomes, 1)
            page = page_saying(pages, sentence, edited.strip('"'))
            if page:
                both: dict[str, Content] = {
                    piece.path: piece.put(edited),
                    f"book/{stem}.ipynb": page,
                }
                yield Corruption(
                    made.kind,
                    made.rule,
                    made.place,
                    made.was,
                    made.becomes,
                    both,
                )


def page_saying(pages: list[Piece], was: str, new: str) -> str | None:
    """The chapter with other words in place of a row's own."""
    for piece in pages:
        if was in piece.text:
            return piece.put(piece.text.replace(was, new))
    return None


@kind("references")
def references(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A year, two authors, another paper's title or number."""
    name = "book/references.bib"
    text = (root / name).read_text("utf-8")
    pattern = re.compile(r"^  (\w+) = \{(.*)\},$", re.MULTILINE)
    found = [
        (entry[2], field.start() + entry.start(3), field)
        for entry in ENTRY.finditer(text)
        for field in pattern.finditer(entry[3])
    ]
    for key, at, field in found:
        value = field[2]
        alike = [f[2] for _, _, f in found if f[1] == field[1]]
        same = [other for other in alike if other != value]
        becomes = other_field(field[1], value, same, rng)
        if becomes == value:
            continue
        start = at + field.group().index("{") + 1
        edited = text[:start] + becomes + text[start + len(value) :]
        yield Corruption(
            "references",
            field[1],
            f"{name}: {key}",
            value,
            becomes,
            {name: edited},
        )


def other_field(
    name: str, value: str, others: list[str], rng: random.Random
) -> str:
    """What a field may say that is wrong: two authors in another order."""
    if name == "author" and " and " in value:
        names = value.split(" and ")
        return " and ".join([names[1], names[0], *names[2:]])
    if name in ("year", "eprint", "volume", "pages"):
        return texts.digit_up(value) or value
    return rng.choice(others or [value])
