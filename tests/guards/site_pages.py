"""Guards on the built site that look at its pages in a browser.

Each takes a page of Playwright's and an address, and returns what is wrong.
"""

import gzip
from collections.abc import Callable, Sequence
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, Request, Response

HEAVIEST = 250_000  # bytes, compressed, without pictures
PHONE = 600  # pixels: no wider
SETTLED = 400  # ms: the theme sets its tab stops 300 ms after the load

LAB = ".lab-place .selfattn-lab"

# Characters of an icon font that is not there show as empty boxes.
STRAY_GLYPHS = """() => {
  const found = [];
  const stray = /[\\uE000-\\uF8FF]/;
  for (const element of document.body.querySelectorAll("*")) {
    for (const part of ["::before", "::after"]) {
      const style = getComputedStyle(element, part);
      if (style.display !== "none" && stray.test(style.content))
        found.push(`${element.tagName}.${element.className}${part}`);
    }
  }
  return found;
}"""

# What sticks out to the right, unless something around it scrolls.
TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll("main *")]
    .filter((e) => e.getBoundingClientRect().right > width + 1)
    .filter((e) => !e.closest("pre, .katex-display, table"))
    .slice(0, 5)
    .map((e) => `${e.tagName}.${e.className}`);
}"""

# Displayed formulas that scroll in their column; on a phone some must.
CUT_OFF = """() => [...document.querySelectorAll(".katex-display")]
  .filter((e) => e.parentElement.scrollWidth > e.parentElement.clientWidth + 1
    || e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.querySelector(".katex-html").textContent.slice(0, 40))
