"""Each test of a conclusion is given every setting of its row, one a time.

Where the row says that it did not hold, it must not: a strict xfail.
"""

from functools import cache
from pathlib import Path

import pytest
from record import read_record, runs_of, within

BOOK = Path(__file__).resolve().parents[2] / "book"


@cache
def rows():
    """The rows of all chapters, by the test of each; read once a run."""
    return {row.test: row for row in read_record(BOOK / "conclusions")}


def pytest_generate_tests(metafunc):
    """The settings of the row, with the runs that were made in each."""
    row = rows().get(metafunc.function.__name__)
    if row is None or row.proved:
        return
    runs = runs_of(row, BOOK / "measurements")
    columns = {name for run in runs for name in run}
    cases = []
    for setting, held in zip(row.settings(), row.stands(), strict=True):
        where = {k: setting[k] for k in setting if k in columns}
        made = [run for run in runs if within(run, where)]
        marks = [] if held else [pytest.mark.xfail(strict=True)]
        name = "-".join(str(value) for value in setting.values())
        cases.append(pytest.param(setting, made, marks=marks, id=name))
    metafunc.parametrize(("setting", "runs"), cases)
