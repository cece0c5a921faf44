"""Who loads a page anew, or goes back to it, finds it as they left it."""

import pytest

FOLDED = "doctor.html#where-the-nan-begins"
WINDOWS = {
    "wide": {"width": 1280, "height": 900},
    "narrow": {"width": 360, "height": 740},
}
# How high the page is, and where in the window the section begins.
HEIGHT = "document.documentElement.scrollHeight"
TOP = """document.getElementById("where-the-nan-begins")
  .getBoundingClientRect().top"""


def settled(page):
    """Scripts have set what is too wide, however busy the machine is."""
    height = -1
    for _ in range(40):
        page.wait_for_timeout(300)
        before, height = height, page.evaluate(HEIGHT)
        if height == before:
            return
    raise AssertionError("the page goes on growing or shrinking")


def reloaded(page):
    page.reload(wait_until="networkidle")


def left_and_back(page):
    page.goto(page.url.split("#")[0].replace("doctor", "notation"))
    page.go_back(wait_until="networkidle")


def come(new_page, site_url, window):
    """From home, by its link into a fold."""
    page = new_page(viewport=WINDOWS[window])
    page.goto(f"{site_url}book/intro.html")
    page.get_by_role("link", name="My loss is NaN").click()
    page.wait_for_url(f"**/{FOLDED}")
    page.wait_for_load_state("networkidle")
    settled(page)
    return page


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("again", [reloaded, left_and_back])
def test_a_fold_that_an_address_opened_is_open_again(
    site_url, new_page, window, again
):
    """It was shut, and its reader several screens away."""
    page = come(new_page, site_url, window)
    height, top = page.evaluate(HEIGHT), page.evaluate(TOP)
    assert 0 <= top < 200
    again(page)
    settled(page)
    assert abs(page.evaluate(HEIGHT) - height) < 50
    assert abs(page.evaluate(TOP) - top) <= 2


@pytest.mark.parametrize("again", [reloaded, left_and_back])
def test_who_had_read_on_is_where_they_were(site_url, new_page, again):
    """Not where the address points; and what they had opened is open."""
    page = come(new_page, site_url, "wide")
    page.evaluate(
        "document.querySelectorAll('article details.imports, article "
        "details.claims-box').forEach((e) => { e.open = true; })"
    )
    page.mouse.move(500, 500)
    page.mouse.wheel(0, 1700)
    page.wait_for_timeout(300)
    top = page.evaluate(TOP)
    assert top < -1000
    again(page)
    page.wait_for_timeout(300)
    assert page.locator("article details.imports").get_attribute("open") == ""
    assert abs(page.evaluate(TOP) - top) <= 2


def test_a_page_that_is_opened_begins_where_it_is_asked_to(site_url, page):
    """What was left there before is no matter."""
    page.goto(f"{site_url}book/doctor.html")
    page.evaluate("scrollTo(0, 9000)")
    page.goto(f"{site_url}book/notation.html")
    page.goto(f"{site_url}book/doctor.html")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("scrollY") == 0


@pytest.mark.parametrize("how", ["opened", "followed"])
def test_a_link_to_what_is_folded_opens_it(site_url, page, how):
    """Its reader saw a title, and under it the next."""
    page.goto(f"{site_url}book/scaling.html")
    part = "the-factor-elsewhere-qk-norm-caps-and-sinks-second-reading"
    if how == "opened":
        page.goto(f"{site_url}book/notation.html")
        page.goto(f"{site_url}book/scaling.html#{part}")
    else:
        # One of the contents' lines, which is shown where its part is read.
        line = page.locator(f".bd-toc-nav a[href='#{part}']")
        line.evaluate("(link) => link.click()")
    page.wait_for_load_state("networkidle")
    folded = page.locator(f"#{part} > details.second-reading")
    assert folded.get_attribute("open") == ""
    top = page.locator(f"#{part}").bounding_box()["y"]
    assert 0 <= top < 200
