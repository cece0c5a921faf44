"""The lab on devices on its page, driven in a real browser."""

import math

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.devices import WAYS, DevicesLab

ADDRESS = "book/devices.html"
UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
TIMES = {"µs": 1e-6, "ms": 1e-3, "s": 1}

# The table, and the bars: what is sent and what is held, each way.
SHOWN = """(root) => {
  const rows = [...root.querySelector(".lab-pair table").tBodies[0].rows];
  return {
    table: rows.map((row) => [...row.cells].map((c) => c.textContent)),
    bars: [...root.querySelectorAll(".lab-plane rect:not(.lab-reach)")]
      .map((bar) => Number(bar.getAttribute("width"))),
  };
}"""


def assert_shows(lab, **changed):
    """All that the lab shows is what the package computes."""
    ours = DevicesLab(**changed).shares()
    shown = lab.evaluate(SHOWN)
    assert [row[0] for row in shown["table"]] == list(WAYS.values())
    for row, share in zip(shown["table"], ours.values(), strict=True):
        if share.refused:
            assert row[1:] == ["closed", "–", "–"]
        elif share.sent:
            sizes = [size_of(row[1]), size_of(row[3]), time_of(row[2])]
            exact = [share.sent, share.held, share.seconds]
            assert sizes == pytest.approx(exact, rel=0.00501)
        else:
            assert row[1:3] == ["nothing", "no time"]
    sizes = [x for share in ours.values() for x in (share.sent, share.held)]
    wide = [(math.log10(x) - 3) / 9 * 260 if x else 0 for x in sizes]
    assert shown["bars"] == pytest.approx(wide, abs=0.051)


def size_of(text):
    digits, unit = text.split(" ")
    return float(digits) * UNITS[unit.removesuffix("B")]


def time_of(text):
    digits, unit = text.split(" ")
    return float(digits) * TIMES[unit]


def test_the_start_is_what_the_package_computes(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    control(lab, "ranks").press("End")
    assert_shows(lab, ranks=1024)
    control(lab, "ranks").press("Home")
    assert_shows(lab, ranks=1)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    control(lab, "n").press("End")
    control(lab, "n_heads").press("ArrowRight")
    control(lab, "d_head").press("Home")
    control(lab, "link").press("ArrowDown")
    sizes = {"n": 2**20, "n_heads": 40, "d_head": 64, "link": "InfiniBand"}
    assert_shows(lab, **sizes)


def test_the_name_of_a_way_stands_in_one_line(open_lab):
    """One stood in three, and another was broken at its hyphen."""
    for width in (1280, 360):
        lab = open_lab()
        lab.page.set_viewport_size({"width": width, "height": 900})
        names = lab.locator("tbody th").all()
        assert len(names) == 3
        assert all(name.bounding_box()["height"] < 30 for name in names)
        table = lab.locator("table").evaluate(
            "(e) => [e.scrollWidth, e.parentElement.clientWidth]"
        )
        assert table[0] <= table[1]


def test_every_control_answers_to_the_mouse(open_lab):
    lab = open_lab()
    for name in ("ranks", "n", "n_heads", "d_head"):
        control(lab, name).click(position={"x": 4, "y": 8})
    sizes = {"ranks": 1, "n": 1024, "n_heads": 8, "d_head": 64}
    assert_shows(lab, **sizes)
    control(lab, "link").select_option(label="Ethernet: 1.25 GB/s each way")
    assert_shows(lab, **sizes, link="Ethernet")


def test_a_way_tells_its_numbers_or_why_it_is_closed(open_lab):
    lab = open_lab("#lab=devices&ranks=64")
    detail = lab.locator(".lab-detail")
    lab.locator(".lab-reach").nth(2).hover()
    expect(detail).to_contain_text("32 heads do not divide among 64 ranks")
    lab.locator(".lab-reach").nth(1).hover()
    expect(detail).to_contain_text("ring: a rank sends 2.11 GB, which takes")


def test_a_setting_travels_by_its_link(open_lab):
    lab = open_lab("#lab=devices&ranks=16&n=65536&link=Ethernet&n_heads=7")
    assert_shows(lab, ranks=16, n=65536, link="Ethernet")
    expect(lab.get_by_role("alert")).to_contain_text("n_heads must be")
