"""Printed tables hold what the notebooks hold, and may be used by anybody."""

import re
from pathlib import Path

import pytest
from guards import site_files, site_pages
from playwright.sync_api import expect
from printed_tables import drawn, is_roomy, named

from tools.build.notebooks import in_contents, read

ROOT = Path(__file__).parents[2]
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
OUTPUT = ".cell_output > .output pre, .cell_output > .printed-tables"
NOTEBOOKS = [
    path.relative_to(ROOT).with_suffix("").as_posix()
    for path in in_contents(ROOT)
]


def stored(notebook):
    """The text of each output that the site prints as text or as a table."""
    for cell in read(notebook).cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                yield output.text
            elif set(output.get("data", {})) == {"text/plain"}:
                yield output.data["text/plain"]


def words(text):
    """What is said, however it is spaced; a tensor's without its brackets."""
    bare = re.sub(r"tensor\(|[\[\]()]|,(?=\s|$)", " ", ESCAPE.sub("", text))
    return bare.split()


def plain(texts):
    """The words of texts, without what a header has not."""
    said = (word.strip(",:;=…") for text in texts for word in words(text))
    return list(filter(None, said))


def shown(element):
    """What an output on the page says, row by row, and whether in order.

    A row of which a header says the shared words is followed by its cells
    alone, which stand in it in their order; for that there is None.
    """
    if element.select("table.in-words"):
        for part in element.select("table"):
            head = [cell.get_text() for cell in part.select("th")]
            if "in-words" not in part["class"]:
                yield plain(head), True
            for row in part.select("tbody tr"):
                cells = [cell.get_text() for cell in row.select("td")]
                if "in-words" not in part["class"]:
                    yield plain(cells), True
                    continue
                yield plain(head + cells), False
                yield plain(cells), None
        return
    for part in element.select("td, th, caption") or [element]:
        yield plain([part.get_text()]), True


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_page_says_what_its_notebook_has_stored(site, name):
    """All its outputs, in their order, as text or as tables."""
    page = site_files.parse(site / f"{name}.html")
    left = plain(stored(ROOT / f"{name}.ipynb"))
    row = []
    for element in page.select(OUTPUT):
        for said, as_said in shown(element):
            if as_said is None:
                rest = iter(row)
                assert all(word in rest for word in said)
                continue
            row, left = left[: len(said)], left[len(said) :]
            order = list if as_said else sorted
            assert order(row) == order(said)
    assert left == []


def test_a_tensors_table_has_its_rows():
    text = "(tensor([[1., -2.5],\n         [nan, 10.]]),\n tensor([7, 8]))"
    (html,) = drawn(text)
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    cells = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]
    assert cells == [["1.", "-2.5"], ["nan", "10."], ["7", "8"]]
    said = "tensor([[1., inf],\n        [2., 3.]], dtype=torch.float16)"
    assert "<caption>dtype=torch.float16</caption>" in drawn(said)[0]


@pytest.mark.parametrize(
    "text",
    [
        "tensor([1., 2.])",
        "tensor([[[1., 2.]]])",
        "tensor([[1., ..., 2.],\n [3., ..., 4.]])",
        "(tensor([[1.],\n [2.]]), 3)",
        "one  1.0\ntwo  2.0",
        "one  1.0\ntwo  2.0\nthree 3.0\nfour  4.0\n",
        "read as    keep   added\na  0.0  1.0\nb  1.0  2.0  3\nc  1.0  2.0",
        "a  0, 1\nb  0, 2\nc  1, 3",
        "1  one\n2  two\n3  three",
    ],
)
def test_what_is_no_table_stays_text(text):
    assert drawn(text) == []


def test_lines_are_a_table_and_what_is_said_around_them_stays():
    rows = ["       speed  size", "a       0.5   1,024", "b      10.25    –"]
    text = "\n".join(["two runs", *rows, "all of them"])
    before, html, last = drawn(text)
    assert (before, last) == ("two runs", "all of them")
    assert re.findall(r"<th [^>]*>([^<]*)<", html) == ["speed", "size"]
    assert re.findall(r"--less:(\d)", html) == ["1"]


@pytest.fixture
def opened(new_page, site_url):
    """The first table of a page, unfolded, that a selector names."""

    def start(name, selector, **options):
        page = new_page(**options)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto(f"{site_url}book/{name}.html")
        return page, page.locator(
            f".printed-tables > div:has({selector})"
        ).first

    return start


