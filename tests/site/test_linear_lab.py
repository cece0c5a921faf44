"""The lab on a memory of fixed size on its page, driven in a real browser."""

import re

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.linear import LISTS, LinearLab

ADDRESS = "book/efficient/linear.html"

# The memory, and what each key brings back, as a reader finds them.
SHOWN = r"""(root) => {
  const [memory, list] = root.querySelectorAll("table");
  const texts = (table) => [...table.tBodies[0].rows].map((row) =>
    [...row.cells].map((cell) => cell.textContent
      .replaceAll("−", "-").replaceAll("\u00a0", " ")));
  return { memory: texts(memory), list: texts(list),
    chosen: [...list.tBodies[0].rows].findIndex((row) =>
      row.classList.contains("lab-chosen")),
    caption: memory.caption.textContent };
}"""


def numbers(text):
    """All numbers in a text."""
    return [float(x) for x in re.findall(r"-?\d+\.?\d*", text)]


def assert_shows(lab, **changed):
    """The memory and what comes back are what the package computes."""
    mine = LinearLab(**{"tokens": "one twice", "read": 3} | changed)
    now, shown = mine.seen(), lab.evaluate(SHOWN)
    cells = [[float(x) for x in row[1:]] for row in shown["memory"]]
    assert cells == [pytest.approx(row, abs=0.00501) for row in now.state]
    words = LISTS[mine.tokens]["words"]
    for j, (name, _, value, back) in enumerate(shown["list"]):
        assert name == f"{j + 1}. {words[j]}"
        assert (value == "not yet") == (j >= mine.read)
        assert numbers(back) == pytest.approx(now.back[j], abs=0.00501)
    assert shown["chosen"] == mine.ask
    assert shown["caption"] == f"The memory after {mine.read} of 4 tokens"


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    assert_shows(lab)
    control(lab, "read").press("ArrowRight")
    assert_shows(lab, read=4)
    control(lab, "gate").press("ArrowLeft")
    assert_shows(lab, read=4, gate=0.9)
    control(lab, "delta").press("Space")
    assert_shows(lab, read=4, gate=0.9, delta=True)
    control(lab, "ask").press("ArrowRight")
    assert_shows(lab, read=4, gate=0.9, delta=True, ask=1)
    control(lab, "tokens").press("ArrowDown")
    state = {"read": 4, "gate": 0.9, "delta": True, "ask": 1}
    assert_shows(lab, tokens="alike", **state)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_the_tasks_set_the_lab_by_mouse(open_lab):
    lab = open_lab()
    lab.get_by_role("button", name="4. delta rule").click()
    assert_shows(lab, delta=True)
    lab.locator("tbody tr").last.hover()
    expect(lab.locator(".lab-detail")).to_contain_text("The key of “sat”")
    lab.get_by_role("button", name="2. one more").click()
    assert_shows(lab, tokens="three apart, one more", read=4)
    lab.locator(".lab-memory tbody td").first.hover()
    expect(lab.locator(".lab-detail")).to_contain_text("Feature 1 of the key")
