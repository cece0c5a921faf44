"""Planted faults: each guard on the site must turn red."""

import shutil
from pathlib import Path

import pytest
from guards import site_files, site_pages

ALT = "A square of nine cells, the darkest one in the middle of the last row."


def planted(folder, body, head=""):
    """A site of one page."""
    (folder / "index.html").write_text(
        f"<!DOCTYPE html><html lang='en'><head><title>A page</title>{head}"
        "<link rel='icon' href='data:,'></head>"
        f"<body><main><h1 id='top-of-it'>A page</h1>{body}</main></body>"
        "</html>"
    )
    return folder


@pytest.mark.parametrize(
    ("guard", "body", "says"),
    [
        (
            site_files.fetched_elsewhere,
            "<script src='https://cdn.example/x.js'></script>",
            "https://cdn.example/x.js",
        ),
        (
            site_files.fetched_elsewhere,
            "<img src='//cdn.example/x.png' alt=''>",
            "//cdn.example/x.png",
        ),
        (site_files.dead_links, "<a href='gone.html'>x</a>", "gone.html"),
        (site_files.dead_links, "<a href='#gone'>x</a>", "#gone"),
        (site_files.dead_links, "<img src='gone.png'>", "gone.png"),
        (
            site_files.undescribed_figures,
            "<img src='figure.png' alt=''>",
            "says only ''",
        ),
        (site_files.undescribed_figures, "<img src='figure.png'>", "only ''"),
        (
            site_files.undescribed_figures,
            "<img src='f.png' alt='_images/36cd719616f46ab296f238a73be2a7a9"
            "7d43b7b7c5152d29cac4676154ad697e.png'>",
            "a file's name",
        ),
        (
            site_files.left_overs,
            "<script>const THEBE_JS_URL = 1</script>",
            "THEBE_JS_URL",
        ),
        (
            site_files.undrawn_formulas,
            "<span class='math'>\\(x\\)</span>",
            "not drawn: \\(x\\)",
        ),
        (
            site_files.undrawn_formulas,
            "<span class='math'><span class='katex-error'>x</span></span>",
            "not drawn: x",
        ),
        (  # it stood on a page: a line's end, and "sqrt2" in italics
            site_files.undrawn_formulas,
            "<span class='math'><span class='katex'><span class='newline'>"
            "</span>sqrt2</span></span>",
            "not drawn: sqrt2",
        ),
    ],
)
def test_a_fault_in_a_file_is_found(tmp_path, guard, body, says):
    assert guard(planted(tmp_path, "")) == []
    (found,) = guard(planted(tmp_path, body))
    assert says in found


def test_a_file_that_should_not_be_published_is_found(tmp_path):
    planted(tmp_path, "")
    (tmp_path / "fontawesome.css").touch()
    (found,) = site_files.left_overs(tmp_path)
    assert "fontawesome.css" in found


def test_a_style_sheet_that_fetches_is_found(tmp_path):
    planted(tmp_path, "")
    sheet = tmp_path / "a.css"
    sheet.write_text("@import 'https://fonts.example/x.css';")
    (found,) = site_files.fetched_elsewhere(tmp_path)
    assert "fonts.example" in found
    sheet.write_text("a { background: url(gone.svg) }")
    (found,) = site_files.dead_links(tmp_path)
    assert "gone.svg" in found


def test_words_of_ones_own_are_enough(tmp_path):
    (tmp_path / "figure.png").touch()
    planted(tmp_path, f"<img src='figure.png' alt='{ALT}'>")
    assert site_files.undescribed_figures(tmp_path) == []


def test_a_dropped_description_turns_the_site_red(site, tmp_path):
    page = Path(shutil.copy(site / "book/dot_product.html", tmp_path))
    assert site_files.undescribed_figures(tmp_path) == []
    image = site_files.parse(page).select_one("main img")
    text = page.read_text("utf-8")
    page.write_text(text.replace(f'alt="{image["alt"]}"', 'alt=""'), "utf-8")
    assert len(site_files.undescribed_figures(tmp_path)) >= 1


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("<script src='http://cdn.invalid/x.js'></script>", "asks for"),
        ("<script>throw new Error('no')</script>", "error: no"),
        ("<script>console.error('oh')</script>", "error: oh"),
        ("<img src='gone.png' alt='x'>", "404"),
    ],
)
def test_a_fault_on_a_visit_is_found(tmp_path, page, serving, body, says):
    address = serving(planted(tmp_path, body))
    assert any(says in found for found in site_pages.visit(page, address))


@pytest.mark.parametrize(
    ("guard", "body", "says"),
    [
        (site_pages.inaccessible, "<img src='data:,'>", "image-alt"),
        (
            site_pages.inaccessible,
            "<p style='color: #bbb; background: #fff'>pale</p>",
            "color-contrast",
        ),
        (  # the last of many, alike in all but what they lie in
            site_pages.inaccessible,
            f"{'<p>plain</p>' * 9}<div style='opacity: .3'><p>pale</p></div>",
            "color-contrast",
        ),
        (  # in the dark alone; of code, what has this look is kept
            site_pages.inaccessible,
            "<style>@media (prefers-color-scheme: dark) { b { color: #333;"
            " background: #222 } }</style><div class='highlight'><pre><span>"
            "<span>def</span> <span><b>pale</b></span></span></pre></div>",
            "color-contrast",
        ),
        (  # in a fold, too
            site_pages.shrunk,
            "<article><details><img src='data:,' alt='a curve' width='900' "
            "style='display: block; width: 600px; height: 9px'></details>"
            "</article>",
            "a picture at 0.67: a curve",
        ),
        (
            site_pages.overflowing,
            "<div class='wide' style='width: 4000px'>wide</div>",
            "DIV.wide",
        ),
        (
            site_pages.cut_off,
            "<div style='width: 300px; overflow: auto'>"
            "<span class='katex-display'><span class='katex-html'>"
            f"{'wide' * 300}</span></span></div>",
            "cut off: wide",
        ),
        (
            site_pages.stray_glyphs,
            "<style>i::before { content: '\\f002' }</style><i></i>",
            "I.::before",
        ),
    ],
)
def test_a_fault_on_the_open_page_is_found(tmp_path, page, guard, body, says):
    page.goto(planted(tmp_path, body).joinpath("index.html").as_uri())
    assert any(says in found for found in guard(page))


def test_a_look_is_examined_once_if_it_is_right(tmp_path, page):
    """A page with a fault teaches nothing; a pale text after it is found."""

    def found(body):
        place = planted(tmp_path, body).joinpath("index.html").as_uri()
        page.goto(place)
        return site_pages.inaccessible(page, known=known)

    known = set()
    pale = "<p style='color: #bbb; background: #fff'>pale</p>"
    assert len(found(pale)) == 2 and known == set()  # in the dark, too
    assert found("<p>plain</p>") == []
    learnt = set(known)
    assert learnt and found("<p>other words</p>") == [] and known == learnt
    assert len(found("<p>plain</p>" + pale)) == 2 and known == learnt


def test_a_heavy_page_is_found(tmp_path, page, serving):
    noise = "".join(f"{i * i * 2654435761 % 2**32:x}" for i in range(90_000))
    (tmp_path / "heavy.js").write_text(f"// {noise}")
    page.goto(serving(planted(tmp_path, "")))
    assert site_pages.overweight(page) == []
    page.goto(serving(planted(tmp_path, "<script src='heavy.js'></script>")))
    (found,) = site_pages.overweight(page)
    assert "heavy.js" in found
