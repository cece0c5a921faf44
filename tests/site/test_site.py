"""The built site, page by page."""

import io
import json
import os
import re
from pathlib import Path

import pytest
from contrast import contrast
from guards import site_files, site_pages
from PIL import Image

from tools.build.notebooks import files_in_contents

ROOT = Path(__file__).parents[2]
WINDOWS = {
    "wide": {"width": 1280, "height": 900},
    "narrow": {"width": 360, "height": 740},
}
TEXTS = {".html", ".js", ".css", ".json", ".xml", ".txt", ".ipynb", ".inv"}
# Each looked at by itself: one that has not changed need not be looked at.
PAGES = [f"{name}.html" for name in files_in_contents(ROOT)]
PAGES += ["index.html", "search.html"]


def draws(name):
    """Whether a notebook of this name shows figures that are no lab's."""
    path = ROOT / f"{name}.ipynb"
    cells = json.loads(path.read_text())["cells"] if path.exists() else []
    shown = [
        out.get("data", {}) for c in cells for out in c.get("outputs", [])
    ]
    kinds = [{*data} for data in shown]
    return any("image/png" in kind and len(kind) == 2 for kind in kinds)


WITH_FIGURES = [name for name in files_in_contents(ROOT) if draws(name)]


def addresses(site):
    """Every page's path, as a link from the site's address."""
    return [site_files.name(page, site) for page in site_files.pages(site)]


@pytest.mark.parametrize(
    "guard",
    [
        site_files.fetched_elsewhere,
        site_files.dead_links,
        site_files.undescribed_figures,
        site_files.left_overs,
        site_files.undrawn_formulas,
    ],
    ids=lambda guard: guard.__name__,
)
def test_the_files_keep_the_rules(site, guard):
    assert guard(site) == []


@pytest.fixture
def homes(site, site_url):
    """The site as a wide window sees it, served; and a phone, from disk."""
    return {"wide": site_url, "narrow": f"{site.as_uri()}/"}


def test_no_page_is_left_out(site):
    assert sorted(addresses(site)) == sorted(PAGES)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("address", PAGES)
def test_every_page_is_clean(homes, new_page, looks, window, address):
    """In the light and in the dark."""
    page = new_page(viewport=WINDOWS[window])
    wrong = site_pages.visit(page, homes[window] + address)
    for guard in site_pages.OPEN_PAGE:
        wrong += guard(page)
    wrong += site_pages.inaccessible(page, known=looks)
    assert wrong == []


def test_formulas_need_no_script(site, site_url, new_page):
    page = new_page(java_script_enabled=False)
    page.goto(f"{site_url}book/dot_product.html")
    assert page.locator(".katex").first.is_visible()


def test_a_formula_stands_in_a_page_to_be_seen_and_to_be_heard(site):
    """Not a third time, as TeX, which took up a page's last bytes."""
    text = (site / "book" / "dot_product.html").read_text("utf-8")
    assert "<math" in text and "katex-html" in text
    assert "<annotation" not in text


@pytest.mark.parametrize("how", ["served", "from disk"])
def test_search_finds_a_chapter(site, site_url, page, how):
    home = site_url if how == "served" else f"{site.as_uri()}/"
    page.goto(f"{home}search.html?q=softmax")
    found = page.locator("#search-results a[href*='dot_product']").first
    found.wait_for(timeout=60_000)


def test_a_search_quotes_the_text_and_not_the_menus_around_it(site_url, page):
    page.goto(f"{site_url}search.html?q=mask")
    of_masks = "#search-results li:has(a[href*='masks']) p.context"
    quotes = page.locator(of_masks).all_inner_texts()
    assert len(quotes) > 5
    assert all(quotes)
    assert not any(".pdf" in quote for quote in quotes)


