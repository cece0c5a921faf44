"""A prediction is asked for first; what came out is unfolded then."""

import re
from copy import copy

import pytest
from guards.site_files import parse
from playwright.sync_api import expect
from predict import kind_of

ADDRESS = "book/multihead.html"


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Which of the four will learn it?", ("words", [])),
        ("How far apart are its two vectors?", ("number", [])),
        (
            "How many: a few, half, or all?",
            ("choice", ["a few", "half", "all"]),
        ),
        ("It ran. Is the bug mended?", ("choice", ["yes", "no"])),
        ("Do they stay, or do they change?", ("words", [])),
        ("From 4 to 8: does it double?", ("choice", ["yes", "no"])),
        ("Is it one? How many are? (Of four.)", ("words", [])),
        ("What comes with 0? And with 100?", ("words", [])),
        ("Draw the curve of the loss.", ("sketch", [])),
        ("Draw the curve of a against b.", ("sketch", ["a", "b"])),
        ("Why did they draw the map?", ("words", [])),
    ],
)
def test_a_question_gets_the_place_that_it_needs(question, kind):
    assert kind_of(question) == kind


def test_every_prediction_has_its_answer_folded(site):
    """On three pages there was no place for a guess: the answer came below
    the rules, or stood in a paragraph with no output before it."""
    asked = folded = 0
    for path in sorted((site / "book").rglob("*.html")):
        page = parse(path)
        marks = page.select("blockquote > div > p, blockquote > p")
        asked += sum(p.get_text().startswith("Predict.") for p in marks)
        for fold in page.select("details.predicted"):
            folded += 1
            assert fold.find_previous_sibling()["class"] == ["predict"]
            assert fold.select(".cell_output, p")
            assert not fold.select("h2, h3, [data-lab]")
    assert asked > 50
    assert folded == asked


def test_a_guess_stays_beside_what_came_out(site_url, page):
    page.goto(site_url + ADDRESS)
    fold = page.locator("details.predicted").first
    assert fold.get_attribute("open") is None
    question = page.locator("blockquote.predict").first
    guess = question.locator(".guess")
    if guess.locator("input").count():
        guess.locator("input").fill("<b>it can</b>")
        guess.locator("input").press("Enter")
        said = "<b>it can</b>"
    else:
        guess.get_by_role("button").first.click()
        said = fold.get_attribute("data-options").split("|")[0]
    expect(fold).to_have_attribute("open", "")
    expect(fold.locator(".guessed")).to_have_text(f"You said: {said}")
    expect(guess).to_have_count(0)
    page.reload()
    expect(fold.locator(".guessed")).to_have_text(f"You said: {said}")
    assert re.search(
        r"predicted",
        page.evaluate("localStorage.key(0) + '' + localStorage.key(1)"),
    )


def test_without_scripts_question_and_answer_stand_apart(site_url, new_page):
    page = new_page(java_script_enabled=False)
    page.goto(site_url + ADDRESS)
    fold = page.locator("details.predicted").first
    output = fold.locator(".cell_output").first
    assert not output.is_visible()
    fold.get_by_text("Reveal").click()
    assert output.is_visible()


def draw(page, question):
    """A line from below on the left to the middle, with the mouse."""
    question.locator(".sketch").scroll_into_view_if_needed()
    box = question.locator(".sketch").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 130)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, box["y"] + 30, steps=5)
    page.mouse.up()


def test_a_curve_is_drawn_and_stays_beside_what_came_out(site_url, new_page):
    page = new_page()
    address = f"{site_url}book/efficient/sparse.html"
    page.goto(address)
    question = page.locator("blockquote.predict:has(.sketch)").first
    draw(page, question)
    names = question.locator(".sketch text").all_text_contents()
    assert names == ["distance", "stride, doubled from 1 to 256"]
    drawn = question.locator(".sketch .line").get_attribute("d")
    assert drawn.startswith("M20 130L") and drawn.endswith("L120 30")
    question.get_by_role("button", name="Guess").click()
    fold = page.locator("details.predicted[data-kind=sketch]").first
    expect(fold).to_have_attribute("open", "")
    kept = fold.locator(".guessed .line")
    expect(kept).to_have_attribute("d", drawn)
    page.reload()
    expect(kept).to_have_attribute("d", drawn)
    expect(page.locator(".guess .sketch")).to_have_count(0)


def test_who_cannot_draw_says_the_curve_in_words(site_url, new_page):
    page = new_page()
    page.goto(f"{site_url}book/efficient/sparse.html")
    question = page.locator("blockquote.predict:has(.sketch)").first
    question.get_by_label("or in words").fill("it rises to the end")
    page.keyboard.press("Enter")
    fold = page.locator("details.predicted[data-kind=sketch]").first
    said = fold.locator(".guessed")
    expect(said).to_have_text("You said: it rises to the end")


def test_who_draws_and_reveals_has_guessed(site_url, new_page):
    """A reader who never pressed `Guess` lost the drawing."""
    page = new_page()
    page.goto(f"{site_url}book/efficient/sparse.html")
    question = page.locator("blockquote.predict:has(.sketch)").first
    draw(page, question)
    drawn = question.locator(".sketch .line").get_attribute("d")
    fold = page.locator("details.predicted[data-kind=sketch]").first
    fold.get_by_text("Reveal").click()
    expect(fold.locator(".guessed .line")).to_have_attribute("d", drawn)
    expect(page.locator(".guess .sketch")).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("positions", "1.00 ± 0.00"),  # a table below the figure's words
        ("scaling", "0 of 4 rates"),
        ("scaling", "at 512 no run does"),  # a list that a caption announces
        ("scaling", "only that one seed arrives"),  # a list below a table
    ],
)
def test_what_gives_an_answer_away_is_folded_with_it(site, name, told):
    main = copy(parse(site / "book" / f"{name}.html").select_one("main"))
    folds = [fold.extract() for fold in main.select("details.predicted")]
    assert any(told in fold.get_text() for fold in folds)
    assert told not in main.get_text()