def test_a_small_tensor_is_shaded_by_the_keyboard(opened):
    page, box = opened("dot_product", "table.tensor.small")
    button = box.get_by_role("button", name="Shade")
    cells = box.locator("td")
    before = cells.all_inner_texts()
    paint = "(all) => all.map((e) => getComputedStyle(e).backgroundColor)"
    assert len(set(cells.evaluate_all(paint))) == 1
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    assert len(set(cells.evaluate_all(paint))) > 1
    assert cells.all_inner_texts() == before
    assert site_pages.inaccessible(page, "article.bd-article") == []


def test_a_table_is_copied_with_tabs(opened):
    page, box = opened("dot_product", "table.tensor.small")
    rows = [
        row.locator("td").all_inner_texts() for row in box.locator("tr").all()
    ]
    box.get_by_role("button", name="Copy the table").click()
    expect(page.locator("[aria-live].copied")).to_have_text("Copied!")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "\n".join("\t".join(row) for row in rows)


def test_a_table_of_a_race_is_sorted_both_ways(opened):
    page, box = opened("bench", "thead")
    head = box.locator("thead th").first
    rows = sorted(box.locator("tbody tr").all_inner_texts())
    for order, back in (("ascending", False), ("descending", True)):
        head.get_by_role("button").focus()
        page.keyboard.press("Enter")
        expect(head).to_have_attribute("aria-sort", order)
        first = box.locator("tbody td:first-child").all_inner_texts()
        assert first == sorted(first, reverse=back)
        assert sorted(box.locator("tbody tr").all_inner_texts()) == rows


def test_numbers_are_sorted_as_numbers(opened):
    page, box = opened("bench", "thead:has-text('speed')")
    page.evaluate(
        "document.querySelectorAll('details').forEach((e) => {"
        " e.open = true; })"
    )
    heads = box.locator("thead tr > *").all_text_contents()
    place = next(i for i, head in enumerate(heads) if "speed" in head)
    head = box.locator("thead tr > *").nth(place)
    for order, back in (("ascending", False), ("descending", True)):
        head.get_by_role("button").focus()
        page.keyboard.press("Enter")
        expect(head).to_have_attribute("aria-sort", order)
        column = box.locator(f"tbody td:nth-child({place + 1})")
        numbers = [float(word) for word in column.all_inner_texts()]
        assert numbers == sorted(numbers, reverse=back)


def test_numbers_stand_point_under_point(opened):
    _, box = opened("bench", "thead:has-text('speed')")
    right = """(all) => all.map((e) => {
      const text = e.firstChild, range = document.createRange();
      range.setStart(text, text.data.indexOf("."));
      range.setEnd(text, text.data.indexOf(".") + 1);
      return range.getBoundingClientRect().x; })"""
    places = box.locator("tbody td:nth-child(2)").evaluate_all(right)
    assert max(places) - min(places) < 1


def test_what_copies_takes_no_room_until_it_is_pointed_at(opened):
    """There was a hole beside a small table, and below a wide one."""
    page, box = opened("dot_product", "table.tensor.small")
    tools = box.locator(".printed-tools")
    table = box.locator("table").bounding_box()
    around = box.bounding_box()
    assert around["width"] - table["width"] < 1
    assert around["height"] - table["height"] < 2
    expect(tools).to_have_css("opacity", "0")
    box.hover()
    expect(tools).to_have_css("opacity", "1")
    place = tools.bounding_box()
    assert place["x"] > table["x"] + table["width"] - 1
    page.mouse.move(place["x"] + 1, place["y"] + 1)  # on the way to it
    expect(tools).to_have_css("opacity", "1")


def test_at_a_wide_table_it_stands_above_its_end(opened):
    page, box = opened("efficient/swin", "thead:has-text('own, fixed')")
    page.evaluate(
        "document.querySelectorAll('details').forEach((e) => {"
        " e.open = true; })"
    )
    box.hover()
    tools = box.locator(".printed-tools").bounding_box()
    around = page.locator(".bd-article").bounding_box()
    assert tools["x"] + tools["width"] <= around["x"] + around["width"] + 1
    assert tools["y"] + tools["height"] <= box.bounding_box()["y"] + 1


def test_headers_stand_apart(opened):
    """An arrow stood nearer to the next word than to its own."""
    _, box = opened("bench", "thead:has-text('speed')")
    gaps = box.locator("thead th").evaluate_all("""(all) => all.map((e) =>
      parseFloat(getComputedStyle(e).paddingLeft)).slice(1)""")
    assert min(gaps) > 8


