"""The labs on the built page, driven as a reader drives them."""

import json
import re
import shutil

import pytest
import torch
from guards import site_pages
from guards.site_pages import LAB, control
from playwright.sync_api import expect

from selfattn.labs.dot_product import VALUES, WORDS, DotProductLab, steps

START = DotProductLab().values()
ADDRESS = "book/dot_product.html"

# Every number of the lab, as a reader finds it.
SHOWN = """(root) => {
  const number = (text) => Number(text.replace("−", "-"));
  const cells = (row) => [...row.cells].map((cell) => cell.textContent);
  const seen = (row) => !row.hidden;
  const marked = (look) => [...root.querySelectorAll(look)]
    .filter((g) => !g.classList.contains("lab-absent"))
    .map((g) => g.getAttribute("transform").match(/-?[\\d.]+/g).map(Number));
  const steps = root.querySelector(".lab-steps");
  return {
    words: [...steps.tBodies[0].rows].filter(seen).map((r) => cells(r)[0]),
    rows: [...steps.tBodies[0].rows].filter(seen)
      .map((r) => cells(r).slice(1)
        .map((t) => t === "−∞" ? null : number(t))),
    output: steps.tFoot.rows[0].cells[1].textContent
      .match(/[−\\d.]+/g).map(number),
    heat: [...root.querySelector(".lab-heat").tBodies[0].rows]
      .map((r) => cells(r).slice(1).map((t) => t === "·" ? null : number(t))),
    drawn: marked(".lab-output")[0],
    values: marked(".lab-value-mark"),
  };
}"""


def assert_shows(lab, **changed):
    """All that the lab shows is what torch computes for these settings."""
    values = START | changed
    ours = steps(**values)
    n, query = values["n"], values["query"]
    shown = lab.evaluate(SHOWN)
    half = 0.5001e-3  # what rounding to three places may take
    weights = ours.weights[query]
    hidden = [row[1] is None for row in shown["rows"]]
    assert shown["words"] == WORDS[:n]
    for row, score, scaled, weight in zip(
        shown["rows"],
        ours.scores[query].tolist(),
        ours.scaled[query].tolist(),
        weights.tolist(),
        strict=True,
    ):
        assert row[0] == pytest.approx(score, abs=half)
        assert row[1] is None or row[1] == pytest.approx(scaled, abs=half)
        assert row[2] == pytest.approx(weight, abs=half)
    assert hidden == (weights == 0).tolist()
    assert shown["output"] == pytest.approx(
        ours.output[query].tolist(), abs=half
    )
    heat = torch.tensor([[x or 0.0 for x in row] for row in shown["heat"]])
    assert torch.equal(
        torch.tensor([[x is None for x in row] for row in shown["heat"]]),
        ours.weights == 0,
    )
    assert (heat - ours.weights).abs().max() <= 0.5001e-2
    assert_drawn(shown, ours.output[query].tolist(), n)


def assert_drawn(shown, output, n):
    """The marks stand where their numbers are: 7.2 units to 240 pixels."""
    unit = 240 / 7.2
    for (x, y), (left, top) in zip(
        [*VALUES[:n], output], [*shown["values"], shown["drawn"]], strict=True
    ):
        assert left == pytest.approx((x + 3.6) * unit)
        assert top == pytest.approx((3.6 - y) * unit)


