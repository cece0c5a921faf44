"""A report names a chapter as the book's contents do.

Who read "The chapter “scaling”" looked for it in vain: that is the name of a
file.
"""

import json
import re
from pathlib import Path

from selfattn.doctor.report.chapters import CHAPTERS, in_the_book

ROOT = Path(__file__).parents[3]


def titles():
    """Each chapter's title, in the order of the contents."""
    contents = (ROOT / "_toc.yml").read_text("utf-8")
    found = {}
    for name in re.findall(r"- file: (\S+)", contents):
        notebook = ROOT / f"{name}.ipynb"
        if notebook.exists():
            cells = json.loads(notebook.read_text("utf-8"))["cells"]
            (title,) = re.findall(r"^# (.*)", "".join(cells[0]["source"]))
            found[Path(name).name] = title
    return found


def test_each_chapter_has_its_name_and_its_place():
    assert list(CHAPTERS.items()) == list(titles().items())


def test_a_reader_is_told_the_number_and_the_title():
    told = in_the_book("doctor#where-the-nan-begins")
    number = len(titles())
    title = f"chapter {number}, “Debugging attention”"
    assert told == f"{title}, under “where the nan begins”"
    assert in_the_book("mine") == "the chapter “mine”"
