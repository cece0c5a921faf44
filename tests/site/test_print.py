"""A page on paper: light from any screen, the solutions last."""

import re

import pytest
from contrast import contrast
from playwright.sync_api import expect

# The colours of each text that is seen, and of what is behind it.
TEXTS = """() => {
  const ground = (e) => {
    if (!e) return "rgb(255, 255, 255)";
    const { backgroundColor } = getComputedStyle(e);
    return /, 0\\)$/.test(backgroundColor) ? ground(e.parentElement)
      : backgroundColor;
  };
  const seen = new Set();
  for (const e of document.querySelectorAll("main article *")) {
    const texts = [...e.childNodes].filter((n) => n.nodeType === 3);
    if (!texts.some((n) => n.data.trim()) || !e.checkVisibility()) continue;
    seen.add(`${getComputedStyle(e).color} on ${ground(e)}`);
  }
  return [...seen];
}"""


def without_tab_stops(html):
    """What is folded gets its tab stops when it is first laid out."""
    return re.sub(r' tabindex="-?\d"', "", html)


def in_six_digits(colour):
    parts = re.findall(r"[\d.]+", colour)[:3]
    return "#" + "".join(f"{round(float(part)):02x}" for part in parts)


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_paper_is_light(site_url, new_page, scheme):
    """As the browser prints it with its backgrounds, and without."""
    page = new_page(color_scheme=scheme)
    page.goto(f"{site_url}book/scaling.html")
    page.emulate_media(media="print", color_scheme=scheme)
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    pairs = [pair.split(" on ") for pair in page.evaluate(TEXTS)]
    assert len(pairs) > 5  # text, links, code in several colours
    for text, ground in pairs:
        text, ground = in_six_digits(text), in_six_digits(ground)
        assert contrast(text, ground) >= 4.5
        assert contrast(text, "#ffffff") >= 4.5
    page.emulate_media(media="screen", color_scheme=scheme)
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)


def test_solutions_stand_last_on_paper_and_back_on_the_screen(site_url, page):
    page.goto(f"{site_url}book/scaling.html")
    article = page.locator("article.bd-article")
    before = without_tab_stops(article.inner_html())
    page.emulate_media(media="print")
    article.locator(".solutions-on-paper").wait_for()
    heads = article.locator("h2, h3, h4")
    texts = [text.strip("#") for text in heads.all_text_contents()]
    first = texts.index("Solutions")
    assert texts[first:].count("Solution") == texts.count("Solution") >= 3
    exercises = texts[first + 1 :: 2]
    assert exercises == [text for text in texts[:first] if text in exercises]
    page.emulate_media(media="screen")
    expect(article.locator(".solutions-on-paper")).to_have_count(0)
    assert without_tab_stops(article.inner_html()) == before


def test_no_sentence_has_a_tests_name_in_it_on_paper(site_url, page):
    page.goto(f"{site_url}book/scaling.html")
    page.emulate_media(media="print")
    names = page.locator(".claim-mention .claim-test")
    assert names.count() > 3
    assert not any(names.nth(i).is_visible() for i in range(names.count()))
    page.goto(f"{site_url}book/claims.html")
    page.emulate_media(media="print")
    assert page.locator("table .claim-test").first.is_visible()
