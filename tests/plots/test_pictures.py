"""The pictures hold the numbers that they were given, and fit on a phone."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from selfattn.plots import pictures
from selfattn.plots.drawing import WIDTH

Q, K, V = [[1, 0], [0, 2], [2, 1]], [[1, 1], [2, 0], [0, 1]], [[1, 0], [3, 1]]
SCALED = [[0.71, 1.41, -0.25], [1.41, 0.0, 1.41], [2.12, 2.83, 0.71]]
WEIGHTS = [[0.28, 0.58, 0.14], [0.45, 0.11, 0.45], [0.31, 0.62, 0.07]]
OUTPUT = [[0.7, 1.29], [1.78, -0.66], [0.53, 1.31]]
CAUSAL = [[j <= i for j in range(6)] for i in range(6)]
STEP = [[True] * 5 + [False], [True] * 6]
TOKENS = ["the", "cat", "sat"]
HEADS = {
    "one": [("half", [0.5, 0.5, 0.0], [0.5, 1.0])],
    "two": [
        ("who", [0.0, 1.0, 0.0], [0.0, 2.0]),
        ("where", [0.75, 0.0, 0.25], [1.5, 0.25]),
    ],
}
ALL = {
    "flow": pictures.flow(Q, K, V, SCALED, WEIGHTS, OUTPUT),
    "split": pictures.split([[1, 2, 3, 4], [5, 6, 7, 8]], 2),
    "answers": pictures.answers(TOKENS, HEADS),
    "sharing": pictures.sharing({"eight": (8, 8), "two": (8, 2)}),
    "pre": pictures.block("pre"),
    "post": pictures.block("post"),
    "masks": pictures.who_sees_whom({"causal": CAUSAL, "step": STEP}),
    "planes": pictures.planes([1.0, 0.1], 5, 2),
    "cache": pictures.cache(5),
    "tiles": pictures.tiles([[1.41, 0.71], [2.12, 0.0]], [1.41, 2.12], [1, 2]),
}


def parts(name, tag):
    """The elements of this tag in a picture."""
    root = ElementTree.fromstring(ALL[name]._repr_svg_())
    return root.findall(f".//{{*}}{tag}")


def words(name):
    return [part.text.replace("−", "-") for part in parts(name, "text")]


def ends(line):
    return [
        tuple(map(float, p.split(","))) for p in line.get("points").split()
    ]


def numbers(name):
    found = (re.fullmatch(r"-?\d+(?:\.\d+)?", word) for word in words(name))
    return [float(match[0]) for match in found if match]


@pytest.mark.parametrize("name", ALL)
def test_it_fits_on_a_phone_and_has_one_look(name):
    high = ALL[name].height
    inside = [
        (x, y) for line in parts(name, "polyline") for x, y in ends(line)
    ]
    for box in parts(name, "rect"):
        x, y, wide, deep = (
            float(box.get(k)) for k in ("x", "y", "width", "height")
        )
        inside += [(x, y), (x + wide, y + deep)]
    for text in parts(name, "text"):
        half = 3.7 * len(text.text)  # letters are about so wide
        anchor = text.get("text-anchor")
        x, y = float(text.get("x")), float(text.get("y"))
        left = {"start": 0, "middle": half, "end": 2 * half}[anchor]
        inside += [(x - left, y), (x - left + 2 * half, y)]
    assert all(-1 <= x <= WIDTH + 1 and 0 <= y <= high for x, y in inside)
    assert max(y for _, y in inside) > high - 40  # no empty room below
    svg = ALL[name]._repr_svg_()
    colours = re.findall(r'(?:fill|stroke)="(?!none)([^"]*)"', svg)
    assert all(colour.startswith("var(--") for colour in colours)
    assert svg == ALL[name]._repr_svg_()


def test_the_flow_has_every_number():
    flat = [
        x
        for table in (Q, K, V, SCALED, WEIGHTS, OUTPUT)
        for row in table
        for x in row
    ]
    assert numbers("flow") == flat
    shades = [float(b.get("fill-opacity")) for b in parts("flow", "rect")]
    start = len(numbers("flow")) - 9 - 6
    assert shades[start : start + 9] == pytest.approx(
        [0.55 * x for row in WEIGHTS for x in row], abs=1e-3
    )


def test_heads_are_blocks_of_features():
    assert numbers("split") == [
        *range(1, 9), 1, 2, 5, 6, 3, 4, 7, 8, *range(1, 9)
    ]  # fmt: skip
    colours = [box.get("stroke") for box in parts("split", "rect")]
    assert len(set(colours)) == 2
    whole, one, two = colours[:8], colours[8:12], colours[12:16]
    assert set(one) == {whole[0]} == {whole[1]} != set(two) == {whole[2]}


def test_each_row_of_weights_brings_its_own_answer():
    """Two answers stand side by side, each in the colour of its row."""
    rows = [row for arm in HEADS.values() for row in arm]
    flat = [x for _, weights, answer in rows for x in (*weights, *answer)]
    assert numbers("answers") == [round(x, 1) for x in flat]
    boxes = parts("answers", "rect")
    brought = {}
    for place, name in enumerate(("half", "who", "where")):
        mine = boxes[5 * place : 5 * place + 5]
        assert len({box.get("stroke") for box in mine}) == 1
        shades = [float(box.get("fill-opacity")) for box in mine[:3]]
        assert shades == pytest.approx(
            [0.55 * x for x in rows[place][1]], abs=1e-3
        )
        brought[name] = [(float(b.get("x")), b.get("y")) for b in mine[3:]]
    who, where = brought["who"], brought["where"]
    assert {y for _, y in who} == {y for _, y in where}
    xs = [x for x, _ in who + where]
    assert [b - a for a, b in pairwise(xs)] == [38, 38, 38]
    lines = [ends(line) for line in parts("answers", "polyline")]
    assert [len(line) for line in lines] == [2, 2, 3]
    assert where[0][0] < lines[2][-1][0] < where[1][0] + 38


def test_query_heads_read_the_keys_of_their_group():
    lines = [ends(line) for line in parts("sharing", "polyline")]
    assert words("sharing")[:2] == ["query head", "key and value head"]
    legend, boxes = parts("sharing", "rect")[:2], parts("sharing", "rect")[2:]
    assert [e.get("fill") for e in legend] == [
        boxes[0].get("fill"),
        boxes[8].get("fill"),
    ]
    own, shared = lines[:8], lines[8:]
    assert all(top[0] == below[0] for top, below in own)
    assert [below[0] for _, below in shared] == [85] * 4 + [255] * 4


def test_the_path_goes_past_the_sublayer_and_the_norm_has_its_place():
    assert words("pre")[1:4] == ["norm", "attention", "+"]
    assert words("post")[1:5] == ["attention", "+", "norm", "path"]
    for name in ("pre", "post"):
        bent = [e for e in map(ends, parts(name, "polyline")) if len(e) == 4]
        boxes = {
            text.text: float(text.get("y")) for text in parts(name, "text")[:4]
        }
        assert len(bent) == 2
        assert bent[0][0][1] < boxes["attention"] < bent[0][-1][1]


def test_a_line_is_a_pair_that_may_look():
    lines = [ends(line) for line in parts("masks", "polyline")]
    pairs = sum(map(sum, CAUSAL)) + sum(map(sum, STEP))
    assert len(lines) == pairs
    later = [below[0] > above[0] + 0.01 for above, below in lines]
    assert not any(later)  # the last query sits on the last key


def test_hands_stand_at_their_angles():
    (key, query, *_) = [ends(line) for line in parts("planes", "polyline")]
    for hand, position in ((key, 2), (query, 5)):
        (x, y), (to_x, to_y) = hand
        angle = math.atan2(y - to_y, to_x - x) % (2 * math.pi)
        assert angle == pytest.approx(position % (2 * math.pi), abs=0.01)
    assert f"{math.degrees(3):.0f}° apart" in words("planes")


def test_the_cache_grows_by_one_and_tiles_say_what_is_kept():
    boxes = parts("cache", "rect")
    assert len(boxes) == 5 + 2 * (1 + 2 + 3 + 4 + 5)
    assert "m = 2.12, ℓ = 2.00" in words("tiles")
    assert f"ℓ and output × {math.exp(1.41 - 2.12):.2f}" in words("tiles")


@pytest.mark.parametrize("name", ALL)
def test_the_tip_of_an_arrow_has_the_colour_of_its_line(name):
    tips = {tip.get("id"): tip[0].get("fill") for tip in parts(name, "marker")}
    for line in parts(name, "polyline"):
        if end := line.get("marker-end"):
            tip = end.removeprefix("url(#").removesuffix(")")
            assert tips[tip] == line.get("stroke")
