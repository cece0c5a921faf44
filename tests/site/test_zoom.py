"""Every page at twice its size, for who has asked for nothing to move."""

from pathlib import Path

import pytest
from guards import site_pages

from tools.build.notebooks import files_in_contents

ROOT = Path(__file__).parents[2]
PAGES = [f"{name}.html" for name in files_in_contents(ROOT)]
PAGES += ["search.html?q=softmax"]
# axe takes seconds for each, and every page is shown to it on a phone.
OF_EACH_KIND = [PAGES[0], "book/masks.html", "search.html?q=softmax"]
ZOOMED = {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2}
CALM = {**ZOOMED, "reduced_motion": "reduce"}

# What runs by itself, or once all is unfolded, and what would move if it
# were pointed at; but not what follows the scrolling, which a reader does.
MOVING = """() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  const running = document.getAnimations()
    .filter((it) => it.timeline === document.timeline)
    .filter((it) => it.playState === "running")
    .map((it) => it.effect.target);
  const slow = (style) => style.transitionDuration.split(", ")
    .some((duration) => parseFloat(duration) > 0);
  const ready = [...document.querySelectorAll(":not(.katex *, pre *)")]
    .filter((e) => getComputedStyle(e).scrollBehavior === "smooth"
      || [null, "::before", "::after"].some((part) =>
        slow(getComputedStyle(e, part))));
  return [...running, ...ready].map((e) => `${e.tagName}.${e.className}`);
}"""


@pytest.mark.parametrize("address", PAGES)
def test_every_page_can_be_read_at_200_per_cent(site_url, new_page, address):
    page = new_page(**CALM)
    wrong = site_pages.visit(page, site_url + address, until="load")
    wrong += site_pages.overflowing(page) + site_pages.shrunk(page)
    wrong += [f"moves: {one}" for one in page.evaluate(MOVING)]
    assert wrong == []


@pytest.mark.parametrize("address", OF_EACH_KIND)
def test_a_page_of_each_kind_is_accessible_at_200_per_cent(
    site_url, new_page, address
):
    page = new_page(**CALM)
    site_pages.visit(page, site_url + address)
    assert site_pages.inaccessible(page) == []


def test_what_moves_is_seen(site_url, new_page):
    """Who has not asked for calm sees code fade in, and the menus slide."""
    page = new_page(**ZOOMED)
    site_pages.visit(page, f"{site_url}book/masks.html", until="load")
    moving = page.evaluate(MOVING)
    assert "DIV.cell_input docutils container" in moving
    assert any("bd-sidebar-primary" in one for one in moving)
