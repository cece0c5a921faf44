"""Claims and conclusions in a browser: a filter, and tests they lead to."""

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


def followed(page, link, tests):
    """A test's name, and what stands where it leads to."""
    name = link.inner_text()
    link.click()
    page.wait_for_url(f"**/{tests}.html#*")
    return name, page.locator(":target").inner_text()


def test_a_claims_test_is_a_click_away(site_url, page):
    page.goto(site_url + ADDRESS)
    link = page.locator("table.claims .claim-test a").first
    name, code = followed(page, link, "claim-tests")
    assert f"def {name}(" in code


def test_a_conclusions_test_is_a_click_away(site_url, page):
    page.goto(f"{site_url}book/conclusions.html")
    link = page.locator(".conclusion-row li a:has(code)").last
    name, code = followed(page, link, "conclusion-tests")
    assert f"def {name}(" in code


def test_on_a_phone_the_conclusions_of_a_chapter_are_folded(
    site_url, new_page
):
    """They were a hundred screens, too."""
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{site_url}book/conclusions.html")
    folds = page.locator("details.conclusions-fold")
    height = "document.documentElement.scrollHeight"
    assert folds.count() > 20 and page.evaluate(height) < 8 * 740
    heads = folds.locator("> summary").all_text_contents()
    many = sum(int(head.split()[0]) for head in heads)
    assert many == page.locator(".conclusion-row").count()
    row = page.locator(".conclusion-row").last
    assert not row.is_visible()
    place = row.get_attribute("id")
    page.evaluate(f"location.hash = '#{place}'")
    row.wait_for()
    page.goto("about:blank")
    page.goto(f"{site_url}book/conclusions.html#{place}")
    row.wait_for()
    top = row.evaluate("(e) => e.getBoundingClientRect().top")
    assert 0 <= top < 740


def test_on_a_phone_the_claims_of_a_verdict_are_folded(site_url, new_page):
    """They were a hundred screens, one below the other."""
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{site_url}book/claims.html")
    folds = page.locator("details.claims-fold")
    height = "document.documentElement.scrollHeight"
    assert folds.count() == 5 and page.evaluate(height) < 8 * 740
    assert not page.locator("table.claims tr").first.is_visible()
    heads = folds.locator("> summary").all_text_contents()
    page.get_by_label("Verdict").select_option(label="Wrong")
    row = page.locator("tr:has([id='001-001'])")
    assert row.is_visible() and heads[0].endswith(" claims")
    page.evaluate("location.hash = '#000-018'")
    page.locator("tr:has([id='000-018'])").wait_for()
    page.goto("about:blank")
    page.goto(f"{site_url}book/claims.html#000-018")
    place = page.locator("tr:has([id='000-018'])")
    place.wait_for()
    top = place.evaluate("(e) => e.getBoundingClientRect().top")
    assert 0 <= top < 740
