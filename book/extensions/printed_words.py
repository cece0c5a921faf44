"""What a cell printed in rows of the same words, as a table.

Lines that say the same of one thing after the other, "causal accepts 8 of 49",
differ in their numbers and in a name. What all of them say is the header, with
… where the number stood between two words; what differs are the cells.
"""

import re
from itertools import chain, pairwise
from typing import NamedTuple

from printed_cells import JOINED, NUMBER, Rows, balanced, is_table

TOKEN = re.compile(r"( *)([^\s,:;]+(?:[,:][^\s,:;]+)*)([,:;]?)(?= |$)")
SAID = {"True", "False", "None"}  # of each row, if of all
CODE = re.compile(r"[\[\]{}'\"`<>|]|\w\(|->|\.$|\*$")
Words = list["Token"]


class Token(NamedTuple):
    """A word, the blanks before it, and what ends it."""

    gap: int
    word: str
    end: str

    @property
    def is_number(self) -> bool:
        """Whether it is a number, in brackets or not."""
        return bool(NUMBER.fullmatch(self.word.strip("()")))


def tokens(line: str) -> list[Token]:
    """A line's words."""
    line = re.sub(r" +([,:;])(?= |$)", r"\1", line.rstrip())
    found = TOKEN.findall(line)
    if sum(map(len, sum(found, ()))) != len(line):
        return []
    return [Token(len(gap), word, end) for gap, word, end in found]


def keys(row: list[Token]) -> list[str]:
    """What each word is known by in the other rows; a number by nothing.

    Unless it names what follows it, or how many there are.
    """
    found = []
    for before, token in pairwise([Token(0, "", ""), *row]):
        named = token.end == ":" and before.word
        number = token.is_number and not named and before.word != "of"
        if number or token.word in SAID:
            found.append("")
        else:
            found.append(token.word + token.end * token.is_number)
    return found


def common(one: list[str], other: list[str]) -> list[str]:
    """The longest list of words that both hold in its order."""
    best: list[list[list[str]]] = [[[]] * (len(other) + 1)]
    for word in one:
        line: list[list[str]] = [[]]
        for i, against in enumerate(other):
            if word and word == against:
                line.append([*best[-1][i], word])
            else:
                line.append(max(best[-1][i + 1], line[-1], key=len))
        best.append(line)
    return best[-1][-1]


def slots(row: list[Token], words: list[str]) -> list[list[Token]]:
    """What stands before, between and behind the common words, and they."""
    found: list[list[Token]] = [[]]
    left = iter([*words, None])
    wanted = next(left)
    for token, key in zip(row, keys(row), strict=True):
        if key == wanted:
            found += [[token], []]
            wanted = next(left)
        else:
            found[-1].append(token)
    return found


def pieces(value: Words) -> list[Words]:
    """A value's words, parted where one ends or there is room."""
    found: list[Words] = []
    for before, token in pairwise([Token(0, "", ","), *value]):
        if before.end or token.gap > 1:
            found.append([])
        found[-1].append(token)
    return found


def halves(value: Words) -> list[Words]:
    """A name, and the number behind it."""
    two = len(value) > 1 and value[-1].is_number and not value[-2].is_number
    return [value[:-1], value[-1:]] if two else [value]


def parted(column: list[Words], named: bool) -> list[list[Words]]:
    """What differs, as several columns if each row has numbers behind it.

    Unless the number belongs to a name.
    """
    found = [column]
    for part in [pieces] if named else [pieces, halves]:
        new = []
        for one in found:
            rows = [part(value) for value in one]
            same = len({len(row) for row in rows}) == 1
            split = list(map(list, zip(*rows, strict=same)))
            behind = chain(*split[1:])
            numbers = all(value[0].is_number for value in behind)
            new += split if same and numbers else [one]
        found = new
    return found