def test_on_a_phone_the_search_button_opens_a_form(site_url, new_page):
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(site_url + "book/intro.html")
    field = page.locator(".search-button__search-container input")
    assert not field.is_visible()
    page.locator(".search-button__button").click()
    field.wait_for(state="visible")
    page.keyboard.press("Escape")
    field.wait_for(state="hidden")
    page.locator(".search-button__button").click()
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    page.locator("#search-results a[href*='dot_product']").first.wait_for()


def test_the_first_page_leads_to_the_book(site_url, page):
    page.goto(site_url)
    page.wait_for_url("**/book/intro.html")


def test_the_skip_link_leads_past_the_menu(site_url, page):
    page.goto(f"{site_url}book/intro.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.hash") == "#main-content"


def test_the_readers_choice_of_colours_is_kept(site_url, new_page):
    page = new_page(color_scheme="light")
    page.goto(f"{site_url}book/intro.html")
    page.locator(".theme-switch-button").click()
    page.goto(f"{site_url}book/notation.html")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


SHIFTS = """
window.shifts = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shifts += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""


def watched(page):
    """Let a page count its shifts, on a slow line and a slow machine."""
    page.add_init_script(SHIFTS)
    slow = page.context.new_cdp_session(page)
    slow.send("Network.enable")
    line = {"downloadThroughput": 200_000, "uploadThroughput": 90_000}
    line |= {"offline": False, "latency": 150}
    slow.send("Network.emulateNetworkConditions", line)
    slow.send("Emulation.setCPUThrottlingRate", {"rate": 4})


@pytest.mark.parametrize("window", WINDOWS)
def test_nothing_jumps_while_the_home_page_comes(site_url, new_page, window):
    """Its lab, in sight at once, took more room than its picture had kept."""
    page = new_page(viewport=WINDOWS[window])
    watched(page)
    page.goto(f"{site_url}book/intro.html")
    page.locator(".lab-runs").wait_for(timeout=60_000)
    page.wait_for_timeout(500)
    assert page.evaluate("window.shifts") <= 0.02


# What moved there: lines that broke anew when the formulas' letters came, the
# columns of a table while its rows came, the foot below what was found.
MOVED = {
    "book/efficient/overview.html": "article p .katex",
    "book/notation.html": "table.stacked",
    "search.html?q=mask": "#search-results li",
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("address", MOVED)
def test_nothing_jumps_while_a_page_comes(site_url, new_page, address, window):
    page = new_page(viewport=WINDOWS[window])
    watched(page)
    page.goto(site_url + address)
    page.locator(MOVED[address]).first.wait_for(timeout=60_000)
    page.evaluate("document.fonts.ready.then(() => 0)")
    page.wait_for_timeout(500)
    assert page.evaluate("window.shifts") <= 0.02


def test_no_script_in_a_page_holds_up_the_next(site):
    """One at a time they took three seconds on a slow line; labs waited."""
    held = re.compile(r"<script(?![^>]*\bdefer\b)[^>]*\bsrc=[^>]*>")
    for page in site_files.pages(site):
        body = page.read_text("utf-8").partition("<body")[2]
        assert held.findall(body) == [], page


def test_letters_of_formulas_keep_their_place(site_url, new_page):
    """Those that stand there until KaTeX's are fetched are as wide."""
    widths = []
    for kept_out in ("", "**/*.woff2"):
        page = new_page()
        if kept_out:
            page.route(kept_out, lambda route: route.abort())
        page.goto(site_url + "book/efficient/overview.html")
        page.evaluate("document.fonts.ready.then(() => 0)")
        every = page.locator("article p .katex").evaluate_all(
            "(all) => all.map((e) => e.getBoundingClientRect().width)"
        )
        widths.append(sum(every))
    assert widths[1] == pytest.approx(widths[0], rel=0.05)


