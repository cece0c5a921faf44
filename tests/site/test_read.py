"""What was read is marked, where it is read and on the first page."""

from playwright.sync_api import expect


def test_what_was_read_is_ticked_and_can_be_forgotten(site_url, page):
    page.goto(f"{site_url}book/masks.html")
    assert page.locator(".was-read").count() == 0
    page.evaluate(
        "document.querySelector('#by-hand').lastElementChild"
        ".scrollIntoView({ block: 'end' })"
    )
    tick = page.locator(".bd-toc-nav a[href='#by-hand'] .was-read")
    expect(tick).to_have_accessible_name("read")
    page.reload()
    expect(tick).to_have_count(1)
    page.goto(f"{site_url}book/intro.html")
    told = page.locator(".cards > li .card-read")
    expect(told).to_have_count(1)
    expect(told).to_contain_text("1 of ")
    page.get_by_role("button", name="Forget what I have read").click()
    expect(told).to_have_count(0)
    page.goto(f"{site_url}book/masks.html")
    assert page.locator(".was-read").count() == 0


def test_who_flies_past_has_not_read(site_url, page):
    page.goto(f"{site_url}book/masks.html")
    page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(1500)
    assert page.locator(".was-read").count() == 0
