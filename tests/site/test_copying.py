"""The buttons that copy code: where they stand, what they copy and say."""

import pytest
from guards import site_files
from playwright.sync_api import expect

CODE = "div.cell_input pre, div.install pre, div.highlight-sh pre"
CODE += ", div.highlight-python:not(.api-call) pre"
BUTTON = "button.copybtn"


@pytest.fixture
def copying(new_page, site_url):
    """Open a page that may write to the clipboard, and read it."""

    def start(name, **options):
        page = new_page(**options)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto(f"{site_url}book/{name}.html")
        expect(page.locator(BUTTON).first).to_be_attached()
        return page

    return start


def copied(page):
    return page.evaluate("navigator.clipboard.readText()")


def visible(button):
    return button.evaluate("(e) => Number(getComputedStyle(e).opacity)")


@pytest.mark.parametrize("name", ["intro", "dot_product", "notation"])
def test_code_has_a_button_and_outputs_have_none(site, copying, name):
    page = copying(name)
    blocks = site_files.parse(site / "book" / f"{name}.html").select(CODE)
    assert page.locator(BUTTON).count() == len(blocks)
    assert page.locator(f".output {BUTTON}").count() == 0


@pytest.mark.parametrize("name", ["intro", "dot_product", "notation"])
def test_each_button_is_called_what_it_does(copying, name):
    """A picture alone has no name that all of a browser's tools take."""
    buttons = copying(name).locator(BUTTON)
    names = buttons.evaluate_all("(all) => all.map((e) => e.ariaLabel)")
    assert {*names} == {"Copy this code"}


def test_the_keyboard_copies_a_cell_and_is_told_so(site, copying):
    page = copying("dot_product")
    cell = page.locator("div.cell_input").nth(2)
    button = cell.get_by_role("button", name="Copy")
    page.locator("body").press("Tab")  # from now on by keyboard
    button.focus()
    page.wait_for_timeout(400)
    assert visible(button) == 1
    assert button.evaluate("(e) => getComputedStyle(e).outlineStyle") != "none"
    page.keyboard.press("Enter")
    said = page.locator("[aria-live].copied")
    expect(said).to_have_text("Copied!")
    pre = site_files.parse(site / "book" / "dot_product.html").select(CODE)
    text = cell.locator("pre").text_content()
    assert text in {one.get_text() for one in pre}
    assert copied(page) == text.rstrip("\n")


def test_a_copied_example_is_without_prompts_and_results(copying):
    page = copying("notation")
    block = page.locator("div.highlight-python:has(.gp)").first
    block.hover()
    block.locator(BUTTON).click()
    expect(page.locator("[aria-live].copied")).to_have_text("Copied!")
    wanted = [
        line[4:]
        for line in block.locator("pre").text_content().splitlines()
        if line.startswith((">>> ", "... "))
    ]
    assert wanted
    assert [line for line in copied(page).splitlines() if line] == wanted


@pytest.mark.parametrize("touch", [True, False])
def test_where_nothing_hovers_the_buttons_are_always_there(copying, touch):
    """And in a narrow window: there its row was empty."""
    page = copying(
        "dot_product",
        viewport={"width": 360, "height": 740},
        has_touch=touch,
        is_mobile=touch,
    )
    button = page.locator(f"div.cell_input {BUTTON}").nth(2)
    assert visible(button) == 1
    box = button.bounding_box()
    assert min(box["width"], box["height"]) >= 24


@pytest.mark.parametrize("has_touch", [True, False])
def test_on_a_phone_the_button_covers_no_code(copying, has_touch):
    """A line that goes on to the right ran under it."""
    page = copying(
        "dot_product",
        viewport={"width": 360, "height": 740},
        has_touch=has_touch,
        is_mobile=has_touch,
    )
    for cell in page.locator("div.cell_input div.highlight").all()[:5]:
        button = cell.locator(BUTTON).bounding_box()
        last = cell.locator("pre").evaluate(
            """(e) => {
              const range = document.createRange();
              range.selectNodeContents(e);
              return range.getBoundingClientRect().bottom + scrollY;
            }"""
        )
        top = button["y"] + page.evaluate("scrollY")
        assert top >= last - 1
