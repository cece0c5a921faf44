"""Rows and ticks of the labs: each word stands at the number that it names."""

import math
import re

import pytest
from guards.site_pages import LAB

from selfattn.labs.cost import LENGTHS, MECHANISMS, CostLab, plan
from selfattn.labs.flash import FlashLab
from selfattn.labs.layers import LEAST, LayersLab
from selfattn.labs.models import ModelsLab
from selfattn.labs.multihead import MultiheadLab
from selfattn.labs.origins import OriginsLab
from selfattn.labs.scaling import ScalingLab

# Rows of one name and one text; letters in drawings; lines by their corners.
DRAWN = """(root) => {
  const seen = (e) => e.checkVisibility() && e.textContent;
  const rows = [...root.querySelectorAll("tbody tr")].filter(seen)
    .filter((row) => row.cells.length === 2)
    .map((row) => [...row.cells].map((cell) => cell.textContent));
  const pictures = [...root.querySelectorAll("figure")].map((figure) => ({
    caption: figure.querySelector("figcaption").textContent,
    ticks: [...figure.querySelectorAll(".lab-tick")].filter(seen)
      .map((tick) => [tick.textContent, Number(tick.getAttribute("x")),
        Number(tick.getAttribute("y"))]),
    lines: [...figure.querySelectorAll("polyline")].map((line) =>
      line.getAttribute("points").split(" ").filter(Boolean)
        .map((point) => point.split(",").map(Number))),
  }));
  return { rows: Object.fromEntries(rows), pictures };
}"""


@pytest.fixture
def drawn(page, site_url):
    """What a lab draws, with these settings in its link."""

    def read(stem, link="x=x"):
        folder = "efficient/" if stem == "flash" else ""
        page.goto(f"{site_url}book/{folder}{stem}.html#lab={stem}&{link}")
        page.locator(".lab-runs").wait_for()
        return page.locator(LAB).evaluate(DRAWN)

    return read


def three(x):
    """Three decimals, with a minus as it is printed."""
    return f"{x:.3f}".replace("-", "−")


def pair(point):
    """A point as the labs write it."""
    return f"({', '.join(map(three, point))})"


def of_scaling():
    row = ScalingLab().row()
    return {
        "typical size of a score": three(row.deviation),
        "largest weight": three(row.peak),
        f"entropy (at most {math.log(64):.3f})": three(row.entropy),
        "norm of the Jacobian": three(row.slope),
    }


def of_flash():
    now = FlashLab(read=2).state()
    return {
        "m, the largest score so far": f"{now.m:.1f}",
        "ℓ, the total": three(now.total),
        "o, the sum of values": pair(now.summed),
        "o / ℓ, the output so far": pair(now.output),
    }


def of_models():
    now = ModelsLab().seen()
    return {
        "letters left": str(now.kept),
        "probability cut off": three(now.lost),
        "perplexity": f"{now.perplexity:.2f}",
    }


def of_origins():
    now = OriginsLab().seen()
    return {
        "hops on the way": str(now.hops),
        "steps that wait, for all 12 tokens": str(now.steps),
        "tokens heard by then": str(now.heard),
        "weights of one layer, 64 features": f"{now.parameters:,}",
        "operations of one layer": f"{now.operations:,}",
    }


def of_multihead():
    lab = MultiheadLab(n_kv_heads=2)
    biases = lab.d_model * 2 + lab.d_model // lab.n_heads * 2 * 2
    shapes = {name: str(shape) for name, shape in lab.shapes().items()}
    del shapes["weights"]  # their number is in a row of the same name
    return shapes | {
        "parameters": f"{lab.parameters():,}",
        "with biases": f"{lab.parameters() + biases:,}",
        "bytes of the cache": f"{lab.cache_bytes():,}",
        "the same, unshared": f"{lab.cache_bytes() * 2:,}",
    }


@pytest.mark.parametrize(
    ("stem", "link", "expected"),
    [
        ("scaling", "x=x", of_scaling),
        ("flash", "read=2", of_flash),
        ("models", "x=x", of_models),
        ("origins", "x=x", of_origins),
        ("multihead", "n_kv_heads=2", of_multihead),
    ],
)
def test_a_row_has_the_number_that_it_names(drawn, stem, link, expected):
    rows, wanted = drawn(stem, link)["rows"], expected()
    assert {name: rows.get(name) for name in wanted} == wanted


def scale(ticks, axis, low, high):
    """From places to numbers, as a reader takes it from two ticks."""
    places = {text: tick[axis] for text, *tick in ticks}
    (one, a), (two, b) = low, high
    unit = (b - a) / (places[two] - places[one])
    return lambda place: a + (place - places[one]) * unit


def test_lines_over_depth_are_where_the_ticks_say(drawn):
    trace = LayersLab(norm="pre", residual=True).trace()
    shown = drawn("layers", "norm=pre&residual=true")["pictures"]
    for picture, title, names in zip(
        shown,
        ("Tokens: size", "Gradients: at the input"),
        (("size", "distinct"), ("path", "query")),
        strict=True,
    ):
        assert picture["caption"].startswith(f"{title} (whole line), ")
        read = scale(picture["ticks"], 1, ("10⁻⁴", -4), ("10⁴", 4))
        for text, power in (("≤10⁻¹²", -12), ("10⁻⁸", -8), ("1", 0)):
            (place,) = [y for t, _, y in picture["ticks"] if t == text]
            assert read(place) == pytest.approx(power)
        for line, name in zip(picture["lines"], names, strict=True):
            powers = [math.log10(max(x, LEAST)) for x in getattr(trace, name)]
            # The letters' feet are three units below what they name.
            assert [read(y + 3) for _, y in line] == pytest.approx(
                powers, abs=0.01
            )


