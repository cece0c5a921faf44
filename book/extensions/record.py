"""The record of our own conclusions: what is inferred, and where it held.

One TOML file a chapter in ``book/conclusions``, a row a sentence that says
more than the cell above it. Read here without Sphinx; `conclusions` shows the
rows on the site, and the tests in ``tests/conclusions`` judge each setting.
"""

import itertools
import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LINK = re.compile(
    r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?:\.\./)*conclusions\.md#([\w-]+)\)"
)
COMPUTED = "computed"  # by the test itself, as nothing has to be trained

Setting = dict[str, Any]


@dataclass(frozen=True)
class Conclusion:
    """One row of the record."""

    chapter: str
    id: str
    says: str
    test: str
    source: str = ""  # an experiment, COMPUTED, or nothing for a proof
    held: Setting = field(default_factory=dict)
    varied: dict[str, list] = field(default_factory=dict)
    over: list[str] = field(default_factory=list)  # pooled in each setting
    not_in: list[Setting] = field(default_factory=list)
    instead: str = ""  # what the page says of the settings in not_in
    instead_of: str = ""  # the rival explanation, and the intervention
    proved: bool = False

    def settings(self) -> list[Setting]:
        """Every combination of what was varied."""
        if self.proved:
            return []
        values = itertools.product(*self.varied.values())
        return [dict(zip(self.varied, v, strict=True)) for v in values]

    def stands(self) -> list[bool]:
        """For each setting, whether it held; a test tries each of them."""
        return [
            not any(within(setting, part) for part in self.not_in)
            for setting in self.settings()
        ]

    def summary(self) -> str:
        """In how many settings it held, in words."""
        if self.proved:
            return "proved"
        stands = self.stands()
        return f"held in {sum(stands)} of {len(stands)} settings"


def within(run: Setting, part: Setting) -> bool:
    """Whether a run, or a setting, has these values, where it has the name."""
    return all(run.get(name, value) == value for name, value in part.items())


def runs_of(row: Conclusion, measurements: Path) -> list[Setting]:
    """The committed runs that a row speaks of.

    What some run states, a run that does not state it has otherwise.
    """
    if row.proved or row.source == COMPUTED:
        return []
    path = measurements / f"{row.source}.json"
    runs = json.loads(path.read_text("utf-8"))["runs"]
    for name, value in row.held.items():
        stated = any(run.get(name) == value for run in runs)
        absent = None if stated else value
        runs = [run for run in runs if run.get(name, absent) == value]
    return runs


def read_record(folder: Path) -> list[Conclusion]:
    """All rows of all chapters, in the order of their files.

    Raises:
        ValueError: if a row lacks something or has too much; it names the
            file and the row.
    """
    rows = []
    for path in sorted(folder.rglob("*.toml")):
        chapter = path.relative_to(folder).with_suffix("").as_posix()
        for row in tomllib.loads(path.read_text("utf-8"))["conclusion"]:
            name = row.get("id")
            row = {"source" if k == "from" else k: row[k] for k in row}
            try:
                rows.append(Conclusion(chapter=chapter, **row))
            except TypeError as why:
                raise ValueError(
                    "a conclusion has id, says and test, and proved or from, "
                    f"held and varied, but in {path.name} {name}: {why}"
                ) from None
    return rows


def prose(path: Path) -> str:
    """The Markdown of a notebook, or nothing if there is none."""
    if not path.exists():
        return ""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    texts = ("".join(c["source"]) for c in cells if c["cell_type"] != "code")
    return "\n\n".join(texts)


def said(text: str) -> list[tuple[str, str]]:
    """Each sentence of a text that links to a row, with the row's id."""
    return [
        (" ".join(words.split()), name) for words, name in LINK.findall(text)
    ]
