"""The index has what the notebooks hold, in their order, and the banks'."""

import re
from pathlib import Path

import pytest
from guards import site_files
from guards.cells import SOLUTION

from selfattn.doctor.exercises import names
from tools.build.notebooks import in_contents, read

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^(#+) +(.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
BUG = re.compile(r"\b(bug|famous)", re.IGNORECASE)
# One that is answered under no heading of its own.
PAPER = re.compile(r"^#+ On paper[^#]*^:class: answer", re.MULTILINE)
EXERCISE = re.compile(r'exercise="([^"]+)"')
VIEW = "application/vnd.jupyter.widget-view+json"


def cells():
    """Each cell of the book: its page, the headings before it, itself."""
    for path in in_contents(ROOT):
        page = path.relative_to(ROOT / "book").with_suffix("").as_posix()
        above = []
        for cell in read(path).cells:
            new = []
            if cell.cell_type == "markdown":
                for level, title in HEADING.findall(
                    FENCE.sub("", cell.source)
                ):
                    del above[len(level) - 1 :]
                    above.append(re.sub(r"[*_`$\\]", "", title))
                    new.append(above[-1])
            yield page, list(above), new, cell


def expected(which):
    """The page of each entry of one list."""
    for page, _, new, cell in cells():
        data = [output.get("data", {}) for output in cell.get("outputs", [])]
        lab = any(VIEW in one for one in data)
        solved = PAPER.search(cell.source) or SOLUTION.search(cell.source)
        if which == "exercises" and solved:
            yield page
        if which == "famous-bugs":
            yield from (page for title in new if BUG.search(title))
        if which == "labs" and lab:
            yield page
        if which == "figures" and not lab:
            drawn = {"image/png", "image/svg+xml"}
            yield from (page for one in data if drawn & set(one))


def entries(site, which):
    """The links of one list."""
    page = site_files.parse(site / "book" / "whereabouts.html")
    return page.select(f"section#{which} li a")


@pytest.mark.parametrize(
    "which", ["exercises", "labs", "famous-bugs", "figures"]
)
def test_the_index_has_what_the_pages_hold_in_their_order(site, which):
    found = [one["href"].partition(".html")[0] for one in entries(site, which)]
    assert found == list(expected(which))
    assert len(found) > 10


def test_every_exercise_of_the_banks_stands_under_one_that_is_listed(site):
    listed = {
        (one["href"].partition(".html")[0], one.get_text().replace("’", "'"))
        for one in entries(site, "exercises")
    }
    led_to = {
        name
        for page, above, _, cell in cells()
        for name in EXERCISE.findall(cell.source)
        if any((page, title) in listed for title in above)
    }
    assert led_to == set(names())


@pytest.mark.parametrize("which", ["exercises", "famous-bugs", "figures"])
def test_an_entry_says_which_one_it_is(site, which):
    """A bug is told in a sentence: ten sections are called a famous bug."""
    told = [one.parent.get_text() for one in entries(site, which)]
    assert all("(second reading)" not in line for line in told)
    if which == "famous-bugs":
        assert len({*told}) == len(told)


def test_a_figure_is_told_from_others(site):
    """Some were "Two drawings." and "Above, one head."."""
    told = [link.get_text() for link in entries(site, "figures")]
    assert len(told) > 80
    assert [words for words in told if len(words.split()) < 6] == []


def test_an_exercise_on_paper_is_told_from_others(site):
    """Nine of them were called "On paper", and no more."""
    told = [one.parent.get_text() for one in entries(site, "exercises")]
    paper = [words for words in told if words.startswith("On paper")]
    assert len(paper) > 10 and "On paper" not in paper
    assert len({*paper}) == len(paper)
    assert all(len(words.split()) > 4 for words in paper)


def test_what_is_told_of_a_bug_keeps_its_code(site):
    """“began with src = self.norm1(src)”, and “a mask that is True”."""
    page = site_files.parse(site / "book" / "whereabouts.html")
    told = page.select("section#famous-bugs li code")
    words = [" ".join(code.get_text().split()) for code in told]
    assert "True" in words and "scaled_dot_product_attention" in words
    assert not page.select("section#famous-bugs li a:not([href])")