def test_lines_over_length_are_where_the_ticks_say(drawn):
    (picture,) = drawn("cost")["pictures"]
    down = scale(picture["ticks"], 1, ("1 MB", 6), ("1 TB", 12))
    across = scale(picture["ticks"], 0, ("128", 7), ("1,048,576", 20))
    ticks = {text: place for text, *place in picture["ticks"]}
    assert down(ticks["1 GB"][1]) == pytest.approx(9)
    for n in (2048, 16384):
        assert across(ticks[f"{n:,}"][0]) == pytest.approx(math.log2(n))
    start = CostLab().values()
    for mechanism, line in zip(MECHANISMS, picture["lines"], strict=True):
        for n, (x, y) in zip(LENGTHS, line, strict=True):
            made = plan(**(start | {"mechanism": mechanism, "n": n}))
            assert across(x) == pytest.approx(math.log2(n), abs=0.01)
            assert down(y) == pytest.approx(math.log10(made.bytes), abs=0.01)


@pytest.mark.parametrize("stem", ["dot_product", "intro"])
def test_a_planes_ticks_are_at_their_numbers(drawn, stem):
    planes = [p for p in drawn(stem)["pictures"] if p["ticks"]]
    unit = 240 / 7.2
    wanted = [
        pytest.approx(place)
        for x in (-3, 3)
        for place in (
            ((x + 3.6) * unit + 3, 130),
            (123, (3.6 - x) * unit + 10),
        )
    ]
    for plane in planes:
        assert [place for _, *place in plane["ticks"]] == wanted
        assert [t for t, *_ in plane["ticks"]] == ["−3", "−3", "3", "3"]
    assert len(planes) == 2


def test_bars_are_named_by_what_is_under_them(drawn):
    scores, weights = drawn("scaling")["pictures"]
    places = {t: 22 * x / 240 for t, x, _ in scores["ticks"]}
    named = {t.replace("−", "-"): x for t, x in places.items()}
    for score in (-5, 0, 5):
        assert named[str(score)] == pytest.approx(score + 11)
    assert [t for t, *_ in scores["ticks"]][:: len(scores["ticks"]) - 1] == [
        "< −10",
        "> 10",
    ]
    for t, x, _ in weights["ticks"]:
        assert 64 * x / 240 == pytest.approx(int(re.sub(r"\D", "", t)) - 0.5)
    (keys,) = drawn("flash")["pictures"]
    for t, x, _ in keys["ticks"]:
        assert x == (int(t) - 0.5) * 40


# Pairs of words or numbers of one plane that hide a part of each other, or
# are one word to the eye, and words that leave their plane; of the height a
# pixel is forgiven, as is a letter's space.
HIDDEN = """(root) => [...root.querySelectorAll(".lab-plane svg")]
  .flatMap((plane) => {
    const sheet = plane.getBoundingClientRect();
    const texts = [...plane.querySelectorAll("text")]
      .filter((e) => !e.closest(".lab-absent") && e.textContent)
      .map((e) => [e.textContent, e.getBoundingClientRect()])
      .map(([text, { left, right, top, bottom, height }]) => [text, { left,
        right, top: top + 0.15 * height, bottom: bottom - 0.15 * height }]);
    const meet = (a, b) => a.left < b.right + 2 && b.left < a.right + 2
      && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const pairs = texts.flatMap(([a, one], i) => texts.slice(i + 1)
      .filter(([, other]) => meet(one, other)).map(([b]) => `${a} on ${b}`));
    return [...pairs, ...texts.filter(([, at]) => at.left < sheet.left - 1
      || at.right > sheet.right + 1).map(([a]) => `${a} outside`)];
  })"""


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize(
    ("stem", "links"),
    [
        (
            "intro",
            [
                "x=x",
                "words=listen+to+silent&asks=1",
                "words=one+two+three+four+five",
                "words=we+saw+a+bird+that+could+not+fly&asks=3",
            ],
        ),
        ("dot_product", ["x=x", "n=6", "n=6&query=4", "q=2:0:0&n=4"]),
        ("efficient/performer", ["x=x", "angle=0", "length=1"]),
    ],
)
def test_no_word_of_a_plane_hides_another(
    site_url, new_page, width, stem, links
):
    """On a phone "cat" stood on a -3, then beside it, as if it were "-3cat";
    "sat asks" stood on its own arrow.
    """
    page = new_page(viewport={"width": width, "height": 800})
    found = {}
    for link in links:
        name = stem.rpartition("/")[2]
        page.goto("about:blank")
        page.goto(f"{site_url}book/{stem}.html#lab={name}&{link}")
        page.locator(".lab-runs").wait_for()
        page.evaluate("() => new Promise(requestAnimationFrame)")
        found[link] = page.locator(LAB).evaluate(HIDDEN)
    assert {link: pairs for link, pairs in found.items() if pairs} == {}
