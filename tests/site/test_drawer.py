"""On a phone the page's contents are a drawer over the text."""

from playwright.sync_api import expect


def test_who_chooses_a_section_sees_it(site_url, new_page):
    """The drawer stayed open over what had been chosen."""
    page = new_page(viewport={"width": 360, "height": 740}, has_touch=True)
    page.goto(f"{site_url}book/intro.html")
    open_ = page.locator("#pst-secondary-sidebar-checkbox")
    page.locator("button.secondary-toggle").first.tap()
    expect(open_).to_be_checked()
    contents = page.locator(".bd-sidebar-secondary a:visible")
    contents.filter(has_text="What verified means").tap()
    expect(open_).not_to_be_checked()
    expect(
        page.locator("h2", has_text="What verified means")
    ).to_be_in_viewport()
