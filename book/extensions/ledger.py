"""The ledger of claims: what the sources say, and what is so.

One TOML file a chapter in ``book/claims``, a row a claim. Read here without
Sphinx; `claims` shows the rows on the site, the guards judge them.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ID = re.compile(r"00[0-4]-\d{3}")

# Verdicts in the order of the page, errors and disagreements first, each with
# its words in a badge, its title, and what it means.
VERDICTS = {
    "wrong": ("wrong", "Wrong", "False, or code that fails or misleads."),
    "contradicts-another-source": (
        "contradicts another source",
        "Contradicts another source",
        "The sources differ; the statement says which is right, or why both "
        "may be.",
    ),
    "holds-with-caveat": (
        "holds with a caveat",
        "Holds with a caveat",
        "True under a condition that the source does not give, or loosely "
        "worded.",
    ),
    "not-reproducible": (
        "not reproducible",
        "Not reproducible",
        "No seed, model, data or hardware is given to check it against.",
    ),
    "holds": ("holds", "Holds", "True as written."),
}
REASONS = {"history", "convention", "GPU only", "not reproducible as given"}


@dataclass(frozen=True)
class Claim:
    """One row of the ledger."""

    chapter: str
    id: str  # source and running number: 000-018
    place: str  # lines of the source: L43
    quote: str
    verdict: str
    statement: str
    test: str | None = None
    reason: str | None = None

    @property
    def where(self) -> str:
        """Source and lines, in words."""
        lines = self.place.replace("L", "").replace("-", "–")
        lines = lines.replace(",", ", ").replace(" vs ", " and ")
        word = "line" if lines.isdigit() else "lines"
        return f"source {int(self.id[:3])}, {word} {lines}"


def read_ledger(folder: Path) -> list[Claim]:
    """All rows of all chapters, by id.

    Raises:
        ValueError: if a row lacks something or has too much; it names the
            file and the row.
    """
    claims = []
    for path in sorted(folder.rglob("*.toml")):
        chapter = path.relative_to(folder).with_suffix("").as_posix()
        for row in tomllib.loads(path.read_text("utf-8")).get("claim", []):
            try:
                claims.append(Claim(chapter=chapter, **row))
            except TypeError as why:
                raise ValueError(
                    f"a claim has id, place, quote, verdict, statement, and "
                    f"test or reason, but in {path.name} {row.get('id')}: "
                    f"{why}"
                ) from None
    return sorted(claims, key=lambda claim: claim.id)
