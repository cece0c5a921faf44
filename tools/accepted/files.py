"""Whole files whose every word counts: labs, measurements, commands."""

import hashlib
from pathlib import Path

from tools.accepted.facts import Facts

RECORDS = {
    "drawings": (
        "src/selfattn/labs/**/*.js",
        "src/selfattn/labs/**/*.css",
        "book/_static/**/*",
        "book/*.png",
    ),
    "measurements": ("book/measurements/*.json",),
    "commands": (
        "Makefile",
        ".ci/run",
        ".github/workflows/*",
        "pyproject.toml",
        "requirements*.txt",
        "_config.yml",
        "_toc.yml",
        "CITATION.cff",
        "tools/verify/*.py",
        "tests/**/conftest.py",
    ),
}


def of_file(path: Path) -> str:
    """The text of a file; of one that is no text, what stands for it."""
    content = path.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError:
        return hashlib.sha256(content).hexdigest()


def readers(root: Path) -> dict[str, Facts]:
    """The facts of each group of files, by the name of its record."""
    return {
        record: {
            path.relative_to(root).as_posix(): of_file(path)
            for pattern in patterns
            for path in sorted(root.glob(pattern))
            if path.is_file() and "__pycache__" not in path.parts
        }
        for record, patterns in RECORDS.items()
    }
