"""Guards on the text: its numbers, its markup, its links to claims."""

import functools
import re
from collections.abc import Set
from decimal import Decimal

from nbformat import NotebookNode

from guards.cells import codes, printed

ROLES = {"cite:t", "cite:p", "eq"}
DIRECTIVES = {"note", "admonition"}
LARGEST_SMALL = 10  # whole numbers up to here are words
SHORTEST_ALT = 40

FENCE = re.compile(r"^ *(```+|~~~+|:::+) *(\{?)([^}\s]*)", re.MULTILINE)
ROLE = re.compile(r"\{([\w:.-]+)\}`")
TARGET = re.compile(r"^\([\w-]+\)=\s*$", re.MULTILINE)
RAW = re.compile(r"<(?:script|img|iframe|style|svg)\b", re.IGNORECASE)
PICTURE = re.compile(r"!\[([^\]]*)\]\(")
CLAIM = re.compile(r"\]\(claims\.md#([^)\s]+)\)")

NOT_PROSE = re.compile(
    r"""
    ^\ *(?P<fence>```+|~~~+).*?^\ *(?P=fence)\ *$ # fenced code
    | \$\$.*?\$\$(?:\ *\([\w:-]+\))? # displayed maths, with its label
    | (?<!\\)\$[^$\n]+\$ # maths in a line
    | \{[\w:.-]+\}`[^`]*` # a role: citation or equation
    | (?P<tick>`+)[^`].*?(?P=tick) # code in a line
    | (?<=\])\([^)]*\) # where a link leads
    | <!--.*?-->
    | <[^>]+>
    | https?://\S+
    | ^\ *\d+[.)]\ # the number of a list item
    | \b(?:sections?|chapters?|parts?|equations?|tables?|figures?|§)\s?[\d.]+
    | \bsource\s\d(?:\sand\s\d)? # one of the five documents
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
NUMBER = re.compile(
    r"(?<![\w.,/×-])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))"
    r"(?:e[-−+]?\d+)?(?![\w/×]|[.,]\d|-[A-Za-z])(?:\s?%|\sper\scent)?"
)
CELL_NUMBER = re.compile(r"[-−]?(?:\d[\d,_]*\d|\d)?(?:\.\d*)?(?:e[-+]?\d+)?")
# Numbers of descriptions that are read off a scale, by the figure's cell.
READ_OFF = {
    "f9cb992e": {"1e-15", "10,000"},
    "a8d217df": {".4"},
    "b5122123": {"3.7"},
    "21cc913a": {"458", "46"},  # 8 and .8 as degrees
}
YEAR = re.compile(r"(?:19|20)\d\d")
# A box of running numbers, and its lines that `guards.reading` computes.
RECALL = re.compile(r"^:::\{admonition\} Recall\n(.*?)^:::", re.M | re.S)
COMPUTED = re.compile(
    r"^- (?:Queries|Keys|Values|Scores|Scaled|Weights|Outputs)\b.*$", re.M
)


def number(text: str) -> Decimal:
    """A number as it is written, whatever its signs and separators."""
    clean = text.replace("−", "-").replace(",", "").replace("_", "")
    return Decimal(clean.rstrip("."))


def in_prose(text: str) -> list[str]:
    """The numbers that a text states, in the order of reading."""
    words = NOT_PROSE.sub(" ", text)
    return [match.group() for match in NUMBER.finditer(words)]


def in_cells(notebook: NotebookNode) -> set[Decimal]:
    """Every number in the code or in the printed output of a cell."""
    held: set[Decimal] = set()
    for cell in codes(notebook):
        held |= numbers_of(f"{cell.source}\n{printed(cell)}")
    return held


@functools.cache
def numbers_of(text: str) -> frozenset[Decimal]:
    """Every number in code or in what it prints, without its sign."""
    return frozenset(
        abs(number(match.group()))
        for match in CELL_NUMBER.finditer(text)
        if any(sign.isdigit() for sign in match.group().partition("e")[0])
    )


@functools.cache
def negative_numbers_of(text: str) -> frozenset[Decimal]:
    """Those of them that stand behind a minus, without it."""
    return frozenset(
        abs(number(match.group()))
        for match in CELL_NUMBER.finditer(text)
        if match.group()[:1] in ("-", "−")
        and any(sign.isdigit() for sign in match.group().partition("e")[0])
    )


def is_small_or_year(text: str) -> bool:
    """Whether a number needs no cell: a small whole one, or a year."""
    bare = text.lstrip("-−")
    small = bare.isdigit() and int(bare) <= LARGEST_SMALL
    return small or YEAR.fullmatch(bare) is not None


def is_held(text: str, held: Set[Decimal]) -> bool:
    """Whether a cell holds the number, or one that rounds to it."""
    bare = re.sub(r"\s?(?:%|per\scent)", "", text)
    stated = abs(number(bare))
    if stated in held:
        return True
    if bare != text:
        stated = stated.scaleb(-2)
    places = stated.as_tuple().exponent
    if not isinstance(places, int) or places >= 0:
        return False
    half = Decimal(5).scaleb(places - 1)
    return any(abs(stated - x) <= half for x in held if x.is_finite())


def unheld_numbers(notebook: NotebookNode) -> list[str]:
    """Every number in the prose is in a cell, or says why it need not be.

    So is each of those that describe a figure; and what is negative in words
    is so in a cell.
    """
    held = in_cells(notebook)
    below: set[Decimal] = set()
    for cell in codes(notebook):
        below |= negative_numbers_of(f"{cell.source}\n{printed(cell)}")
    return [
        f"{cell.id}: no cell holds the number {text}"
        for cell in notebook.cells
        for text in in_prose(not_recalled(words_of(cell)))
        if not is_small_or_year(text)
        and not cell.metadata.get("numbers", {}).get(text)
        and text not in READ_OFF.get(cell.id, ())
        and not is_held(text, below if text[0] in "-−" else held)
    ]


def not_recalled(text: str) -> str:
    """A text without the lines of its recall box that are computed."""
    return RECALL.sub(lambda box: COMPUTED.sub("", box[0]), text)


def words_of(cell: NotebookNode) -> str:
    """What a cell says: its text, or how its figure is described."""
    if cell.cell_type == "markdown":
        return cell.source
    return cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")


def dead_markup(notebook: NotebookNode) -> list[str]:
    """Only markup that a reader in plain Jupyter can read as well."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        text = cell.source
        opened = None
        for marks, brace, name in FENCE.findall(text):
            if opened == marks and not name:
                opened = None
            elif not brace:
                opened = marks
                found.append(f"{cell.id}: a code block that is no cell")
            else:
                opened = marks
                if name not in DIRECTIVES or not marks.startswith(":"):
                    found.append(f"{cell.id}: a directive {marks}{{{name}}}")
        for role in ROLE.findall(text):
            if role not in ROLES:
                found.append(f"{cell.id}: a role {{{role}}}")
        for raw in TARGET.findall(text) + RAW.findall(text):
            found.append(f"{cell.id}: dead in Jupyter, or unchecked: {raw}")
        for alt in PICTURE.findall(text):
            if len(alt) < SHORTEST_ALT:
                found.append(f"{cell.id}: a picture with alt text {alt!r}")
    return found


def cited_claims(notebook: NotebookNode) -> set[str]:
    """The claims that a notebook links to."""
    return {
        claim
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for claim in CLAIM.findall(cell.source)
    }


def blocks(page: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page: their language, and what is in them."""
    return re.findall(r"^```+([^\n]*)\n(.*?)^```+ *$", page, re.M | re.S)


def python_not_run(page: str) -> list[str]:
    """Python on a page is a doctest, which ends before the fence does."""
    found = []
    for language, text in blocks(page):
        if language.strip() != "python":
            continue
        if not text.startswith(">>> "):
            found.append(f"no doctest: {text}")
        elif not text.endswith("\n\n") and not last_is_code(text):
            found.append(f"doctest would take the fence for output: {text}")
    return found


def last_is_code(text: str) -> bool:
    """Whether a doctest ends in code that prints nothing."""
    return text.rstrip().splitlines()[-1].startswith((">>>", "..."))


def blocks_not_run(page: str) -> list[str]:
    """A block on a page of the book is an example or a directive."""
    return [
        f"a block of {language or 'nothing'}"
        for language, text in blocks(page)
        if not language.startswith("{") and not text.startswith(">>> ")
    ]


def unheld_in_page(page: str) -> list[str]:
    """Every number of a page is in one of its examples."""
    examples = "\n".join(text for _, text in blocks(page))
    held = numbers_of(examples)
    return [
        f"no example holds the number {text}"
        for text in in_prose(page)
        if not is_small_or_year(text) and not is_held(text, held)
    ]
