"""The figures on Reformer draw every seed where it was, and the medians."""

from statistics import median
from xml.etree import ElementTree

from matplotlib.figure import Figure

from selfattn.plots.drawing import WIDTH
from selfattn.plots.reformer import (
    ARMS,
    MATES,
    ROUNDS,
    language,
    mates,
    sorting,
)

BUCKETS = [2, 0, 1, 0, 2, 1]
READ = [
    {"arm": arm, "rate": rate, "seed": seed}
    | {f"rounds {r}, 300": rate + a + seed**2 / r for r in ROUNDS}
    | {"loss, 300": 0.1 * seed + a}
    for a, (_, arm, _, _) in enumerate(ARMS)
    for rate in (0.001, 0.003)
    for seed in range(5)
]
ASKED = [
    {"mate": mate, "arm": arm, "heads": heads, "rate": 0.01, "names": names}
    | {"seed": seed, "right, 400": (a + seed / 7) / 6 + names / 100}
    for a, (mate, arm, heads) in enumerate(MATES)
    for names in (4, 6)
    for seed in range(5)
]


def test_each_token_goes_to_its_place_in_the_sorted_row():
    picture = sorting(BUCKETS, 2)
    assert picture.data["order"] == [1, 3, 2, 5, 0, 4]
    root = ElementTree.fromstring(picture._repr_svg_())
    lines = [
        [tuple(map(float, p.split(","))) for p in line.get("points").split()]
        for line in root.findall(".//{*}polyline")
    ]
    step = (WIDTH - 36) / 6
    found = [
        tuple(round((x - 18) / step - 0.5) for x, _ in line)
        for line in lines[:6]
    ]
    assert found == [(i, place) for place, i in enumerate([1, 3, 2, 5, 0, 4])]
    assert len(lines) == 6 + 2  # each chunk but the first sees one before
    words = [x.text for x in root.findall(".//{*}text")]
    numbers = [int(x) - 1 for x in words if x.isdigit()]
    assert numbers == [*range(6), *[1, 3, 2, 5, 0, 4] * 2]
    boxes = root.findall(".//{*}rect")
    assert len({box.get("fill") for box in boxes}) == 3
    for box in boxes:
        assert float(box.get("x")) >= 0
        assert float(box.get("x")) + float(box.get("width")) <= WIDTH


def test_each_arm_has_its_seeds_and_its_median():
    ax = Figure().subplots()
    drawn = language(ax, READ, rate=0.003, steps=300, floor=0.3)
    dots = {
        (float(x), float(y))
        for line in ax.lines
        if line.get_marker() in "so^"
        for x, y in zip(*line.get_data(), strict=True)
    }
    for _, arm, _, _ in ARMS:
        mine = [r for r in READ if r["arm"] == arm and r["rate"] == 0.003]
        expected = [
            median(r[f"rounds {x}, 300"] for r in mine) for x in ROUNDS
        ]
        assert drawn[arm] == expected
        for x in ROUNDS:
            assert {(x, r[f"rounds {x}, 300"]) for r in mine} <= dots
    heights = [list(line.get_ydata()) for line in ax.lines]
    shared = [r["loss, 300"] for r in READ if r["arm"] == "shared"]
    assert [0.3, 0.3] in heights and [median(shared)] * 2 in heights


def test_each_bar_is_the_median_of_its_seeds():
    ax = Figure().subplots()
    drawn = mates(ax, ASKED, rate=0.01, steps=400, names=6)
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == [drawn[kind] for kind in MATES]
    for place, (mate, arm, heads) in enumerate(MATES):
        kind = {"mate": mate, "arm": arm, "heads": heads, "names": 6}
        many = [r["right, 400"] for r in ASKED if kind.items() <= r.items()]
        assert drawn[mate, arm, heads] == median(many)
        assert list(ax.lines[place].get_ydata()) == many
    assert list(ax.lines[-1].get_ydata()) == [1 - 1 / 6] * 2