def test_on_a_phone_a_wide_table_scrolls_and_without_a_script_it_stands(
    opened, new_page, site_url
):
    phone = {"width": 360, "height": 740}
    wide = "thead:has-text('16 features')"
    _, box = opened("efficient/performer", wide, viewport=phone)
    scrolls = box.locator(".printed-table")
    assert scrolls.evaluate("(e) => e.scrollWidth > e.clientWidth")
    assert scrolls.evaluate("(e) => e.tabIndex") == 0
    assert scrolls.bounding_box()["width"] < 340
    bare = new_page(java_script_enabled=False)
    bare.goto(f"{site_url}book/bench.html")
    assert bare.locator("table.printed td").first.is_visible()
    assert bare.locator(".printed-tools").count() == 0


# Printed lines that fall into columns, and are longer than their place.
BROKEN = """() => [...document.querySelectorAll(".long-lines pre")]
  .filter((e) => !e.closest("details"))
  .filter((e) => {
    e.style.whiteSpace = "pre";
    return e.scrollWidth > e.clientWidth;
  }).map((e) => e.textContent.slice(0, 60))"""


@pytest.mark.parametrize("name", ["cost", "positions", "devices"])
def test_a_line_that_is_little_too_long_is_not_broken(site_url, page, name):
    """The last word of each line of a table stood in a line of its own."""
    page.goto(f"{site_url}book/{name}.html")
    assert page.locator(".cell_output .long-lines pre").count() > 0
    assert page.evaluate(BROKEN) == []


def test_on_a_phone_a_rows_name_stands_above_its_numbers(site_url, new_page):
    """Three letters of it were to be seen, in twelve lines a row."""
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{site_url}book/bench.html")
    tables = page.locator("table.printed.named")
    assert tables.count() > 10
    row = tables.nth(2).locator("tbody tr").first
    first, *numbers, name = (
        one.bounding_box() for one in row.locator("td").all()
    )
    assert name["y"] + name["height"] <= first["y"] + 1
    assert {round(one["y"]) for one in numbers} == {round(first["y"])}
    assert name["x"] + name["width"] < 350
    page.set_viewport_size({"width": 1280, "height": 900})
    boxes = [one.bounding_box() for one in row.locator("td").all()]
    assert len({round(one["y"]) for one in boxes}) == 1


def test_on_a_phone_sentences_go_on_in_the_next_line(site_url, new_page):
    """Of a diagnosis each line was cut off in the middle."""
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{site_url}book/intro.html")
    told = page.locator(".cell_output .prose-lines pre")
    assert told.count() == 2
    wide = "(all) => all.map((e) => e.scrollWidth - e.clientWidth)"
    assert max(told.evaluate_all(wide)) <= 1
    page.goto(f"{site_url}book/cost.html")
    assert page.locator(".output:not(.prose-lines) pre").count() > 5


def test_what_begins_with_a_number_is_no_name():
    """A table's last column stood above its rows, as if they were of it."""
    rows = [[f"{n}", *["0.37 / 0.36"] * 4] for n in (8, 64, 1024)]
    head = ["keys", *(f"d_k = {d}" for d in (4, 16, 64, 256))]
    assert named(rows, head) == []
    assert is_roomy(rows, head)
    rows = [["RoPE", *["0.37 ± 0.02"] * 3]] * 3
    assert named(rows, ["", "as trained", "twice", "four times"]) != []


def test_columns_stand_apart_on_a_phone_where_there_is_room(
    site_url, new_page
):
    """A long number began where another ended, and half a line was empty."""
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{site_url}book/multihead.html")
    table = page.locator("table.printed", has_text="2,147,483,648").first
    cells = table.locator("tbody tr").first.locator("td")
    gap = cells.nth(1).evaluate(
        "(e) => parseFloat(getComputedStyle(e).paddingLeft)"
    )
    assert gap > 8


@pytest.mark.parametrize("name", ["scaling", "positions", "layers"])
def test_a_table_that_is_little_too_wide_does_not_scroll(site_url, page, name):
    """Half of its last column was cut off, and nothing said so."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{site_url}book/{name}.html")
    page.evaluate(
        "document.querySelectorAll('details').forEach((e) => e.open = true)"
    )
    page.evaluate("dispatchEvent(new Event('resize'))")
    over = page.locator(".printed-table").evaluate_all(
        "(all) => all.map((e) => e.scrollWidth - e.clientWidth)"
    )
    assert len(over) > 8
    assert max(over) <= 0


def test_a_number_with_a_star_is_a_number():
    """Beside columns of plain numbers one with stars stood at the left."""
    lines = "name  one  two\na  0.71  2.00*\nb  1.56  0.00\nc  0.00  2.00*"
    (html,) = drawn(lines)
    assert html.count('<td class="n"') == 6
    assert '<td class="n" style="--less:1">0.00</td>' in html
