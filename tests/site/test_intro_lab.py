"""The lab on the first page: words that are typed, arrows that are dragged."""

import re

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.intro import MOST, IntroLab, steps, vectors

ADDRESS = "book/intro.html"
START = IntroLab().values()

# All that the lab shows: weights in words and as lines, marks, and texts.
SHOWN = """(root) => {
  const seen = (e) => e.checkVisibility();
  const places = (look) => [...root.querySelectorAll(look)]
    .filter((g) => !g.classList.contains("lab-absent"))
    .map((g) => g.getAttribute("transform").match(/-?[\\d.]+/g).map(Number));
  const lines = [...root.querySelectorAll(".lab-lines line")].map((line) =>
    Number(line.getAttribute("stroke-width")));
  return {
    asks: [...root.querySelectorAll(".lab-words label")].filter(seen)
      .map((label) => label.textContent),
    heard: [...root.querySelectorAll(".lab-listened li")].filter(seen)
      .map((row) => row.textContent),
    lines, insight: root.querySelector(".lab-insight").textContent,
    keys: places(".lab-key"), query: places(".lab-query")[0],
    values: places(".lab-value-mark"), output: places(".lab-output")[0],
  };
}"""


def placed(points):
    """Where marks stand on a plane of 240 for -3.6 to 3.6."""
    unit = 240 / 7.2
    return [
        pytest.approx([(x + 3.6) * unit, (3.6 - y) * unit]) for x, y in points
    ]


def assert_shows(lab, **changed):
    """Every number of the lab is that of the package, and of each other."""
    values = START | changed
    words, asks = values["words"].split(" "), values["asks"]
    ours = steps(**values)
    shown = lab.evaluate(SHOWN)
    assert shown["asks"] == words
    weights = ours.weights.tolist()
    heard = []
    for j, word in enumerate(words):
        hidden = values["causal"] and j > asks
        share = f"{weights[asks][j] * 100 + 1e-9:.0f}%"
        heard.append(f"{'hidden' if hidden else share} {word}")
    assert shown["heard"] == heard
    for i in range(MOST):
        for j in range(MOST):
            inside = i < len(words) and j < len(words)
            width = 14 * weights[i][j] if inside else 0
            assert shown["lines"][i * MOST + j] == pytest.approx(
                width, abs=0.00501
            )
    q, k, v = vectors(words=values["words"], q=values["q"], k=values["k"])
    assert shown["keys"] == placed(k) and shown["values"] == placed(v)
    assert [shown["query"]] == placed([q[asks]])
    assert [shown["output"]] == placed([ours.output[asks].tolist()])
    x, y = (f"{x:.2f}".replace("-", "−") for x in ours.output[asks].tolist())
    assert f"output is ({x}, {y})" in shown["insight"]


def moved(name, index, by):
    return {name: [*START[name][:index], by, *START[name][index + 1 :]]}


def test_every_control_by_keyboard(open_lab):
    lab = open_lab()
    assert_shows(lab)
    control(lab, "words").fill("  cats  sat\ton mats ")
    assert_shows(lab, words="cats sat on mats")
    control(lab, "words").press("Tab")
    expect(control(lab, "words")).to_have_value("cats sat on mats")
    control(lab, "asks").nth(2).press("ArrowDown")
    now = {"words": "cats sat on mats", "asks": 3}
    assert_shows(lab, **now)
    control(lab, "causal").press("Space")
    assert_shows(lab, **now, causal=True)
    query = lab.get_by_role("slider", name="Query of mats")
    query.press("ArrowLeft")
    query.press("Shift+ArrowUp")
    now |= moved("q", 3, [-0.1, 0.5])
    assert_shows(lab, **now, causal=True)
    lab.get_by_role("slider", name="Key of on").press("ArrowDown")
    assert_shows(lab, **now, **moved("k", 2, [0, -0.1]), causal=True)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_another_word_forgets_where_the_last_one_was_dragged(open_lab):
    lab = open_lab()
    lab.get_by_role("slider", name="Key of cat").press("ArrowDown")
    lab.get_by_role("slider", name="Key of on").press("ArrowUp")
    control(lab, "words").fill("the dog sat on the mat")
    kept = moved("k", 3, [0, 0.1])
    assert_shows(lab, words="the dog sat on the mat", **kept)
    control(lab, "words").fill("a b c d e f g h i")
    expect(lab.get_by_role("alert")).to_contain_text("8 words at most")
    assert_shows(lab, words="a b c d e f g h")
    control(lab, "words").fill("   ")
    assert_shows(lab, words="a b c d e f g h")


def test_the_mouse_drags_and_the_address_remembers(open_lab):
    lab = open_lab()
    page = lab.page
    key = lab.get_by_role("slider", name="Key of mat")
    plane = lab.locator(".lab-plane svg").first
    unit = plane.bounding_box()["width"] / 7.2
    box = key.locator("circle").last.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - unit, y + 0.5 * unit, steps=4)
    page.mouse.up()
    settings = moved("k", 5, [-1, -0.5])
    assert_shows(lab, **settings)
    page.wait_for_url(re.compile("k=5:-1:-0.5"))
    assert_shows(open_lab(address=page.url), **settings)


def test_a_button_asks_and_the_answer_is_of_its_setting(open_lab):
    lab = open_lab()
    lab.get_by_role("button", name="no looking ahead").click()
    assert_shows(lab, causal=True, asks=0)
    answer = lab.get_by_text("Itself alone, with weight 100%.")
    expect(answer).to_be_hidden()
    lab.get_by_text("Answer", exact=True).click()
    expect(answer).to_be_visible()


def test_of_words_at_one_place_each_can_be_read(open_lab):
    """ "Listen" and "silent" stood on top of each other."""
    lab = open_lab()
    lab.get_by_role("button", name="listen to silent").click()
    for look in (".lab-key", ".lab-value-mark"):
        beside = lab.locator(f"{look}:not(.lab-absent) text")
        expect(beside).to_have_text(["listen", "to", "silent"])
        one, _, other = (text.bounding_box() for text in beside.all())
        below = abs(other["y"] - one["y"]) >= 0.7 * one["height"]
        left, right = sorted([one, other], key=lambda box: box["x"])
        assert below or left["x"] + left["width"] < right["x"]
