"""A notebook for which a reader would wait too long is named."""

from collections import Counter

import nbformat
import pytest

from tools.verify import slowest
from tools.verify.slowest import LONGEST_ALL, LONGEST_ONE, seconds, too_slow

SLOW = "book.slow.ipynb"


@pytest.mark.parametrize("alone", [LONGEST_ONE, LONGEST_ONE + 1])
def test_a_notebook_slow_in_company_is_timed_alone(tmp_path, alone):
    """A slower machine was red by a site that was built beside."""
    report = tmp_path / "report.xml"
    case = '<testcase classname="book.slow.ipynb" name="Cell 0" time="{}"/>'
    report.write_text(f"<a>{case.format(31.0)}{case.format(30.0)}</a>")
    asked = []
    over = too_slow(seconds(report), lambda name: asked.append(name) or alone)
    assert asked == [SLOW]
    assert bool(over) == (alone > LONGEST_ONE)


def test_a_quick_notebook_is_not_run_again():
    assert too_slow(Counter({SLOW: LONGEST_ONE}), alone=None) == []


def test_all_of_them_have_a_limit_too():
    many = Counter({f"book.{i}.ipynb": LONGEST_ONE for i in range(8)})
    assert too_slow(many, alone=None) == []
    assert too_slow(many + Counter({SLOW: 1.0}), alone=lambda _: LONGEST_ONE)
    assert many.total() == LONGEST_ALL


def test_company_is_taken_off_all_of_them():
    """A neighbour's work on the same cores was the book's fault."""
    many = Counter({f"book.{i}.ipynb": 1.5 * LONGEST_ONE for i in range(8)})
    assert too_slow(many, alone=lambda _: LONGEST_ONE) == []
    twelve = Counter({f"book.{i}.ipynb": LONGEST_ONE for i in range(12)})
    asked = []
    (over,) = too_slow(twelve, lambda name: asked.append(name) or 50.0)
    assert over == "the notebooks took 600 s; together they may take 480 s"
    assert asked == ["book.0.ipynb"]


def test_company_that_quickens_counts_as_none():
    nine = Counter({f"book.{i}.ipynb": LONGEST_ONE for i in range(9)})
    _, over = too_slow(
        nine + Counter({SLOW: LONGEST_ONE + 1}), lambda _: 2 * LONGEST_ONE
    )
    assert "took 601 s" in over


def test_a_slower_machine_has_a_longer_limit_for_all_and_none_for_one():
    many = Counter({f"book.{i}.ipynb": LONGEST_ONE for i in range(16)})
    assert too_slow(many, alone=None, slower=2.0) == []
    more = many + Counter({SLOW: LONGEST_ONE + 1})
    one, together = too_slow(more, lambda _: LONGEST_ONE + 1, 2.0)
    assert "a notebook may take 60 s" in one
    assert "together they may take 960 s" in together


@pytest.mark.parametrize(("each", "slower"), [(0.03, 1.0), (0.1, 2.5)])
def test_the_pace_is_a_plain_loop_s_middle_time(monkeypatch, each, slower):
    """One try in nine that met a neighbour does not decide."""
    ticks = [x for i in range(9) for x in (0.0, each if i else 9.0)]
    monkeypatch.setattr(slowest, "LOOP", 1)
    monkeypatch.setattr(slowest.time, "perf_counter", lambda: ticks.pop(0))
    assert slowest.pace() == slower
    assert ticks == []


def test_alone_means_every_cell_of_that_notebook(monkeypatch, tmp_path):
    """The time is that of pytest's own report, not of a made-up one."""
    waits = nbformat.v4.new_code_cell("import time\ntime.sleep(0.6)")
    book = nbformat.v4.new_notebook(cells=[waits])
    (tmp_path / "book").mkdir()
    nbformat.write(book, tmp_path / SLOW.replace("book.", "book/"))
    monkeypatch.chdir(tmp_path)
    assert 0.6 < slowest.seconds_alone(SLOW) < LONGEST_ONE
