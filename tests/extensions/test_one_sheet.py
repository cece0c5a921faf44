"""Sheets are joined in the order of the pages, and find what lies beside."""

import pytest
from one_sheet import in_order, lighter, sheet


def test_the_order_is_that_of_every_page():
    lists = [["a", "c"], ["a", "b", "c", "d"], [], ["e", "d"]]
    every = in_order(iter(lists))
    assert sorted(every) == ["a", "b", "c", "d", "e"]
    for names in lists:
        assert [name for name in every if name in names] == names
    with pytest.raises(ValueError, match="a comes before, and after"):
        in_order(iter([["a", "b"], ["b", "a"]]))


def test_what_a_sheet_asks_for_is_in_it_and_found(tmp_path):
    sheets = {
        "styles/one.css": '@charset "UTF-8";\n@import "../two.css";p{a:b}',
        "two.css": "q{c:url(two.png) url('data:x') url(\"data:y\")}",
        "katex/three.css": "r{d:url(fonts/f.woff2)}",
    }
    for name, text in sheets.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    gone = set()
    joined = sheet(tmp_path, "styles/one.css", gone)
    assert joined.split() == [
        "q{c:url(two.png)",
        "url('data:x')",
        'url("data:y")}p{a:b}',
    ]
    assert sheet(tmp_path, "katex/three.css", gone) == (
        "r{d:url(katex/fonts/f.woff2)}"
    )
    assert gone == {tmp_path / name for name in sheets}


def test_what_is_for_those_who_write_a_sheet_is_left_out():
    """A page was a few bytes too heavy, and seven thousand were comments."""
    told = '/* why:\n   "so" */\na {\n  b: "/* c */";\n\n  d: e /* f */;\n}\n'
    assert lighter(told) == 'a {\nb: "/* c */";\nd: e ;\n}\n'
