"""Where a lab needs no theory, its chapter begins with it in small."""

import lab_scripts
import pytest
from playwright.sync_api import expect

WIDTHS = {1280: 900, 360: 740}
FOLDERS = {
    "window": "efficient/",
    "sparse": "efficient/",
    "swin": "efficient/",
}
HELD = """(small) => [
  small.getBoundingClientRect().height,
  small.lastElementChild.getBoundingClientRect().bottom
    - small.getBoundingClientRect().top,
]"""


def opened(page, site_url, stem):
    page.goto(f"{site_url}book/{FOLDERS.get(stem, '')}{stem}.html")
    small = page.locator(f"[data-small={stem}]")
    expect(small.locator(".lab-insight")).to_be_visible()
    return small


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("stem", lab_scripts.SMALL)
def test_its_place_is_kept_and_near_the_start(site_url, new_page, stem, width):
    page = new_page(viewport={"width": width, "height": WIDTHS[width]})
    small = opened(page, site_url, stem)
    kept, needed = small.evaluate(HELD)
    assert 0 <= kept - needed < 60
    assert small.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    if width == 1280:
        top = small.bounding_box()["y"]
        assert top + kept < 2 * WIDTHS[width]


@pytest.mark.parametrize("stem", lab_scripts.SMALL)
def test_it_says_what_the_lab_says_and_leads_there(site_url, page, stem):
    small = opened(page, site_url, stem)
    lab = page.locator(".lab-place .selfattn-lab")
    said = small.locator(".lab-insight")
    expect(lab.locator(".lab-insight")).to_have_text(said.inner_text())
    before = said.inner_text()
    small.locator(".lab-tasks button").last.click()
    expect(said).not_to_have_text(before)
    assert lab.locator(".lab-insight").inner_text() == before
    small.get_by_role("link", name="All of it, further down").click()
    expect(lab.locator(".lab-insight")).to_have_text(said.inner_text())
    expect(lab).to_be_in_viewport()
    assert not small.locator(".lab-controls").first.is_visible()


def test_it_is_neither_on_paper_nor_without_scripts(site_url, new_page):
    page = new_page(java_script_enabled=False)
    page.goto(f"{site_url}book/masks.html")
    expect(page.locator("[data-small]")).to_be_hidden()
    page = new_page()
    small = opened(page, site_url, "masks")
    page.emulate_media(media="print")
    expect(small).to_be_hidden()


ABOVE = """(small) => small.getBoundingClientRect().top
  - small.previousElementSibling.getBoundingClientRect().bottom"""


@pytest.mark.parametrize("stem", ["origins", "dot_product", "multihead"])
def test_it_does_not_touch_what_stands_above(site_url, new_page, stem):
    """Its first line sat on the fold with the imports."""
    page = new_page(viewport={"width": 360, "height": 740})
    assert opened(page, site_url, stem).evaluate(ABOVE) >= 12