class Column(NamedTuple):
    """What stands in one place of all rows, and whether all say the same."""

    rows: list[Words]
    same: bool

    @property
    def word(self) -> str:
        """What all rows say here."""
        return self.rows[0][0].word

    @property
    def names_next(self) -> bool:
        """Whether it is a number that says of what the next one is told."""
        first = self.rows[0][0]
        return self.same and first.is_number and first.end == ":"

    def breaks(self, after: "Column") -> bool:
        """Whether a thought ends between this and the next, in each row."""
        pairs = zip(self.rows, after.rows, strict=True)
        if self.same and not after.same and after.rows[0][0].is_number:
            return all(one[-1].end for one, _ in pairs)
        return all(
            one[-1].end or other[0].gap > 1 or other[0].word[:1] == "("
            for one, other in pairs
        )


def read(rows: list[Words], named: bool) -> list[Column]:
    """The columns of rows which say the same words in the same order."""
    words = keys(rows[0])
    for row in rows[1:]:
        words = common(words, keys(row))
    found: list[Column] = []
    places = zip(*(slots(row, words) for row in rows), strict=True)
    for place, column in enumerate(map(list, places)):
        if place % 2:
            found.append(Column(column, same=True))
        elif all(column):
            found += [Column(one, same=False) for one in parted(column, named)]
        elif any(column):
            return []
    return found


def trailing(thought: list[Column]) -> list[Column]:
    """What stands behind the value of a thought, taken away from it."""
    found: list[Column] = []
    while thought[-1].same:
        found.insert(0, thought.pop())
    return found


def thoughts(columns: list[Column]) -> list[list[Column]]:
    """Words and the one value that they are about, and so on."""
    if not any(one.same for one in columns):
        return []
    found: list[list[Column]] = [[columns[0]]]
    for before, column in pairwise(columns):
        valued = any(not one.same for one in found[-1])
        if valued and before.names_next:
            found.append(trailing(found[-1]))
        elif valued and before.breaks(column):
            found.append([])
        elif valued and not column.same:
            between = trailing(found[-1])
            if between and all(one.word in JOINED for one in between):
                found[-1] += between
            else:
                found.append(between)
        found[-1].append(column)
    if len(found) > 1 and all(one.same for one in found[-1]):
        last = found.pop()
        found[-1] += last
    return found


def said(words: Words) -> str:
    """Words as a text."""
    return " ".join(word + end for _, word, end in words).rstrip(",:;")


def is_name(thought: list[Column]) -> bool:
    """Whether this is what a row is about, in words."""
    value = next(one.rows for one in thought if not one.same)
    return not all(words[0].is_number for words in value)


def unbracketed(text: str) -> str:
    """A text without a bracket that is closed elsewhere."""
    return text if balanced(text) else text.strip("()")


def header(thought: list[Column]) -> str:
    """What all rows say, with … where their values stood between."""
    places = [i for i, one in enumerate(thought) if not one.same]
    before, behind = thought[: places[0]], thought[places[-1] + 1 :]
    texts = [
        said([one.rows[0][0] for one in part]) for part in (before, behind)
    ]
    texts[0] = texts[0].removesuffix("=").strip()
    return unbracketed(" … ".join(filter(None, texts)).removeprefix("= "))


def cell(thought: list[Column], row: int, named: bool) -> str:
    """What one row says."""
    if named:
        return said([word for one in thought for word in one.rows[row]])
    places = [i for i, one in enumerate(thought) if not one.same]
    inside = thought[places[0] : places[-1] + 1]
    text = said([word for one in inside for word in one.rows[row]])
    return unbracketed(text)


def in_words(lines: list[str]) -> tuple[list[str], Rows] | None:
    """A header, and the rows; or None."""
    rows = [tokens(line) for line in lines]
    if not all(rows) or any(map(CODE.search, lines)):
        return None
    tried = (table(thoughts(read(rows, named))) for named in (False, True))
    return next(filter(None, tried), None)


def table(found: list[list[Column]]) -> tuple[list[str], Rows] | None:
    """A header and the rows of these columns, if they are a table."""
    if not found or any(all(one.same for one in words) for words in found):
        return None
    named = is_name(found[0])
    head = ["" if not i and named else header(t) for i, t in enumerate(found)]
    cells = [
        [cell(t, row, named and not i) for i, t in enumerate(found)]
        for row in range(len(found[0][0].rows))
    ]
    return (head, cells) if is_table(head, cells) else None