def test_the_start_is_what_torch_computes(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    control(lab, "n").press("ArrowRight")
    assert_shows(lab, n=4)
    control(lab, "d_k").press("ArrowRight")
    assert_shows(lab, n=4, d_k=4)
    mask = control(lab, "mask")
    mask.press("ArrowDown")
    assert_shows(lab, n=4, d_k=4, mask="causal")
    mask.press("ArrowDown")
    control(lab, "length").press("ArrowRight")
    assert_shows(lab, n=4, d_k=4, mask="padding", length=3)
    mask.press("ArrowDown")
    control(lab, "window").press("ArrowLeft")
    assert_shows(lab, n=4, d_k=4, mask="window", length=3, window=1)
    control(lab, "query").nth(2).press("ArrowRight")
    assert_shows(lab, n=4, d_k=4, mask="window", length=3, window=1, query=3)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_every_control_answers_to_the_mouse(open_lab):
    lab = open_lab()
    box = control(lab, "n").bounding_box()
    control(lab, "n").click(position={"x": box["width"] - 4, "y": 8})
    assert_shows(lab, n=10)
    box = control(lab, "d_k").bounding_box()
    control(lab, "d_k").click(position={"x": box["width"] - 4, "y": 8})
    assert_shows(lab, n=10, d_k=64)
    control(lab, "mask").select_option(label="causal: no later word")
    assert_shows(lab, n=10, d_k=64, mask="causal")
    control(lab, "query").nth(7).check()
    assert_shows(lab, n=10, d_k=64, mask="causal", query=7)
    lab.get_by_role("button", name="Back to the start").click()
    assert_shows(lab)


@pytest.mark.parametrize("mask", ["none", "causal", "padding", "window"])
def test_every_stop_of_every_slider(open_lab, mask):
    lab = open_lab("#lab=dot_product&mask=" + mask)
    values = {"mask": mask}
    for n in range(4, 11):
        control(lab, "n").press("ArrowRight")
        assert_shows(lab, **values, n=n)
    for d_k in (4, 8, 16, 32, 64):
        control(lab, "d_k").press("ArrowRight")
        assert_shows(lab, **values, n=10, d_k=d_k)
    extra = {"padding": "length", "window": "window"}.get(mask)
    for position in range(3, 11) if extra else ():
        control(lab, extra).press("ArrowRight")
        assert_shows(lab, **values, n=10, d_k=64, **{extra: position})


def moved(name, index, point):
    return {name: [*START[name][:index], point, *START[name][index + 1 :]]}


def test_points_move_with_the_arrow_keys(open_lab):
    lab = open_lab()
    query = lab.get_by_role("slider", name="Query of sat")
    query.press("ArrowLeft")
    query.press("Shift+ArrowUp")
    new = moved("q", 2, [1.9, 1.5])
    assert_shows(lab, **new)
    assert query.get_attribute("aria-valuenow") == "1.9"
    assert query.get_attribute("aria-valuetext").startswith("1.9, 1.5; output")
    key = lab.get_by_role("slider", name="Key of cat")
    for _ in range(12):  # 2 and twelve halves: it stops at the edge
        key.press("Shift+ArrowRight")
    key.press("ArrowDown")
    assert_shows(lab, **new, **moved("k", 1, [3.0, -0.1]))
    expect(lab.locator(".lab-detail")).to_contain_text("Key of cat: score")


def test_points_move_with_the_mouse(open_lab):
    lab = open_lab()
    page = lab.page
    key = lab.get_by_role("slider", name="Key of sat")
    plane = lab.locator(".lab-plane svg").first
    plane.scroll_into_view_if_needed()
    unit = plane.bounding_box()["width"] / 7.2
    box = key.locator("circle").last.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - unit, y + unit, steps=5)
    page.mouse.move(x - 2 * unit, y + 0.5 * unit, steps=5)
    page.mouse.up()
    page.mouse.move(x, y)  # let go, it stays where it is
    assert_shows(lab, **moved("k", 2, [-2.0, 0.5]))
    expect(key).to_be_focused()


def test_numbers_are_told_on_hover_and_focus(open_lab):
    lab = open_lab()
    detail = lab.locator(".lab-detail")
    lab.locator(".lab-heat tbody td").nth(1).hover()
    expect(detail).to_have_text("the → cat: weight 0.576.")
    lab.get_by_role("slider", name="Key of cat").focus()
    expect(detail).to_have_text("Key of cat: score 4.000, weight 0.620.")
    lab.locator(".lab-value-mark").nth(1).hover()
    expect(detail).to_have_text(
        "Value of cat: score 4.000, weight 0.620, at (0, 2)."
    )


