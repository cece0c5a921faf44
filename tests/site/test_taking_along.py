"""The notebooks that the site offers, and the package that they install."""

import json
import os
import zipfile
from pathlib import Path

from guards import site_files
from take_along import install_cell, site_address, wheel_name

from tools.build.notebooks import in_contents

ROOT = Path(__file__).parents[2]


def test_a_notebook_to_take_along_is_ours_with_one_cell_more(site):
    address = site_address(os.environ)
    cell = install_cell(wheel_name(ROOT), address)
    assert address in cell["source"]
    for path in in_contents(ROOT):
        taken = site / "_sources" / path.relative_to(ROOT)
        theirs = json.loads(taken.read_text("utf-8"))
        assert theirs["cells"].pop(1) == cell
        assert theirs == json.loads(path.read_text("utf-8"))


def test_each_chapters_download_is_that_notebook(site):
    for path in in_contents(ROOT):
        page = site / path.relative_to(ROOT).with_suffix(".html")
        (link,) = site_files.parse(page).select("a.btn-download-source-button")
        target = (page.parent / link["href"]).resolve()
        assert target == site / "_sources" / path.relative_to(ROOT)


def test_the_wheel_lies_beside_the_first_page_and_holds_what_is_here(site):
    with zipfile.ZipFile(site / wheel_name(ROOT)) as wheel:
        assert wheel.testzip() is None
        for path in (ROOT / "src" / "selfattn").rglob("*.py"):
            name = path.relative_to(ROOT / "src").as_posix()
            assert wheel.read(name) == path.read_bytes()


def test_the_first_page_leads_to_the_wheel_and_says_its_line(site):
    page = site_files.parse(site / "book" / "intro.html")
    led = [a for a in page.select("a") if a.get("href", "").endswith(".whl")]
    assert led
    for link in led:
        assert (site / "book" / link["href"]).is_file()
    (line,) = page.select("section#how-to-use-it div.install pre")
    place = site_address(os.environ) or "./"
    assert line.get_text().startswith("%pip install -q ")
    assert f"{place}{wheel_name(ROOT)}" in line.get_text()
