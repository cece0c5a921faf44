"""Style sheets lose what nothing on the pages calls for, and no more."""

import pytest
from lean import calls, lean

SHEET = """@charset "utf-8"; /* .gone { } */
:root { --a: 1 }
.seen, .gone > p { color: red }
.gone { color: blue }
a:not(.gone) { color: green }
@media (min-width: 9px) { .gone { b: c } .seen .too { d: e } }
@media print { .gone { f: g } }
@font-face { font-family: F; src: url("x;y") }
"""


def test_what_no_page_has_goes_and_all_else_stays():
    assert lean(SHEET, {"seen", "too"}).splitlines() == [
        '@charset "utf-8";',
        ":root{--a: 1}",
        ".seen{color: red}",
        "a:not(.gone){color: green}",
        "@media (min-width: 9px){.seen .too{d: e}}",
        '@font-face{ font-family: F; src: url("x;y") }',
    ]


@pytest.mark.parametrize(
    ("selector", "called"),
    [
        ("p:first-child", True),
        (".seen:is(.gone, .too):hover", True),
        (".seen.gone", False),
        (".bs-tooltip-end .seen", True),
        ('[data-x=".5"] .seen', True),
    ],
)
def test_a_selector_is_called_by_all_of_its_classes(selector, called):
    assert calls(selector, {"seen", "too"}) == called
