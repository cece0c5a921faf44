"""Chapters have one name each, and phones show what stands on them."""

import re

from guards.site_files import parse


def test_a_chapter_is_called_the_same_wherever_it_is_named(site):
    """Its number is a part of its name: whoever is told "chapter 3" counts."""
    titles = {}
    for path in (site / "book").rglob("*.html"):
        page = parse(path)
        heading = page.article.h1
        name = path.relative_to(site / "book").as_posix()
        said = heading.get_text().removesuffix(heading.a.get_text())
        titles[name] = said
        # A browser's tab has letters alone; on the page a k is set lower.
        tab = page.title.get_text().replace("ₖ", "k")
        assert tab.startswith(titles[name])
        # A title is plain text: tabs and menus show neither TeX nor code.
        assert not re.search(r"[_^$\\`{}]", titles[name])
    home = parse(site / "book" / "intro.html")
    listed = home.select("#the-way-through-the-book li > p > a:first-child")
    assert len(listed) > 10
    for link in listed:
        assert link.get_text() == titles[link["href"]]
    menu = home.select("nav.bd-links .caption ~ .nav a")
    for link in menu:
        assert link.get_text() == titles[link["href"]]


def test_a_fold_is_called_by_the_words_on_it(site_url, page):
    """It read "Toggle hidden content" aloud, and one saw "Show the code"."""
    page.goto(f"{site_url}book/multihead.html")
    folds = page.locator("details.hide.above-input > summary")
    assert folds.count() > 5
    assert folds.locator("xpath=self::*[@aria-label]").count() == 0
    snapshot = folds.first.aria_snapshot()
    assert "Show the code" in snapshot and "Hide the code" not in snapshot


def test_parts_and_chapters_are_called_so_in_the_lists_of_things(site):
    """The menu had "Back matter" where home had "To look things up"."""
    home = parse(site / "book" / "intro.html")
    way = home.select("#the-way-through-the-book > section > :is(h2, h3)")
    parts = [title.find(string=True, recursive=False) for title in way]
    menu = home.select("nav.bd-links .caption-text")
    assert parts == [caption.get_text() for caption in menu] and len(parts) > 3
    titles = {link.get_text() for link in home.select("nav.bd-links .nav a")}
    index = parse(site / "book" / "whereabouts.html")
    named = index.select("#exercises > p > strong, #labs li a")
    assert len(named) > 30
    assert {name.get_text() for name in named} <= {
        title.strip() for title in titles
    }


def test_the_tests_of_claims_stand_under_their_chapters_titles(site):
    page = parse(site / "book/claim-tests.html")
    heads = [e.find(string=True) for e in page.select("article h2")]
    record = parse(site / "book/conclusions.html")
    titles = [e.find(string=True) for e in record.select("article h2")]
    assert [head for head in heads if head in titles] == [
        title for title in titles if title in heads
    ]
    assert len(set(heads) & set(titles)) > 17


def test_every_chapter_has_a_number_and_a_card_in_the_order_of_the_book(site):
    """The one on several devices had no card."""
    home = parse(site / "book" / "intro.html")
    listed = home.select("#the-way-through-the-book li > p > a:first-child")
    menu = home.select("nav.bd-links .caption ~ .nav a")
    chapters = [link["href"] for link in menu if link.text[0].isdigit()]
    assert [link["href"] for link in listed][: len(chapters)] == chapters
    numbers = [
        int(link.text.split(".")[0]) for link in listed if "." in link.text
    ]
    assert numbers == list(range(1, len(chapters) + 1))
    assert len(chapters) > 20


def test_no_title_has_a_letter_that_its_font_has_not(site_url, page):
    """In a chapter's title, in menus and cards ₖ was of another font."""
    lowered = "sub.letter:text-is('k')"
    page.goto(f"{site_url}book/scaling.html")
    assert page.title().startswith("3. Why divide by √dₖ")
    title = page.locator("article h1").inner_text()
    assert title.startswith("3. Why divide by √dk")
    # A k that is set lower is not parted from its letter at a line's end.
    parting = "e => getComputedStyle(e.parentElement).whiteSpace"
    assert page.locator(f"article h1 {lowered}").evaluate(parting) == "nowrap"
    assert page.locator(f"nav.bd-links .nav {lowered}").count() == 1
    page.goto(f"{site_url}book/intro.html")
    assert page.locator(f"#the-way-through-the-book {lowered}").count()
    page.goto(f"{site_url}search.html?q=why divide by sqrt d")
    found = page.locator("#search-results a[href*='scaling']").first
    found.wait_for(timeout=60_000)
    found = page.locator("#search-results")
    assert found.locator(lowered).count()
    assert "ₖ" not in found.inner_text()


def test_a_phone_shows_every_column_of_the_notation(site_url, new_page):
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{site_url}book/notation.html")
    tables = page.locator("table.stacked")
    assert tables.count() == 2
    cells = tables.first.locator("tbody tr").first.locator("td")
    assert cells.count() == 5
    for cell in cells.all():
        box = cell.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360
    head = "getComputedStyle(e, '::before').content"
    heads = cells.evaluate_all(f"(all) => all.map((e) => {head})")
    assert heads[1:] == [
        '"in the code: "',
        '"what it is: "',
        '"in the papers: "',
        '"elsewhere: "',
    ] or heads[1].startswith("attr(")
    shown = tables.first.locator("td:visible")
    assert all(text.strip() for text in shown.all_inner_texts())


def test_a_phone_shows_all_of_the_result_on_positions(site_url, new_page):
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{site_url}book/positions.html")
    figure = page.locator("img[alt^='Share of right answers for ten']")
    box = figure.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 360
    # Its letters are ten points of 1/72 inch, at a hundred pixels an inch.
    drawn = figure.evaluate("(e) => e.clientWidth / e.getAttribute('width')")
    assert drawn * 100 * 10 / 72 >= 9.5


def test_a_phone_shows_each_claim_in_full_lines(site_url, new_page):
    """What is so under what the source says, not beside it in a third."""
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{site_url}book/claims.html")
    rows = page.locator("table.claims tbody tr")
    assert rows.count() > 100
    page.locator("article details").evaluate_all(
        "(all) => all.forEach((e) => { e.open = true; })"
    )
    for row in (rows.first, rows.last):
        said, so = (cell.bounding_box() for cell in row.locator("td").all())
        assert so["y"] >= said["y"] + said["height"]
        assert min(said["width"], so["width"]) > 280
