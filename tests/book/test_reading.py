"""The first reading of each chapter, and the glossary."""

import subprocess
import sys
from pathlib import Path

import glossary
import nbformat
import pytest
from guards import reading
from guards.terms import term_breaks

from tools.build.notebooks import in_contents

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = in_contents(ROOT)


@pytest.mark.parametrize(
    "guard",
    [
        reading.too_long,
        reading.too_slow,
        reading.equation_late,
        reading.no_recall,
    ],
    ids=lambda guard: guard.__name__,
)
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_first_reading_keeps_the_rules(path, guard):
    assert guard(path.stem, nbformat.read(path, as_version=4)) == []


def test_only_chapters_are_listed_as_breaking_a_rule():
    names = {path.stem for path in CHAPTERS}
    assert names >= reading.TOO_LONG | reading.EQUATION_LATE
    assert names >= reading.NO_RECALL | reading.WITHOUT_EQUATION
    assert names >= reading.TIMED >= reading.SLOW


def test_no_term_is_used_before_it_is_explained():
    assert term_breaks(ROOT) == []


def test_the_glossary_is_read_with_python_alone():
    """Not with Sphinx, which only the site needs."""
    alone = [sys.executable, "-I", "-S", glossary.__file__]
    subprocess.run(alone, check=True, timeout=60)