def test_a_change_is_said_to_screen_readers_once(open_lab):
    lab = open_lab()
    status = lab.get_by_role("status")
    lab.page.wait_for_timeout(700)  # longer than it waits before it speaks
    expect(status).to_have_text("")
    control(lab, "query").nth(0).check()
    expect(status).to_have_text(
        "the asks. the: score 1.000, weight 0.284; cat: score 2.000, "
        "weight 0.576; sat: score 0.000, weight 0.140. "
        "Output (0.704, 1.292)."
    )


def test_more_features_than_the_plane_shows_are_owned_up_to(open_lab):
    lab = open_lab()
    note = lab.locator(".lab-note")
    expect(note).to_have_text("")
    control(lab, "d_k").press("End")
    expect(note).to_have_text(
        "The plane shows the first 2 of 64 features; "
        "the other 62 are fixed numbers."
    )


def test_a_setting_travels_by_its_link(open_lab):
    lab = open_lab()
    before = lab.page.evaluate("history.length")
    control(lab, "n").press("End")
    control(lab, "mask").select_option(label="window: near words only")
    lab.get_by_role("slider", name="Key of mat").press("ArrowLeft")
    lab.page.wait_for_url(re.compile("k=5:-2.1:1"))
    fragment = lab.page.url.partition("#")[2]
    assert sorted(fragment.split("&")) == [
        "k=5:-2.1:1",
        "lab=dot_product",
        "mask=window",
        "n=10",
    ]
    assert lab.page.evaluate("history.length") == before
    settings = {"n": 10, "mask": "window"} | moved("k", 5, [-2.1, 1.0])
    other = open_lab(address=lab.page.url)
    assert_shows(other, **settings)
    expect(other.get_by_role("alert")).to_be_hidden()
    assert other.page.evaluate("scrollY") > 0  # it opens at the lab
    other.get_by_role("button", name="Back to the start").click()
    other.page.wait_for_url(re.compile("html$"))


@pytest.mark.parametrize(
    ("fragment", "changed", "said"),
    [
        ("n=99", {"n": 10}, "n must lie between 1 and 10"),
        ("n=NaN&mask=causal", {"mask": "causal"}, "n must be a number"),
        ("colour=red&d_k=8", {"d_k": 8}, "no setting “colour”"),
    ],
)
def test_a_bad_link_is_mended_and_said(open_lab, fragment, changed, said):
    lab = open_lab("#lab=dot_product&" + fragment)
    assert_shows(lab, **changed)
    alert = lab.get_by_role("alert")
    expect(alert).to_be_visible()
    expect(alert).to_contain_text(said)
    control(lab, "query").nth(1).check()
    expect(alert).to_be_hidden()


def test_links_to_headings_still_work(open_lab):
    lab = open_lab()
    heading = lab.page.locator("main section[id] section[id]").last
    name = heading.get_attribute("id")
    other = open_lab("#" + name)
    expect(other.page.locator(f"[id='{name}']")).to_be_in_viewport()
    assert_shows(other)


def still(page):
    return page.locator("img.lab-still")


def test_without_scripts_the_picture_stands_there(new_page, site_url):
    page = new_page(java_script_enabled=False)
    page.goto(site_url + ADDRESS)
    expect(still(page)).to_be_visible()
    words = still(page).get_attribute("alt")
    assert all(weight in words for weight in (".306", ".620", ".074"))
    expect(page.locator(LAB)).to_have_count(0)


def test_in_print_the_picture_stands_there(open_lab):
    lab = open_lab()
    expect(still(lab.page)).to_be_hidden()
    lab.page.emulate_media(media="print")
    expect(still(lab.page)).to_be_visible()
    expect(lab).to_be_hidden()


