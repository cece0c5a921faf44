"""The record of conclusions, the runs, the tests and the pages agree."""

import subprocess
import sys
from pathlib import Path

import record
from guards.conclusions import conclusion_breaks

ROOT = Path(__file__).resolve().parents[2]


def test_record_runs_tests_and_pages_agree():
    assert conclusion_breaks(ROOT) == []


def test_the_record_is_read_with_python_alone():
    """Not with Sphinx, which only the site needs."""
    alone = [sys.executable, "-I", "-S", record.__file__]  # no site-packages
    subprocess.run(alone, check=True, timeout=60)