def shades(page, figure):
    """Of a figure as it is seen: each colour's share."""
    figure.scroll_into_view_if_needed()
    page.wait_for_timeout(100)  # until it is painted
    with Image.open(io.BytesIO(figure.screenshot())) as image:
        counted = image.convert("RGB").getcolors(image.width * image.height)
    total = sum(count for count, _ in counted)
    return {"#" + bytes(rgb).hex(): count / total for count, rgb in counted}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_figure_stands_on_the_page_and_out_from_it(
    site_url, new_page, scheme
):
    page = new_page(color_scheme=scheme)
    page.goto(f"{site_url}book/scaling.html")
    figure = page.locator(".cell_output img.dark-light").first
    shares = shades(page, figure)
    ground = max(shares, key=shares.get)
    behind = "getComputedStyle(document.body).backgroundColor"
    rgb = page.evaluate(f"{behind}.match(/\\d+/g).map(Number)")
    assert ground == "#" + bytes(rgb[:3]).hex()
    stands_out = {one: contrast(one, ground) for one in shares}
    drawn = [one for one, by in stands_out.items() if by >= 4.5]
    assert sum(shares[one] for one in drawn) > 0.02
    assert max(stands_out.values()) >= 12


def test_a_picture_is_dense_and_keeps_its_place(site_url, page):
    page.goto(site_url + "book/dot_product.html")
    sizes = page.locator(".cell_output img").evaluate_all(
        """(all) => all.map((e) => [
          ["width", "height"].map((side) => Number(e.getAttribute(side))),
          [e.naturalWidth, e.naturalHeight]])"""
    )
    assert len(sizes) > 3
    for told, loaded in sizes:
        apart = [abs(2 * a - b) for a, b in zip(told, loaded, strict=True)]
        assert max(apart) <= 1


def test_panels_stand_side_by_side_and_on_a_phone_in_a_column(
    site_url, new_page
):
    page = new_page()
    page.goto(site_url + "book/dot_product.html")
    panels = page.locator(".panels").first.locator(".panel")
    boxes = [one.bounding_box() for one in panels.all()]
    assert len(boxes) > 1
    assert len({round(box["y"]) for box in boxes}) == 1
    images = [one.locator("img").bounding_box() for one in panels.all()]
    # One picture, behind as many windows.
    assert max(box["x"] for box in images) - images[0]["x"] < 2
    page.set_viewport_size({"width": 360, "height": 740})
    column = [one.bounding_box() for one in panels.all()]
    tops = [box["y"] for box in column]
    assert tops == sorted(tops) and len({*tops}) == len(tops)
    wide = [box["width"] for box in column]
    assert max(wide) <= 340
    scale = images[0]["width"] / boxes[0]["width"]
    now = panels.first.locator("img").bounding_box()["width"]
    assert now / wide[0] == pytest.approx(scale, rel=0.01)


# The smallest letters of the figures have nine points of 1/72 inch, at a
# hundred pixels an inch: how many pixels are they on this page? And how far
# does a picture reach beyond where it would be cut off?
ON_A_PHONE = """() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  return [...document.querySelectorAll(".cell_output img[width]")]
    .filter((e) => e.clientWidth && !e.matches(".lab-still"))
    .map((e) => {
      const other = e.closest("picture")?.querySelector("source");
      const wide = Number((other ?? e).getAttribute("width"));
      const shown = e.closest(".panel") ?? e;
      let [from, to] = [0, document.documentElement.clientWidth];
      for (let a = shown.parentElement; a; a = a.parentElement) {
        if (getComputedStyle(a).overflowX === "visible") continue;
        const box = a.getBoundingClientRect();
        [from, to] = [Math.max(from, box.left), Math.min(to, box.right)];
      }
      const { left, right } = shown.getBoundingClientRect();
      const beyond = Math.max(from - left, right - to);
      return [e.clientWidth / wide * 9 * 100 / 72, beyond];
    });
}"""


@pytest.mark.parametrize("name", WITH_FIGURES)
def test_a_phone_shows_every_figure_whole_and_legible(
    site_url, new_page, name
):
    """Shrunk to its width letters had six pixels; then 47 scrolled sideways.

    And of the two plots of races one saw names and no points, with no sign
    that there was more.
    """
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{site_url}{name}.html")
    found = page.evaluate(ON_A_PHONE)
    assert found
    letters, beyond = zip(*found, strict=True)
    assert min(letters) >= 9.9
    assert max(beyond) < 1