@pytest.fixture
def copied_page(site, tmp_path):
    """A copy of the site, to break."""
    copy = tmp_path / "html"
    shutil.copytree(site, copy)
    return copy / ADDRESS


def registered(text):
    return (
        f'(window.selfattnLabs ??= {{}})["dot_product"] = {json.dumps(text)}'
    )


@pytest.mark.parametrize(
    "module",
    [
        "export default {",
        "export default { render() { throw Error('planted'); } };",
        "export const render = 1;",
        "",
    ],
)
def test_a_broken_lab_gives_way_to_its_picture(copied_page, page, module):
    script = copied_page.parents[1] / "_static" / "labs" / "dot_product.js"
    script.write_text(registered(module))
    page.goto(copied_page.as_uri())
    expect(page.locator(".lab-failed")).to_have_text(
        "This lab could not start in your browser; here is its picture."
    )
    expect(still(page)).to_be_visible()


def test_a_lab_that_breaks_later_gives_way_too(copied_page, page):
    script = copied_page.parents[1] / "_static" / "labs" / "dot_product.js"
    whole = script.read_text("utf-8")
    planted = whole.replace(
        "const { n, d_k, mask } = values;",
        "const { n, d_k, mask } = values; if (n > 3) throw Error('planted');",
    )
    assert planted != whole
    script.write_text(planted, "utf-8")
    page.goto(copied_page.as_uri())
    lab = page.locator(LAB)
    control(lab, "n").press("ArrowRight")
    expect(page.locator(".lab-failed")).to_be_visible()
    expect(still(page)).to_be_visible()
    expect(lab).to_have_count(0)


def test_one_broken_lab_leaves_the_others_running(copied_page, page):
    html = copied_page.read_text("utf-8")
    place = re.search(r'<div class="lab-place".*?</div>\n', html, re.S)[0]
    other = place.replace('data-lab="dot_product"', 'data-lab="missing"')
    copied_page.write_text(html.replace(place, other + place), "utf-8")
    page.goto(copied_page.as_uri())
    expect(page.locator("[data-lab=missing] .lab-failed")).to_be_visible()
    assert_shows(page.locator("[data-lab=dot_product] .selfattn-lab"))


@pytest.mark.parametrize("over", ["http", "file"])
def test_it_runs_with_the_network_cut(open_lab, site, site_url, over):
    if over == "file":
        lab = open_lab(address=(site / ADDRESS).as_uri(), offline=True)
    else:
        lab = open_lab()
        lab.page.context.set_offline(True)
    control(lab, "n").press("End")
    assert_shows(lab, n=10)


@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_in_the_lab_is_cut_off(open_lab, width):
    settings = "n=10&d_k=64&mask=window&window=3&n=x"
    viewport = {"width": width, "height": 740}
    lab = open_lab(f"#lab=dot_product&{settings}", viewport=viewport)
    inner = lab.evaluate("""(root) => [...root.querySelectorAll("*")]
        .filter((e) => e instanceof HTMLElement && e.clientWidth > 9)
        .filter((e) => e.scrollWidth > e.clientWidth + 1)
        .map((e) => `${e.tagName}.${e.className}`)""")
    assert inner == []


def test_a_barrier_in_the_lab_is_seen_and_one_elsewhere_is_not(open_lab):
    picture = "(root) => root.append(document.createElement('img'))"
    lab = open_lab()
    lab.page.locator("main").evaluate(picture)
    assert site_pages.inaccessible(lab.page, LAB) == []
    lab.evaluate(picture)
    assert "image-alt" in site_pages.inaccessible(lab.page, LAB)[0]


def test_dark_readers_get_lighter_colours(open_lab):
    grounds = [
        open_lab(color_scheme=scheme).evaluate(
            """(root) => [getComputedStyle(root).backgroundColor,
            getComputedStyle(root.querySelector(".lab-query rect")).fill]"""
        )
        for scheme in ("light", "dark")
    ]
    assert grounds == [
        ["rgb(246, 248, 250)", "rgb(0, 114, 178)"],
        ["rgb(29, 34, 40)", "rgb(86, 180, 233)"],
    ]


