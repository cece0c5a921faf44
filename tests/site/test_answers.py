"""A page's verdict on an answer is the doctor's."""

import json
import re

from playwright.sync_api import expect

from selfattn.doctor.engine.diagnosis import diagnose
from tools.build.answers import FILE, numbers, predictions

ADDRESS = "book/dot_product.html"
PLACE = re.compile(r'class="answer-place" data-exercise="([^"]+)"')


def tried(exercise):
    """Answers: right, mistaken, rounded as on paper, and meaningless."""
    known = [exercise.solution, *(one.answer for one in exercise.mistakes)]
    for value in map(numbers, known):
        yield value
        yield [round(number, 2) for number in value]
        yield [number + 0.3 for number in value]
        yield value[::-1]


def as_it_is_handed_over(exercise, value):
    several = len(numbers(exercise.solution)) > 1
    return value if several else value[0]


def verdict(exercise, value):
    """The doctor's mark, and the mistake's name."""
    report = diagnose(as_it_is_handed_over(exercise, value), exercise)
    return [
        "✓" if report.passed else "✗",
        report.mistake.name if report.mistake else "",
    ]


def test_every_question_has_its_place(site):
    asked = [
        exercise
        for path in sorted((site / "book").rglob("*.html"))
        for exercise in PLACE.findall(path.read_text("utf-8"))
    ]
    assert sorted(asked) == sorted(json.loads(FILE.read_text("utf-8")))


def test_page_and_doctor_say_the_same(site_url, page):
    page.goto(site_url + ADDRESS)
    records = json.loads(FILE.read_text("utf-8"))
    cases, wanted = [], []
    for name, exercise in predictions().items():
        for value in tried(exercise):
            text = ", ".join(map(repr, value))
            cases.append([records[name], text])
            wanted.append(verdict(exercise, value))
    said = page.evaluate(
        """(cases) => cases.map(([record, text]) => {
          const { mark, name } = selfattnAnswers.judge(record, text);
          return [mark, name];
        })""",
        cases,
    )
    assert said == wanted
    assert {mark for mark, _ in said} == {"✓", "✗"}
    judge = "([record, text]) => selfattnAnswers.judge(record, text).mark"
    whole, third = records["multihead/parameters"], records["scaling/variance"]
    assert page.evaluate(judge, [whole, "1,574,912"]) == "✓"
    assert page.evaluate(judge, [third, "(0; 9; 1/9)"]) == "✓"
    for text in ["", "nine", "0 9", "0 9 1/9 1", "0 9 1/0x"]:
        assert page.evaluate(judge, [third, text]) == "○"


ROWS = [
    [-0.1, 0.9, 0.2],
    [0.0, 4.0, 1.0],
    [0.0, 0.9, 0.2],
    [0.0, 0.11, 0.89],
    [0.1, 0.8, 0.1],
    [0.0, 0.88, 0.12],
    [0.0, 0.7, 0.3],
]


def test_of_a_row_of_weights_page_and_doctor_see_the_same(site_url, page):
    """The page said that it was not right, and no more."""
    page.goto(site_url + ADDRESS)
    records = json.loads(FILE.read_text("utf-8"))
    exercise = predictions()["masks/padded_row"]
    for row in ROWS:
        text = ", ".join(map(repr, row))
        said = page.evaluate(
            "([record, text]) => selfattnAnswers.judge(record, text).words",
            [records["masks/padded_row"], text],
        )
        lead, _, seen = said.partition(". ")
        assert lead == "Not right" and seen
        doctor = " ".join(str(diagnose(row, exercise)).split())
        assert seen.replace("’", "'") in doctor


def test_a_wrong_answer_is_named_and_a_right_one_is_told(site_url, page):
    page.goto(site_url + ADDRESS)
    place = page.locator(".answer-place")
    field, said = place.get_by_role("textbox"), place.get_by_role("status")
    field.fill("0.28, 0.58, 0.14")
    field.press("Enter")
    expect(said).to_contain_text("✗ nothing changes. These are the weights")
    field.fill("<b>.10</b>")
    place.get_by_role("button").click()
    expect(said).to_have_text("○ 3 numbers are asked for.")
    field.fill(".10 .85 .05")
    field.press("Enter")
    expect(said).to_have_text("✓ Right.")


def test_on_a_phone_a_verdict_goes_into_several_lines(site_url, new_page):
    """It had the class of the badges of claims, which never break."""
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(site_url + ADDRESS)
    place = page.locator(".answer-place")
    place.get_by_role("textbox").fill("0.2, 0.6, 0.2")
    place.get_by_role("button").click()
    said = place.get_by_role("status")
    expect(said).to_contain_text("Not right.")
    inside = place.bounding_box()
    box = said.bounding_box()
    assert box["x"] + box["width"] <= inside["x"] + inside["width"] + 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
