"""The figures on Swin draw every seed where it was, and the medians."""

from statistics import median
from xml.etree import ElementTree

from matplotlib.figure import Figure

from selfattn.plots.drawing import WIDTH
from selfattn.plots.swin import ARMS, WINDOWS, heard, losses, neighbours

PUT = [
    {"arm": "full", "rate": rate, "seed": seed, "loss, 160": 0.3 + seed / 10}
    | {
        f"put in {how} {window}, loss, 160": rate + seed**2 / (3 + place)
        for how in ("shifted", "fixed")
        for place, window in enumerate(WINDOWS)
    }
    for rate in (0.003, 0.01)
    for seed in range(5)
]
TRAINED = [
    {"arm": arm, "window": window, "rate": rate, "seed": seed}
    | {"loss, 160": rate + len(arm) + seed**2 / (7 + place)}
    for arm in ("shifted", "fixed")
    for place, window in enumerate(WINDOWS)
    for rate in (0.003, 0.01)
    for seed in range(5)
]
ASKED = [
    {"arm": arm, "offset": offset, "rate": 0.01, "seed": seed}
    | {
        f"{name}, 200": (seed + len(name) + len(arm)) / 20
        for name in ("within", "across", "neither", "freed")
    }
    | ({"caught, 200": 0.1 * seed} if arm == "fixed" else {})
    for arm in ("fixed", "shifted")
    for offset in ("right", "diagonal")
    for seed in range(5)
]


def test_what_is_heard_is_dark_and_borders_part_windows():
    seen = [True, True, False, False, True, False]
    own = [0, 0, 1, 0, 0, 1]
    picture = heard({"here": (seen, own), "there": (seen, [3] * 6)}, 3, 4)
    root = ElementTree.fromstring(picture._repr_svg_())
    boxes = root.findall(".//{*}rect")
    fills = ["heard" if "key" in box.get("fill") else "" for box in boxes]
    asks = [i for i, box in enumerate(boxes) if "query" in box.get("fill")]
    assert asks == [4, 10]
    dark = [i for i, fill in enumerate(fills[:6]) if fill]
    assert dark == [0, 1]
    assert len(root.findall(".//{*}polyline")) == 2  # beside the two ones
    for box in boxes:
        assert 0 <= float(box.get("x")) <= WIDTH - float(box.get("width"))


def test_each_size_of_window_has_its_seeds_and_its_median():
    ax = Figure().subplots()
    drawn = losses(ax, PUT + TRAINED, rate=0.01, steps=160)
    dots = {
        (float(x), float(y))
        for line in ax.lines
        for x, y in zip(*line.get_data(), strict=True)
    }
    for words, arm, name, *_ in ARMS:
        for place, (window, size) in enumerate(WINDOWS.items()):
            mine = [
                run[f"{name.format(window)}loss, 160"]
                for run in PUT + TRAINED
                if run["arm"] == arm
                and run["rate"] == 0.01
                and run.get("window", window) == window
            ]
            assert len(mine) == 5
            assert drawn[words][place] == median(mine)
            assert {(size, loss) for loss in mine} <= dots
    assert drawn["one window"] == [0.5]


def test_each_bar_is_the_median_of_its_seeds():
    ax = Figure().subplots()
    drawn = neighbours(ax, ASKED, offset="right", rate=0.01, steps=200)
    names = [(arm, name) for arm, name in drawn]
    assert names == [
        *(("fixed", name) for name in ("within", "across", "neither")),
        *(("fixed", "caught"), ("fixed", "freed")),
        *(("shifted", name) for name in ("within", "across", "neither")),
        ("shifted", "freed"),
    ]
    heights = [bar.get_height() for bar in ax.patches]
    for place, (arm, name) in enumerate(names):
        mine = [
            run[f"{name}, 200"]
            for run in ASKED
            if run["arm"] == arm and run["offset"] == "right"
        ]
        assert heights[place] == drawn[arm, name] == median(mine)
        assert list(ax.lines[place].get_ydata()) == mine
    assert list(ax.lines[-1].get_ydata()) == [1 / 8] * 2