def test_the_line_below_has_the_tables_numbers_after_a_drag(open_lab):
    lab = open_lab()
    drag(lab, lab.locator(".lab-query"), 40, -25)
    said = lab.locator(".lab-detail").text_content()
    numbers = re.findall(r"−?\d+\.\d{3}", said)
    assert len(numbers) == 3 * 2 + 2  # a score and a weight a key, the output
    for number in numbers:
        expect(lab.locator(".lab-steps")).to_contain_text(number)


def drag(lab, handle, right, down):
    """With the mouse, as a hand does it."""
    handle.scroll_into_view_if_needed()
    box = handle.locator(".lab-reach").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    mouse = lab.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + right, y + down, steps=4)
    mouse.up()


def test_what_is_dragged_has_no_box_around_it(open_lab):
    """After a click elsewhere; a key's press draws the ring."""
    lab = open_lab()
    lab.locator(".lab-words label").nth(1).click()
    query = lab.locator(".lab-query")
    drag(lab, query, 30, 10)
    ring = query.locator(".lab-reach")
    assert query.evaluate("(e) => getComputedStyle(e).outlineStyle") == "none"
    assert ring.evaluate("(e) => getComputedStyle(e).stroke") == "none"
    query.press("ArrowLeft")
    assert ring.evaluate("(e) => getComputedStyle(e).stroke") != "none"


def test_a_changed_address_reaches_the_lab(open_lab):
    """As when one follows a link within the page, or goes back."""
    lab = open_lab()
    page = lab.page
    go = "(fragment) => { location.hash = fragment; }"
    page.evaluate(go, "#lab=dot_product&query=4&n=5&mask=causal")
    expect(lab.locator(".lab-words label:visible")).to_have_count(5)
    assert_shows(lab, query=4, n=5, mask="causal")
    expect(lab).to_be_in_viewport()
    page.evaluate(go, "#lab=dot_product&n=99")
    expect(lab.get_by_role("alert")).to_contain_text("n must lie between")
    assert_shows(lab, n=10)
    page.go_back()
    expect(lab.locator(".lab-words label:visible")).to_have_count(5)
    expect(lab.get_by_role("alert")).to_be_hidden()
    page.evaluate(go, "#why-divide")  # an ordinary heading
    assert_shows(lab, query=4, n=5, mask="causal")


def test_a_link_is_followed_while_the_last_move_is_being_written(open_lab):
    """Its address came in between, now and then, and the link was lost."""
    lab = open_lab()
    lab.page.evaluate(
        """() => {
          const before = location.href;
          location.hash = "#lab=dot_product&query=4&n=5";
          history.replaceState(history.state, "", before);
        }"""
    )
    expect(lab.locator(".lab-words label:visible")).to_have_count(5)
    assert_shows(lab, query=4, n=5)


def test_a_deep_link_is_there_at_once(open_lab):
    """Not after seconds of scrolling past what is above."""
    lab = open_lab()
    assert (
        lab.page.evaluate(
            "getComputedStyle(document.documentElement).scrollBehavior"
        )
        == "auto"
    )


def test_a_setting_to_try_leaves_no_room_of_the_one_before(site_url, page):
    """After many features the lab stayed as tall, and blank below."""
    page.goto(f"{site_url}{ADDRESS}")
    lab = page.locator(LAB)
    for name in ("many features", "nobody later"):
        lab.get_by_role("button", name=name).click()
        page.wait_for_timeout(100)
    tall, needed = lab.evaluate("""(root) => {
      const tall = root.offsetHeight;
      root.style.minHeight = "";
      return [tall, root.offsetHeight];
    }""")
    assert tall == needed
