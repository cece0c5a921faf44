"""The lab on the next letter on its page, driven in a real browser."""

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.models import N_LETTERS, STARTS, ModelsLab

ADDRESS = "book/models.html"

# Every number of the lab, as a reader finds it.
SHOWN = """(root) => ({
  bars: [...root.querySelectorAll("svg .lab-column")].map((bar) =>
    Number(bar.getAttribute("height")) / 130),
  faint: [...root.querySelectorAll("svg .lab-tick")].filter((letter) =>
    letter.getAttribute("opacity")).length,
  numbers: [...root.querySelectorAll("table tbody td")].map((cell) =>
    Number(cell.textContent)),
  caption: root.querySelector("figcaption").textContent,
})"""


def assert_shows(lab, **changed):
    """All that the lab shows is what the package computes."""
    mine = ModelsLab(**changed)
    now, shown = mine.seen(), lab.evaluate(SHOWN)
    assert shown["bars"] == pytest.approx(now.chances, abs=1e-4)
    assert shown["faint"] == N_LETTERS - now.kept
    kept, lost, perplexity = shown["numbers"]
    assert kept == now.kept
    assert lost == pytest.approx(now.lost, abs=5.1e-4)
    assert perplexity == pytest.approx(now.perplexity, abs=5.1e-3)
    assert shown["caption"] == f"Next letter after “{mine.start}”"


def test_the_start_is_what_the_package_computes(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    control(lab, "top_p").press("ArrowLeft")
    assert_shows(lab, top_p=0.95)
    control(lab, "temperature").press("ArrowRight")
    assert_shows(lab, top_p=0.95, temperature=1.1)
    control(lab, "top_k").press("Home")
    assert_shows(lab, top_p=0.95, temperature=1.1, top_k=1)
    control(lab, "start").select_option(index=2)
    now = {"top_p": 0.95, "temperature": 1.1, "top_k": 1}
    assert_shows(lab, **now, start=STARTS[2])
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_every_slider_answers_to_the_mouse(open_lab):
    lab = open_lab()
    changed = {}
    for setting, least in (("temperature", 0.1), ("top_k", 1)):
        control(lab, setting).click(position={"x": 2, "y": 8})
        changed |= {setting: least}
        assert_shows(lab, **changed)


def test_a_bar_tells_both_chances(open_lab):
    lab = open_lab("#lab=models&top_k=3")
    now = ModelsLab(top_k=3).seen()
    best = now.chances.index(max(now.chances))
    lab.locator("svg .lab-reach").nth(best).hover()
    line = lab.locator(".lab-detail")
    expect(line).to_contain_text(f"the model gives it {now.before[best]:.3f}")
    expect(line).to_contain_text(f"drawn with {now.chances[best]:.3f}")
    lab.locator("svg .lab-reach").nth(1).hover()
    expect(line).to_contain_text("it is cut")


def test_a_setting_travels_by_its_link(open_lab):
    lab = open_lab("#lab=models&start=the+cat+&top_p=0.5&top_k=4")
    assert_shows(lab, start="the cat ", top_p=0.5, top_k=4)
