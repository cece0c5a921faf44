"""The page of claims in a browser: its filter, and the tests it leads to."""

ADDRESS = "book/claims.html"


def test_claims_are_shown_by_chapter_and_by_verdict(site_url, page):
    page.goto(site_url + ADDRESS)
    rows = page.locator("table.claims tbody tr")
    verdict, chapter = (
        page.get_by_label("Verdict"),
        page.get_by_label("Chapter"),
    )
    of_all = rows.count()
    told = page.locator(".claims-filter output")
    assert told.inner_text() == f"{of_all} of {of_all} claims"
    chapter.select_option("masks.html")
    of_masks = rows.locator("visible=true")
    links = of_masks.locator(".claim-chapter a[href='masks.html']")
    assert 0 < of_masks.count() == links.count() < of_all
    verdict.select_option("verdict-wrong")
    assert told.inner_text() == f"{of_masks.count()} of {of_all} claims"
    assert page.locator("#verdict-wrong").is_visible()
    assert not page.locator("#verdict-holds").is_visible()


def test_a_link_to_a_claim_shows_it_whatever_is_filtered(site_url, page):
    page.goto(site_url + ADDRESS)
    page.get_by_label("Chapter").select_option("masks.html")
    page.evaluate("location.hash = '#002-023'")  # of scaling
    page.locator("tr:has([id='002-023'])").wait_for()


def test_a_claims_test_is_a_click_away(site_url, page):
    page.goto(site_url + ADDRESS)
    link = page.locator("table.claims .claim-test a").first
    name = link.inner_text()
    link.click()
    page.wait_for_url("**/claim-tests.html#*")
    place = page.locator(":target")
    assert f"def {name}(" in place.inner_text()
