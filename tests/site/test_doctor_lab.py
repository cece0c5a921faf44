"""The lab on debugging on its page, driven in a real browser."""

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.doctor import MISTAKES, PROBES, DoctorLab, probes

ADDRESS = "book/doctor.html"

# The three tables, cell by cell, as a reader finds them.
SHOWN = """(root) => [...root.querySelectorAll("table")].map((table) =>
  [...table.querySelectorAll("tbody tr")].map((row) =>
    [...row.querySelectorAll("td")].map((cell) => cell.textContent)))"""


def written(x):
    """A number as the page writes it."""
    text = f"{x:.3f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def assert_shows(lab, **changed):
    """The tables are those that the package and the bank give."""
    mine = DoctorLab(**changed)
    now = mine.seen()
    right, given, panel = lab.evaluate(SHOWN)
    assert right == [[written(x) for x in row] for row in now.right.tolist()]
    rows = [] if now.given is None else now.given.tolist()
    same = bool(rows) and now.given.shape == now.right.shape
    wrong = now.wrong().tolist() if same else None
    assert given == [
        [
            ("✗ " if wrong and wrong[i][j] else "")
            + ("NaN" if x != x else written(x))
            for j, x in enumerate(row)
        ]
        for i, row in enumerate(rows)
    ]
    saw = [row[0] == "✗ sees it" for row in panel]
    assert saw == probes(mine.mistake)
    note = lab.locator(".lab-note, .lab-complaint:not([role])")
    expect(note).to_contain_text("Seen:" if now.differs else "Not seen:")


def test_the_start_is_what_the_bank_gives(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    control(lab, "n_q").press("ArrowRight")
    assert_shows(lab, n_q=4)
    control(lab, "n_k").press("ArrowLeft")
    assert_shows(lab, n_q=4, n_k=2)
    control(lab, "d_k").press("Home")
    assert_shows(lab, n_q=4, n_k=2, d_k=1)
    control(lab, "d_v").press("ArrowRight")
    now = {"n_q": 4, "n_k": 2, "d_k": 1, "d_v": 3}
    assert_shows(lab, **now)
    control(lab, "mask").press("ArrowDown")
    assert_shows(lab, **now, mask="causal")
    place = MISTAKES.index("softmax over queries")
    for mistake in MISTAKES[place + 1 :]:
        control(lab, "mistake").press("ArrowDown")
        assert_shows(lab, **now, mask="causal", mistake=mistake)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


@pytest.mark.parametrize("width", [1280, 360])
def test_a_number_stays_with_its_minus_and_its_cross(open_lab, width):
    """One line of text a cell, at the widest that the tables can be."""
    lab = open_lab(
        "#lab=doctor&mask=causal&n_q=4&d_v=3",
        viewport={"width": width, "height": 900},
    )
    cells = lab.locator(".lab-outputs :is(th, td)")
    assert cells.count() == 2 * 4 * 4
    heights = cells.evaluate_all(
        "(cells) => cells.map((cell) => cell.getBoundingClientRect().height)"
    )
    assert max(heights) < 1.5 * min(heights)


def test_a_button_goes_to_its_probe(open_lab):
    lab = open_lab()
    for title, sizes, mask in PROBES:
        name = f"Try this probe: {title}"
        lab.get_by_role("button", name=name, exact=True).press("Enter")
        names = ("n_q", "n_k", "d_k", "d_v")
        assert_shows(lab, mask=mask, **dict(zip(names, sizes, strict=True)))


def test_a_setting_travels_by_its_link(open_lab):
    lab = open_lab("#lab=doctor&mistake=no+scale&n_q=1&d_k=1&mask=padding")
    assert_shows(lab, mistake="no scale", n_q=1, d_k=1, mask="padding")
    expect(lab.get_by_role("alert")).to_be_hidden()
    lab = open_lab("#lab=doctor&n_q=9")
    assert_shows(lab, n_q=4)
    expect(lab.get_by_role("alert")).to_contain_text("n_q must lie between")
