"""A term tells what it means, wherever it is used once it is explained."""

from guards.site_files import parse
from playwright.sync_api import expect

ADDRESS = "book/scaling.html"


def test_a_term_is_marked_once_in_each_part(site):
    marked = 0
    for name in ("scaling", "layers", "looking_inside"):
        page = parse(site / "book" / f"{name}.html")
        for part in page.select("article > section > section"):
            found = [term["href"] for term in part.select("a.term.used")]
            assert len(found) == len(set(found))
            marked += len(found)
        assert not page.select(":is(h1, h2, h3, pre) a.term, a a.term")
    assert marked > 10


def test_a_term_is_told_to_a_mouse_and_to_a_keyboard(site_url, new_page):
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(site_url + ADDRESS)
    term = page.locator("article a.term:visible").first
    box = page.get_by_role("tooltip")
    expect(box).to_have_count(0)  # as long as it is hidden
    term.focus()
    expect(box).to_be_visible()
    expect(box).to_have_text(term.get_attribute("data-says"))
    assert term.get_attribute("aria-describedby") == box.get_attribute("id")
    place = box.bounding_box()
    assert place["x"] >= 0 and place["x"] + place["width"] <= 360
    page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    term.hover()
    expect(box).to_be_visible()
    box.hover()
    page.wait_for_timeout(300)
    expect(box).to_be_visible()
    page.mouse.move(0, 0)
    expect(box).to_have_count(0)


def test_a_finger_reads_before_it_follows(site_url, new_page):
    page = new_page(has_touch=True)
    page.goto(site_url + ADDRESS)
    term = page.locator("article a.term:visible").first
    term.tap()
    expect(page.get_by_role("tooltip")).to_be_visible()
    assert page.url.endswith(ADDRESS)
    term.tap()
    page.wait_for_url("**/glossary.html*")
