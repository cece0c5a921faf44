"""The lab on origins on its page, driven in a real browser."""

from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.origins import OriginsLab

ADDRESS = "book/origins.html"

# The table of counts, the way's points, and how many edges are drawn.
SHOWN = """(root) => ({
  counts: [...root.querySelector("table").tBodies[0].rows]
    .map((row) => Number(row.cells[1].textContent.replace(/,/g, ""))),
  way: root.querySelector(".lab-way").getAttribute("d").split(/[ML]/)
    .slice(1).length,
  edges: root.querySelector(".lab-ways").getAttribute("d").split("M").length
    - 1,
})"""


def assert_shows(lab, **changed):
    """All that the lab shows is what the package computes."""
    now, shown = OriginsLab(**changed).seen(), lab.evaluate(SHOWN)
    counts = [now.hops, now.steps, now.heard, now.parameters, now.operations]
    assert shown["counts"] == counts
    assert shown["way"] == len(now.path)
    assert shown["edges"] == len(now.edges)


def test_the_start_is_what_the_package_computes(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    control(lab, "architecture").press("ArrowDown")
    assert_shows(lab, architecture="convolution")
    control(lab, "kernel").press("End")
    assert_shows(lab, architecture="convolution", kernel=5)
    control(lab, "n").press("Home")
    control(lab, "token").press("Home")
    small = {"n": 2, "output": 1, "token": 0}
    assert_shows(lab, architecture="convolution", kernel=5, **small)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    control(lab, "output").press("ArrowLeft")
    assert_shows(lab, output=10)


def test_every_control_answers_to_the_mouse(open_lab):
    lab = open_lab()
    control(lab, "architecture").select_option(index=3)
    control(lab, "token").click(position={"x": 4, "y": 8})
    assert_shows(lab, architecture="attention", token=0)
    control(lab, "architecture").select_option(index=2)
    lab.locator(".lab-above").nth(4).click()
    assert_shows(lab, architecture="dilated", token=4)
    lab.locator(".lab-above").nth(2).hover()
    expect(lab.locator(".lab-detail")).to_contain_text("Token 3: 3 hops")


def test_a_setting_travels_by_its_link(open_lab):
    assert_shows(
        open_lab("#lab=origins&n=6&output=9&token=2&architecture=dense"),
        n=6,
        output=5,
        token=2,
        architecture="dense",
    )
