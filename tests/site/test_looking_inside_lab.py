"""The lab on looking inside on its page, driven in a real browser."""

import re

import pytest
from contrast import contrast
from guards.site_pages import LAB, control
from playwright.sync_api import expect

from selfattn.labs.looking_inside import NAMES, LookingInsideLab

ADDRESS = "book/looking_inside.html"

SHOWN = """(root) => {
  const [heat, loss] = root.querySelectorAll("table");
  return {
    words: [...heat.tBodies[0].rows].map((row) => row.cells[0].textContent),
    shares: [...heat.tBodies[0].rows].map((row) =>
      [...row.cells].slice(1).map((cell) =>
        Number(cell.style.getPropertyValue("--share")))),
    caption: heat.caption.textContent,
    loss: loss.caption.textContent,
    nats: [...loss.tBodies[0].rows].filter((row) => !row.hidden)
      .slice(0, -1).map((row) => Number(row.cells[1].textContent)),
    maps: root.querySelectorAll(".lab-map").length,
    off: [...root.querySelectorAll(".lab-words .lab-hidden")].length,
  };
}"""


def assert_shows(lab, **changed):
    """All that the lab shows is what the package computes."""
    mine = LookingInsideLab(**changed)
    now, shown = mine.read(), lab.evaluate(SHOWN)
    assert shown["words"] == now.read
    assert shown["maps"] == len(NAMES)
    assert shown["off"] == len(now.off)
    assert NAMES[mine.head] in shown["caption"]
    for row, table in zip(
        shown["shares"], now.weights[mine.head], strict=True
    ):
        assert row == pytest.approx(table, abs=6e-4)
    assert f"{now.loss:.3f}" in shown["loss"]
    assert shown["nats"] == pytest.approx(now.nats, abs=6e-3)


def test_the_start_is_what_the_package_computes(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    control(lab, "words").fill("cat deep river cat deep")
    assert_shows(lab, words="cat deep river cat deep")
    off = {}
    for name in NAMES:
        key = f"head_{name.replace('.', '_')}"
        control(lab, key).press("Space")
        off[key] = False
    assert_shows(lab, words="cat deep river cat deep", **off)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    lab.locator("[data-setting=head]").nth(4).press("ArrowRight")
    assert_shows(lab, head=5)


def test_a_row_of_heads_is_a_block(open_lab):
    """Six stood in one row and two in the next, the switches upon them."""
    for width in (1280, 360):
        lab = open_lab()
        lab.page.set_viewport_size({"width": width, "height": 900})
        heads = lab.locator(".lab-words label")
        boxes = [one.bounding_box() for one in heads.all()]
        rows = sorted({round(box["y"]) for box in boxes})
        counts = [sum(round(b["y"]) == y for b in boxes) for y in rows]
        assert counts == [4, 4]
        below = lab.get_by_text("Heads that are on").bounding_box()["y"]
        assert below >= boxes[-1]["y"] + boxes[-1]["height"] + 6


def test_every_control_answers_to_the_mouse(open_lab):
    lab = open_lab()
    lab.locator(".lab-words label").nth(2).click()
    control(lab, "head_1_3").uncheck()
    assert_shows(lab, head=2, head_1_3=False)


def test_cells_and_words_tell_their_numbers(open_lab):
    lab = open_lab()
    now = LookingInsideLab().read()
    lab.locator(".lab-heat tbody tr").nth(3).locator("td").nth(1).hover()
    expect(lab.locator(".lab-detail")).to_contain_text(
        f"weight {now.weights[4][3][1]:.3f} in head 2.1"
    )
    lab.locator(".lab-heat tbody tr").nth(1).locator("td").nth(5).hover()
    expect(lab.locator(".lab-detail")).to_contain_text("cannot be seen")
    lab.locator(".lab-steps tbody tr").nth(0).hover()
    expect(lab.locator(".lab-detail")).to_contain_text(
        f"{now.nats[0]:.3f} nats"
    )
    lab.locator(".lab-words label").nth(0).hover()
    expect(lab.locator(".lab-detail")).to_contain_text(
        f"to {now.without[0]:.3f}"
    )


def as_hex(colour):
    """#0072b2, of a colour as a browser tells it."""
    found = [float(x) for x in re.findall(r"[\d.]+", colour)[:3]]
    scale = 255 if colour.startswith("color(") else 1
    return "#" + "".join(f"{round(scale * x):02x}" for x in found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_the_largest_weights_stand_out(new_page, site_url, scheme):
    """Their cells, which have no numbers there, were as dark as the rest."""
    page = new_page(
        viewport={"width": 360, "height": 740}, color_scheme=scheme
    )
    page.goto(f"{site_url}{ADDRESS}#lab=looking_inside&head=0")
    lab = page.locator(LAB)
    expect(lab.locator(".lab-many")).to_be_visible()
    colours = lab.evaluate(
        """(root) => {
          const cells = [...root.querySelectorAll(".lab-many tbody td")];
          const share = (e) => Number(e.style.getPropertyValue("--share"));
          cells.sort((a, b) => share(a) - share(b));
          return [cells[0], cells.at(-1)].map((e) =>
            getComputedStyle(e).backgroundColor);
        }"""
    )
    none, most = map(as_hex, colours)
    assert contrast(none, most) >= 4.5


def test_a_word_that_it_has_never_read_is_named(open_lab):
    lab = open_lab("#lab=looking_inside&words=the+whale+is")
    assert_shows(lab, words="the whale is")
    expect(lab.locator(".lab-insight")).to_contain_text("never read “whale”")


def test_a_setting_travels_by_its_link(open_lab):
    assert_shows(
        open_lab("#lab=looking_inside&head=6&head_2_1=false&head_9=true"),
        head=6,
        head_2_1=False,
    )


def test_the_model_comes_when_the_reader_does(new_page, site_url):
    """Its 40 kB weigh on nobody who only reads the beginning."""
    page, asked = new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site_url + ADDRESS, wait_until="networkidle")
    assert not any("/labs/looking_inside.js" in url for url in asked)
    assert page.locator(".lab-still").count()
    page.locator(".lab-place").scroll_into_view_if_needed()
    expect(page.locator(".lab-runs")).to_have_count(1)
    assert any("/labs/looking_inside.js" in url for url in asked)


def test_a_link_to_the_lab_brings_the_model(new_page, site_url):
    """Also one that is followed within the page, long before the lab."""
    page = new_page()
    page.goto(f"{site_url}{ADDRESS}#lab=looking_inside&head=6")
    expect(page.locator(".lab-runs")).to_have_count(1)
    expect(page.locator(LAB)).to_be_in_viewport()
    page = new_page()
    page.goto(site_url + ADDRESS, wait_until="networkidle")
    page.evaluate("location.hash = '#lab=looking_inside&head=6'")
    expect(page.locator(".lab-runs")).to_have_count(1)
    expect(page.locator(LAB)).to_be_in_viewport()
    expect(page.locator(f"{LAB} table").first).to_contain_text(NAMES[6])
