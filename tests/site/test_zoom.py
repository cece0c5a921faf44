"""Every page at twice its size, for who has asked for nothing to move."""

from pathlib import Path

import pytest
from guards import site_pages

from tools.build.notebooks import files_in_contents

ROOT = Path(__file__).parents[2]
PAGES = [f"{name}.html" for name in files_in_contents(ROOT)]
PAGES += ["search.html?q=softmax"]
ZOOMED = {
    "viewport": {"width": 640, "height": 450},
    "device_scale_factor": 2,
    "reduced_motion": "reduce",
}
MOVING = """() => [...document.getAnimations()]
  .filter((it) => it.timeline === document.timeline)
  .filter((it) => it.playState === "running")
  .map((it) => it.effect.target.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("address", PAGES)
def test_every_page_can_be_read_at_200_per_cent(site_url, new_page, address):
    page = new_page(**ZOOMED)
    wrong = site_pages.visit(page, site_url + address)
    wrong += site_pages.overflowing(page) + site_pages.shrunk(page)
    wrong += [f"moves: {one}" for one in page.evaluate(MOVING)]
    wrong += site_pages.inaccessible(page)
    assert wrong == []