"""

# Pictures that are shown so small that their letters, of nine points or more,
# cannot be read: with what is folded unfolded for as long as that takes.
SHRUNK = """(least) => {
  // A phone may be shown another picture, which has a size of its own.
  const own = (image) => {
    const other = image.closest("picture")?.querySelector("source");
    return other && matchMedia(other.media).matches ? other : image;
  };
  const folded = [...document.querySelectorAll("details:not([open])")];
  for (const fold of folded) fold.open = true;
  const found = [...document.querySelectorAll("article img[width]")]
    .filter((e) => e.clientWidth && !e.matches(".lab-still"))
    .map((e) => [e.clientWidth / own(e).getAttribute("width"), e.alt])
    .filter(([size]) => size < least - 0.005)
    .map(([size, alt]) => `${size.toFixed(2)}: ${alt.slice(0, 40)}`);
  for (const fold of folded) fold.open = false;
  return found;
}"""
LEAST = {"phone": 0.86, "wide": 0.8}  # of a picture's own size

# Two elements with text of their own for each look that is not known yet:
# colours, size, weight, and how see-through they and all behind them are.
MARK_SPECIMENS = """([within, known]) => {
  const [seen, grounds] = [new Map(known.map((look) => [look, 2])), new Map()];
  const ground = (element) => {
    if (!element) return "";
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const { backgroundColor, backgroundImage, opacity } = style;
      const own = [backgroundColor, backgroundImage, opacity].join();
      const clear = /, 0\\),none,1$/.test(own);
      const behind = ground(element.parentElement);
      grounds.set(element, clear ? behind : `${own};${behind}`);
    }
    return grounds.get(element);
  };
  const root = within ? document.querySelector(within) : document.body;
  for (const element of [root, ...root.querySelectorAll("*")]) {
    const texts = [...element.childNodes].filter((e) => e.nodeType === 3);
    if (!texts.some((e) => e.data.trim())) continue;
    if (!element.checkVisibility()) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(element);
    const look = [color, fontSize, fontWeight, ground(element)].join();
    const before = seen.get(look) ?? 0;
    if (before < 2) element.dataset.specimen = "";
    seen.set(look, before + 1);
  }
  return [...seen.keys()];
}"""

# What is around the place, and most of the thousands of pieces that KaTeX
# and Pygments make of formulas and of code: axe looks at every element.
TAKE_AWAY = """(within) => {
  const root = within ? document.querySelector(within) : document.body;
  for (let e = root; e !== document.body; e = e.parentElement)
    for (const other of [...e.parentElement.children])
      if (other !== e) other.remove();
  const plain = (selector) => [...root.querySelectorAll(selector)]
    .filter((e) => !e.matches("[data-specimen], :has([data-specimen])"));
  for (const formula of plain(".katex")) formula.replaceChildren("x");
  for (const piece of plain(".highlight pre span"))
    piece.replaceWith(piece.textContent);
  for (const icon of root.querySelectorAll("button svg"))
    icon.replaceChildren(...icon.querySelectorAll("title"));
}"""

ONE_OF_A_LOOK = {"id": "color-contrast", "selector": "[data-specimen]"}

# Whose outcome the width of a window can change: what a finger can hit, what
# scrolls. A phone's page has the texts, the pictures and the parts of a wide
# one, whose menus beside the text are the same on every page.
BY_WIDTH = ["target-size", "scrollable-region-focusable"]


def control(lab: Locator, setting: str) -> Locator:
    """What a lab is set with: one input, or several of one name."""
    return lab.locator(f"[data-setting={setting}]")


def visit(
    page: Page,
    address: str,
    until: Literal["load", "networkidle"] = "networkidle",
) -> list[str]:
    """Open a page and say what it asked for in vain, or should not have.

    Args:
        page: a fresh page of the browser.
        address: http or file; every request must stay under the same origin
            (for a file: in the file system).
        until: when it counts as open; "load" is half a second sooner.
    """
    found: list[str] = []
    home = "file:///" if address.startswith("file:") else origin(address)

    def asked(request: Request) -> None:
        if not request.url.startswith((home, "data:", "blob:")):
            found.append(f"asks for {request.url}")

    def answered(response: Response) -> None:
        if response.status >= 400:
            found.append(f"{response.status} for {response.url}")

    def failed(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page led elsewhere
            found.append(f"no {request.url}: {request.failure}")

    page.on("request", asked)
    page.on("response", answered)
    page.on("requestfailed", failed)
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on(
        "console",
        lambda it: (
            found.append(f"{it.type}: {it.text}")
            if it.type in ("error", "warning")
            else None
        ),
    )
    page.goto(address, wait_until=until)
    page.wait_for_timeout(SETTLED)
    return list(found)  # what comes later is not the page's own doing


def origin(address: str) -> str:
    """Scheme, host and port."""
    return "/".join(address.split("/")[:3]) + "/"


def weigh(page: Page) -> dict[str, int]:
    """The open page and all that it loaded but pictures: compressed bytes."""
    loaded = "performance.getEntriesByType('resource').map((e) => e.name)"
    sizes = {}
    for url in [page.url, *page.evaluate(loaded)]:
        response = page.request.get(url)
        if not response.headers["content-type"].startswith("image/"):
            body = response.body()
            sizes[url] = min(len(body), len(gzip.compress(body, mtime=0)))
    return sizes


def overweight(page: Page, limit: int = HEAVIEST) -> list[str]:
    """The open page is light enough for a slow connection."""
    if not page.url.startswith("http"):
        return []  # from disk
    sizes = weigh(page)
    total = sum(sizes.values())
    if total <= limit:
        return []
    worst = sorted(sizes, key=lambda url: -sizes[url])[:3]
    parts = ", ".join(f"{url} {sizes[url]:,}" for url in worst)
    return [f"weighs {total:,} bytes of {limit:,}; most of it: {parts}"]


def inaccessible(
    page: Page, within: str | None = None, known: set[str] | None = None
) -> list[str]:
    """What axe finds on the open page, or within what a selector names.

    Every rule in the light, and text too pale for what is behind it in the
    dark also. On a phone: what its width can change, which is looked at in a
    wide window on the first page alone. Of the elements that look alike two
    are examined for colours, and none whose look is `known` to be right from
    other pages, to which those of a page without faults are added: axe takes
    milliseconds for each, and a page has thousands. Much of the page is gone
    afterwards: look at all else before.
    """
    known = set() if known is None else known
    wide = page.viewport_size["width"] > PHONE
    looks: set[str] = set()
    for scheme in ("dark", "light") if wide else ("light",):
        page.emulate_media(color_scheme=scheme)
        marked = page.evaluate(MARK_SPECIMENS, [within, sorted(known)])
        looks.update(marked)
    page.evaluate(TAKE_AWAY, within)
    page.evaluate(Axe().axe_script)
    page.evaluate("(rule) => axe.configure({ rules: [rule] })", ONE_OF_A_LOOK)
    contrast = [ONE_OF_A_LOOK["id"]]
    if not wide:
        found = axe(page, within, [*BY_WIDTH, *contrast])
    else:
        found = axe(page, within, without=BY_WIDTH if known else ())
    if wide and looks > known:
        page.emulate_media(color_scheme="dark")
        found += axe(page, within, contrast)
    if not found:
        known.update(looks)
    return found


def axe(
    page: Page,
    within: str | None,
    rules: Sequence[str] = (),
    without: Sequence[str] = (),
) -> list[str]:
    """What breaks axe's rules, all of them or these; axe is there already."""
    options: dict[str, Any] = {"reporter": "no-passes", "selectors": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    options["rules"] = {rule: {"enabled": False} for rule in without}
    results = page.evaluate(
        "([within, options]) => axe.run(within ?? document, options)",
        [within, options],
    )
    return [
        f"{violation['id']}: {violation['nodes'][0]['html'][:160]}"
        f" ({len(violation['nodes'])} of them)"
        for violation in results["violations"]
    ]


def overflowing(page: Page) -> list[str]:
    """The open page is no wider than its window."""
    wide = page.evaluate("document.documentElement.scrollWidth")
    window = page.evaluate("document.documentElement.clientWidth")
    if wide <= window:
        return []
    parts = ", ".join(page.evaluate(TOO_WIDE))
    return [f"{wide} pixels wide in a window of {window}: {parts}"]


def cut_off(page: Page) -> list[str]:
    """No formula is wider than its column, where the window is wide."""
    if page.viewport_size["width"] <= PHONE:
        return []
    return [f"cut off: {formula}" for formula in page.evaluate(CUT_OFF)]


def stray_glyphs(page: Page) -> list[str]:
    """No icon font is missing from the open page."""
    return [f"a missing glyph: {at}" for at in page.evaluate(STRAY_GLYPHS)]


def shrunk(page: Page) -> list[str]:
    """No picture is so small that nobody can read its letters."""
    wide = page.viewport_size["width"] > PHONE
    found = page.evaluate(SHRUNK, LEAST["wide" if wide else "phone"])
    return [f"a picture at {one}" for one in dict.fromkeys(found)]


OPEN_PAGE: list[Callable[[Page], list[str]]] = [
    overweight,
    overflowing,
    cut_off,
    stray_glyphs,
    shrunk,
]
