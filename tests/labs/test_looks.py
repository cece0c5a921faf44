"""The labs' colours and scripts: seen in light and dark, read in print."""

import re
from pathlib import Path

import pytest
from contrast import contrast

from selfattn.labs.machinery import esm
from selfattn.plots import colours

LABS = esm.LABS
HINT = re.compile(r"lab\.hint\(.*?;", re.DOTALL)
HOST = Path(__file__).parents[2] / "book" / "_static" / "labs" / "host.js"


def palette(dark):
    css = (LABS / esm.STYLE).read_text("utf-8")
    blocks = re.findall(r"\{([^}]*--query[^}]*)\}", css)
    return dict(re.findall(r"--(\w+): (#\w+)", blocks[dark]))


def test_the_colours_are_those_of_the_figures():
    light = palette(dark=False)
    assert [light[n] for n in ("query", "key", "value", "output")] == [
        colours.Q,
        colours.K,
        colours.V,
        colours.OUTPUT,
    ]


@pytest.mark.parametrize("dark", [False, True])
def test_every_colour_stands_out_from_its_ground(dark):
    found = palette(dark)
    for mark in ("query", "key", "value", "output", "faint", "focus"):
        assert contrast(found[mark], found["ground"]) >= 3
        assert contrast(found[mark], found["panel"]) >= 3
    for text in ("ink", "faint"):
        for ground in ("ground", "panel"):
            assert contrast(found[text], found[ground]) >= 4.5
    assert contrast(found["ink"], found["heat"]) >= 4.5


@pytest.mark.parametrize("script", [*LABS.rglob("*.js"), HOST], ids=str)
def test_scripts_fit_on_a_printed_page(script):
    lines = script.read_text("utf-8").splitlines()
    code = [x for x in lines if x.strip() and not x.strip().startswith("//")]
    assert max(map(len, lines)) <= 79
    assert len(code) <= 230


def test_who_taps_is_told_so_as_well_as_who_points():
    """On a phone there is nothing to point with."""
    hints = [
        (path.stem, hint)
        for path in LABS.glob("*.js")
        for hint in HINT.findall(path.read_text("utf-8"))
        if "point at" in hint.lower()
    ]
    assert len(hints) > 10
    assert [
        name
        for name, hint in hints
        if not re.search(r"(?i:point) at or tap|, or press it", hint)
    ] == []
