"""Facts: what a text states, apart from the words that it states it in."""

import hashlib
import re

Facts = dict[str, str]  # where a fact stands, and the fact as it is written

MATHS = re.compile(r"\$\$.+?\$\$|(?<![\\$])\$[^$\n]+\$", re.DOTALL)
TARGET = re.compile(r"\]\(([^)\s]+)\)|\{[\w:.-]+\}`([^`]+)`")
TABLE = re.compile(r"^\s*\|.*$", re.MULTILINE)
FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
UNITS = (
    r"%|‰|per\scent|[µumn]?s|min|minutes?|seconds?|hours?|days?|weeks?|years?"
    r"|[kKMGT]i?B|bytes|times|GFLOPS?|×"
)
NUMERAL = re.compile(
    rf"""
    `[^`\n]+`
    | (?<![\w.])[-−+±]?\.?\d(?:[\d,._]*\d)?(?:e[-−+]?\d+)?[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]*
        (?:\s?(?:{UNITS})(?![\w]))?
    | [½⅓⅔¼¾]
    | \b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty
        |thirty|forty|fifty|sixty|hundreds?|thousands?|millions?|billions?
        |half|halves|thirds?|quarters?|twice|doubles?|triples?)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)


def digest(fact: str) -> str:
    """Twelve hexadecimal digits, whatever the fact's line breaks."""
    plain = " ".join(fact.split())
    return hashlib.sha256(plain.encode()).hexdigest()[:12]


def listed(found: list[str]) -> str:
    """Several pieces as one text, each without its line breaks."""
    return " ¦ ".join(" ".join(piece.split()) for piece in found)


def numerals(text: str) -> list[str]:
    """The numbers of a text with signs and units, and code that has one."""
    found = (match.group().rstrip(".,") for match in NUMERAL.finditer(text))
    return [x for x in found if x[0] != "`" or re.search(r"\d", x)]


def of_text(text: str) -> Facts:
    """The formulas, numbers, tables and links of a text, by kind."""
    bare = FENCE.sub(" ", text)
    targets = ["".join(groups) for groups in TARGET.findall(bare)]
    tables = TABLE.findall(bare)
    words = re.sub(r"\]\([^)\s]+\)|https?://\S+", "] ", bare)
    words = re.sub(r"\{[\w:.-]+\}`[^`]+`", " ", words)
    words = TABLE.sub(" ", MATHS.sub(" ", words))
    words = re.sub(r"^\s*\d+[.)]\s", " ", words, flags=re.MULTILINE)
    kinds = {
        "formulas": MATHS.findall(TABLE.sub(" ", bare)),
        "numbers": numerals(words),
        "tables": tables,
        "links": targets,
    }
    return {kind: listed(found) for kind, found in kinds.items() if found}