def test_a_phone_asks_for_its_picture_and_a_wide_window_for_the_other(
    site_url, new_page
):
    """Each has its own size before it is here; nobody gets both."""
    for wide, ending in ((360, True), (1280, False)):
        page = new_page(viewport={"width": wide, "height": 740})
        asked = []
        page.on("request", lambda it, asked=asked: asked.append(it.url))
        page.goto(f"{site_url}book/efficient/window.html")
        shown = page.locator(".cell_output picture img")
        assert shown.count() > 2
        for image in shown.all():
            image.scroll_into_view_if_needed()
            url = image.evaluate("(e) => e.currentSrc")
            assert url.endswith("-phone.png") == ending
        page.wait_for_load_state("networkidle")
        figures = [url for url in asked if "/_images/" in url]
        assert sum(url.endswith("-phone.png") for url in figures) == (
            shown.count() if ending else 0
        )


def test_numbered_formulas_on_a_phone(site_url, new_page):
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(site_url + "book/dot_product.html")
    number = page.locator(".katex-html > .tag").first
    formula = number.locator("xpath=preceding-sibling::*").last
    lowest = formula.bounding_box()
    # Their struts touch; the number's text is below the formula's middle.
    middle = lowest["y"] + lowest["height"] / 2
    assert number.bounding_box()["y"] > middle


def test_an_example_ends_with_its_last_line(site):
    pages = [site / "book" / "notation.html"]
    blocks = [page.read_text().split("</pre>")[:-1] for page in pages]
    assert all(blocks)
    ends = [block for page in blocks for block in page]
    assert not any(block.endswith("\n\n") for block in ends)


def test_without_an_address_no_button_leads_to_a_repository(site):
    """With one, as where the site is published, all of them lead there."""
    address = os.environ.get("BOOK_REPOSITORY_URL", "")
    texts = [page.read_text("utf-8") for page in site_files.pages(site)]
    led = [text for text in texts if "btn-source-" in text or "colab" in text]
    assert bool(led) == bool(address)
    assert all(address in text for text in led)


def test_the_browser_is_told_to_stay_here(site_url, page):
    page.goto(f"{site_url}book/intro.html")
    refused = page.evaluate(
        "fetch('http://localhost:9/').then(() => '', e => e.message)"
    )
    policy = page.locator("meta[http-equiv=Content-Security-Policy]")
    assert refused and "default-src 'self'" in policy.get_attribute("content")


def test_no_page_holds_a_path_of_this_machine(site):
    """That two builds are the same bytes, `tools.build.twice` asks weekly."""
    texts = [p for p in site.rglob("*") if p.suffix in TEXTS]
    assert len(texts) > 50
    here = str(ROOT).encode()
    found = [path for path in texts if here in path.read_bytes()]
    assert found == []


def test_a_page_waits_for_one_style_sheet(site):
    """Of fifteen, each had to be asked for, and one asked for another."""
    for page in site_files.pages(site):
        if page.name == "index.html":
            continue  # it leads on
        head = page.read_text("utf-8").partition("</head>")[0]
        assert head.count('rel="stylesheet"') == 1, page
    (sheet,) = (site / "_static").rglob("*.css")
    assert "@import" not in sheet.read_text("utf-8")


def test_the_home_pages_picture_is_fetched_beside_the_style_sheet(site):
    """It is the largest paint, and waited until the style sheet was here."""
    home = site_files.parse(site / "book" / "intro.html")
    asked = home.select_one("link[rel=preload][as=image]")
    assert asked["href"] == home.select_one("img.lab-still")["src"]
    assert asked.find_next_sibling("link", rel="stylesheet")
    other = site_files.parse(site / "book" / "masks.html")
    assert not other.select("link[rel=preload]")
