"""What runs the suite: recipes, stages, steps, options, pins."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

from tools.measure.corruptions import texts
from tools.measure.corruptions.corruption import Corruption, kind

NAME = "commands"
# File, what it is called, a pattern, what comes instead of each match.
EDITS = [
    ("Makefile", "errors ignored", r"^\t@", "\t-@"),
    ("Makefile", "recipe gone", r"^\t@.+\n", ""),
    ("Makefile", "red is green", r"(tools\.\w+\.\w+)$", r"\1 || true"),
    (".ci/run", "red is green", r"make test$", "make test || true"),
    (".ci/run", "line gone", r"^set .*\n|^make test\n", ""),
    ("tools/verify/stages.py", "stage gone", r'^ {8}"\w+": \[.*\],\n', ""),
    ("tools/verify/stages.py", "always green", r"return 1 if red", "return 0"),
    ("tools/verify/stages.py", "lax", r'"--nbval"', '"--nbval-lax"'),
    (
        "tools/verify/stages.py",
        "fewer tests",
        r'"tests", "src", ',
        '"tests", ',
    ),
    ("tools/verify/stages.py", "code", r"code == 0", "code >= 0"),
    ("tools/verify/slowest.py", "limit", r"= (\d+)\.0", r"= 9\1.0"),
    ("pyproject.toml", "warnings", r'\["error"\]', '["ignore"]'),
    (
        "pyproject.toml",
        "ignored",
        r'  "--doctest-modules",',
        '  "--doctest-modules", "--ignore=tests/site",',
    ),
    ("pyproject.toml", "no doctests", r'  "--doctest-modules",\n', ""),
    ("pyproject.toml", "deselected", r'"--strict-config"', '"-k", "not lab"'),
    ("pyproject.toml", "not strict", r"xfail_strict = true", ""),
    ("pyproject.toml", "no rule", r'"(?:E|F|B|D|RUF|N|SIM|C4)", ', ""),
    ("pyproject.toml", "types", r"check_untyped_defs = true\n", ""),
    ("pyproject.toml", "types", r'files = \["src"\]', 'files = ["tools"]'),
    ("pyproject.toml", "spelling", r'skip = "', 'skip = "*.ipynb,*.md,'),
    ("_config.yml", "setting", r"^(\s+\w+): (true|false)$", r"\1: null"),
]
ESCAPES = {
    "collect_ignore": 'collect_ignore = ["test_masks.py"]\n',
    "hook": "def pytest_collection_modifyitems(items):\n    del items[::2]\n",
    "warnings": 'import warnings\n\nwarnings.simplefilter("ignore")\n',
}


@kind(NAME)
def commands(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Each edit of the list, at each place where its pattern fits."""
    for name, rule, pattern, instead in EDITS:
        text = (root / name).read_text("utf-8")
        for match in re.finditer(pattern, text, re.MULTILINE):
            edited = texts.replaced(text, match, match.expand(instead))
            line = text.count("\n", 0, match.start()) + 1
            yield Corruption(
                NAME,
                rule,
                f"{name}:{line}",
                match.group(),
                match.expand(instead),
                {name: edited},
            )
    yield from workflows(root)
    yield from conftests(root)
    yield from pins(root)


def workflows(root: Path) -> Iterator[Corruption]:
    """A step that is gone, or may fail; a job that runs on a condition."""
    run, gap = r"^( {6}- run: .*\n)", " " * 8
    for piece in texts.files(root, ".github/workflows/*.yml"):
        rules = {
            "step gone": (r"^ {6}- (?:run|uses): .*\n(?: {8}.*\n)*", ""),
            "may fail": (
                r"^( {6}- run: .*\n)",
                "\\1        continue-on-error: true\n",
            ),
            "conditional": (run, rf"\1{gap}if: false\n"),
            "red is green": (r"^( {6}- run: .*)$", r"\1 || true"),
            "no needs": (r"^ {4}needs: .*\n", ""),
            "when": (r"^  push:.*\n|^    branches: \[main\]\n", ""),
            "rights": (r"^(\s+contents): read", r"\1: write"),
            "commit": (r"@[0-9a-f]{6}", "@000000"),
        }
        for rule, (pattern, instead) in rules.items():
            for match in re.finditer(pattern, piece.text, re.MULTILINE):
                edited = texts.replaced(
                    piece.text, match, match.expand(instead)
                )
                line = piece.text.count("\n", 0, match.start()) + 1
                yield Corruption(
                    NAME,
                    f"workflow: {rule}",
                    f"{piece.path}:{line}",
                    match.group(),
                    match.expand(instead),
                    {piece.path: edited},
                )


def conftests(root: Path) -> Iterator[Corruption]:
    """A conftest that leaves tests out, or a new one that does."""
    folders = sorted({p.parent for p in root.glob("tests/**/test_*.py")})
    for folder in folders:
        path = (folder / "conftest.py").relative_to(root).as_posix()
        old = root / path
        text = old.read_text("utf-8") if old.exists() else ""
        for rule, escape in ESCAPES.items():
            yield Corruption(
                NAME,
                f"conftest: {rule}",
                path,
                "",
                escape,
                {path: f"{text}\n\n{escape}"},
            )


def pins(root: Path) -> Iterator[Corruption]:
    """A pin that moved, or is no pin any more, or is gone."""
    for piece in texts.files(root, "requirements*.txt"):
        for match in re.finditer(r"^([\w.-]+)==([\w.]+)", piece.text, re.M):
            up = texts.digit_up(match[2]) or match[2]
            others = {
                "pin moved": f"{match[1]}=={up}",
                "no pin": f"{match[1]}>={match[2]}",
                "pin gone": "",
            }
            for rule, becomes in others.items():
                edited = texts.replaced(piece.text, match, becomes)
                yield Corruption(
                    NAME,
                    rule,
                    f"{piece.path}: {match[1]}",
                    match.group(),
                    becomes,
                    {piece.path: edited},
                )
