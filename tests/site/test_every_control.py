"""Every control of every lab: a link, keys and mouse lead to one picture.

The link says what Python's lab is set to, once the setting has been changed
there. Its words are written here once more, so that no two can be exchanged.
Native lists open outside of the page, where no pointer of a test reaches: from
those an option is chosen by its words.
"""

import importlib
import json
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from guards import site_pages
from guards.site_pages import control

from selfattn import labs
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Cells, Choice, Flag, Points, Words

MASKS = {
    "none": "none",
    "causal": "causal: no later word",
    "padding": "padding: the last words are filling",
    "window": "window: near words only",
}
NORMS = {
    "none": "none",
    "pre": "pre: before each sublayer",
    "post": "post: after each sum",
}
# What stands beside each control, and the options of each list in words.
WORDS = {
    "intro": {
        "words": "Your words, up to eight",
        "causal": "Causal: no later word",
        "asks": "asks",
        "q": "Query of sat",
        "k": "Key of cat",
    },
    "origins": {
        "architecture": {
            "Connected by": "",
            "recurrent": "recurrence: one after the other",
            "convolution": "convolution: neighbours",
            "dilated": "dilated: ever further apart",
            "attention": "attention: everyone before",
            "dense": "a dense layer: everyone",
        },
        "kernel": "Kernel",
        "n": "Tokens n",
        "output": "Output at",
        "token": "Token at",
    },
    "dot_product": {
        "n": "Sequence length n",
        "d_k": "Features dk",
        "mask": {"Mask": "", **MASKS},
        "length": "Real words",
        "window": "Window, itself counted",
        "query": "Which word asks?",
        "q": "Query of sat",
        "k": "Key of cat",
    },
    "scaling": {
        "d_k": "Features dk",
        "divisor": {
            "Divide the scores by": "",
            "none": "nothing",
            "root": "√dₖ",
            "whole": "dₖ",
        },
        "query": "Query",
    },
    "masks": {
        "kind": {
            "Mask": "",
            "none": "none",
            "causal": "causal: no later key",
            "prefix": "prefix: its keys for all, then causal",
            "window": "window: near keys only",
            "block": "blocks that see themselves",
            "documents": "documents that see themselves",
        },
        "causal": "and causal",
        "size": "Window, itself counted",
        "n": "Keys n",
        "n_q": "Queries",
        "alignment": {
            "Where the queries sit": "",
            "last": "the last on the last key",
            "first": "the first on the first key",
        },
        "padded": "Padding",
        "left": "on the left",
        "i": "Query i",
        "j": "Key j",
        "flipped": "Change this pair",
    },
    "multihead": {
        "d_model": "Features dmodel",
        "n_heads": "Query heads",
        "n_kv_heads": "Key and value heads",
        "n": "Words n",
        "head": "Whose numbers?",
    },
    "positions": {
        "encoding": {
            "Encoding": "",
            "sinusoidal": "sinusoidal: a table to add",
            "rope": "RoPE: queries and keys turn",
            "alibi": "ALiBi: distance costs",
        },
        "n": "Positions n",
        "d": "Features d",
        "base": "Base",
        "heads": "Heads",
        "query": "Query at",
        "key": "Key at",
        "turn": "Key turned by",
    },
    "layers": {
        "depth": "Blocks",
        "norm": {"Norm": "", **NORMS},
        "residual": "residual path",
        "feed_forward": "feed-forward network",
        "draw": "Weights, draw",
    },
    "blocks": {
        "norm": {"Norm": "", **NORMS},
        "feed_forward": "feed-forward network",
        "cross": "cross-attention",
        "causal": "causal mask in the decoder",
        "mask_source": "padding hidden in the encoder",
        "mask_memory": "padding hidden in cross-attention",
        "m": "Source tokens",
        "padded": "of these padding",
        "n": "Target tokens",
        "d_model": "Features dmodel",
        "n_heads": "Heads",
    },
    "models": {
        "start": {
            "Written so far": "",
            **{
                start: start.replace(" ", "␣")
                for start in (
                    "the ",
                    "the c",
                    "the cat ",
                    "a fox s",
                    "a small ",
                    "the owl sees a ",
                    "the old dog. ",
                )
            },
        },
        "temperature": "Temperature",
        "top_k": "Top-k",
        "top_p": "Top-p",
    },
    "looking_inside": {
        "words": "Text, without its first full stop",
        "head": "Whose weights?",
        **{
            f"head_{layer}_{head}": f"{layer}.{head}"
            for layer in (1, 2)
            for head in (1, 2, 3, 4)
        },
    },
    "cost": {
        "n": "Tokens n",
        "d_model": "Features dmodel",
        "n_heads": "Heads",
        "batch": "Batch",
        "dtype": {
            "Numbers": "",
            "float32": "float32: 4 bytes",
            "bfloat16": "bfloat16: 2 bytes",
        },
        "mechanism": {
            "Mechanism": "",
            "naive": "naive: two tables",
            "fused": "fused kernel",
            "window": "window of 256",
            "linear": "linear attention",
        },
    },
    "doctor": {
        "mistake": {"Mistake": ""},  # and its own options, as they are
        "mask": {
            "Mask": "",
            "none": "none",
            "causal": "causal",
            "padding": "the last key is padding",
        },
        "n_q": "Queries nq",
        "n_k": "Keys nk",
        "d_k": "Width of keys dk",
        "d_v": "Width of values dv",
    },
    "overview": {
        "n": "Tokens n",
        "memory": "Bytes of a head",
        "inputs": {
            "Errors on": "",
            "normal": "normal: weight everywhere",
            "far": "far: weight on one, anywhere",
            "near": "near: weight on one, close by",
            "first layer": "a trained model’s first layer",
            "last layer": "a trained model’s last layer",
        },
        "error": {"Largest error": ""},  # and its own options, as they are
        "causal": "causal",
        "mask": "a mask of my own",
    },
    "flash": {
        "scores": {"Scores": ""},
        "tiles": "Tiles",
        "read": "Tiles read",
        "position": "Query at key",
    },
    "window": {
        "window": "Window",
        "layers": "Layers",
        "global_tokens": "Global tokens",
        "token": "Token",
        "causal": "causal",
        "full_last": "last layer without a window",
    },
    "sparse": {
        "pattern": {"Pattern": ""},
        "stride": "Stride",
        "query": "Query",
        "key": "Key",
        "causal": "causal",
    },
    "linear": {
        "tokens": {"Tokens": ""},  # and its own options, as they are
        "read": "Tokens written",
        "gate": "Left at each token",
        "delta": "delta rule",
        "ask": "Ask with the key of token",
    },
    "performer": {
        "length": "Length of both",
        "angle": "Angle",
        "m": "Directions",
        "kind": {
            "Features": "",
            "positive": "positive",
            "trigonometric": "trigonometric",
        },
        "orthogonal": "in pairs at right angles",
        "draw": "Draw",
    },
    "swin": {
        "window": "Window",
        "layers": "Layers",
        "shifted": "every second layer shifted",
        "masked": "corners masked",
        "row": "Row",
        "column": "Column",
    },
    "reformer": {
        "buckets": "Buckets",
        "rounds": "Rounds",
        "draw": "Draw",
        "chunk": "Chunk",
        "token": "Token",
        "last": "Token 16 points at",
        "causal": "causal",
    },
    "linformer": {
        "text": {
            "Text": "",
            "any order": "any order",
            "neighbours alike": "neighbours alike",
        },
        "mixtures": "Mixtures",
        "kind": {"Kind": "", "means": "means", "random": "random"},
        "draw": "Draw",
        "token": "Token",
        "length": "Length of queries",
        "last": "Token 16 points at",
    },
    "devices": {
        "ranks": "Ranks",
        "n": "Tokens n",
        "n_heads": "Heads",
        "d_head": "Features of a head",
        "link": {
            "Link": "",
            "NVLink": "NVLink: 450 GB/s each way",
            "InfiniBand": "InfiniBand: 50 GB/s each way",
            "Ethernet": "Ethernet: 1.25 GB/s each way",
        },
    },
}
IN_EFFICIENT = (
    "overview",
    "flash",
    "window",
    "sparse",
    "swin",
    "reformer",
    "linformer",
    "linear",
    "performer",
)
# Where some controls are to be seen.
BEFORE = {
    ("dot_product", "length"): {"mask": "padding"},
    ("dot_product", "window"): {"mask": "window"},
    ("origins", "kernel"): {"architecture": "convolution"},
    ("masks", "size"): {"kind": "window"},
    ("masks", "causal"): {"kind": "window"},
    ("masks", "alignment"): {"n_q": 5},
    ("masks", "left"): {"padded": 2},
    ("masks", "flipped"): {"i": 0, "j": 2},
    ("linformer", "draw"): {"kind": "random"},
    ("positions", "heads"): {"encoding": "alibi"},
    ("positions", "turn"): {"encoding": "rope"},
}
TYPED = {"intro": "two more words", "looking_inside": "the cat did not"}
CASES = [(stem, name) for stem, names in WORDS.items() for name in names]

# All that is to be seen of a lab but for the line that follows the pointer,
# once it has been the same for a while.
FACE = """async (root) => {
  const passed = ".lab-detail, .lab-spoken, [role=alert], .lab-asked";
  const face = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (!(node instanceof Element) || node.matches(passed)) return "";
    if (node.tagName === "SELECT") return `<select ${node.value}>`;
    if (!node.checkVisibility()) return "";
    const told = [...node.attributes]
      .filter(({ name, value }) =>
        value && (node !== root || name !== "style"))
      .map(({ name, value }) => `${name}=${value}`).sort();
    if (node.tagName === "CANVAS") told.push(node.toDataURL());
    if (node.tagName === "INPUT")
      told.push(node.type === "text" || node.type === "range"
        ? node.value : node.checked);
    return `<${node.tagName} ${told.join(" ")}>`
      + [...node.childNodes].map(face).join("");
  };
  const frame = () => new Promise(requestAnimationFrame);
  for (let before = "", now = face(root); ; now = face(root)) {
    if (now === before) return now;
    before = now;
    for (let frames = 0; frames < 3; frames += 1) await frame();
  }
}"""
# An address changes only if it is another one: no two have one number.
GO = """(hash) => new Promise((resolve) => {
  window.steps = (window.steps ?? 0) + 1;
  addEventListener("hashchange", () => requestAnimationFrame(resolve),
    { once: true });
  location.hash = `${hash}&step=${window.steps}`;
})"""


# What stands beside a control, and what a list offers.
SAID = """(node) => {
  const group = node.type === "radio" && node.closest("fieldset");
  const label = node.closest("label");
  const span = node.type === "checkbox" ? label : label.querySelector("span");
  const said = group ? group.querySelector("legend") : span;
  const offers = [...node.options ?? []].map((option) => option.textContent);
  return [said.textContent.trim(), offers];
}"""


def said_of(lab, mine, name):
    """The words beside a control, as they are and as they should be."""
    words = WORDS[mine.stem][name]
    node = control(lab, name)
    if isinstance(mine.settings()[name], Points | Cells):
        return "", ""  # found by their names
    label, *_ = words if isinstance(words, dict) else [words]
    options = mine.settings()[name].options if label != words else []
    named = [words.get(option, option) for option in options]
    return node.first.evaluate(SAID), [label, named]


def kind_of(stem):
    """The lab of this name, as Python has it."""
    folder = importlib.import_module(f"selfattn.labs.{stem}")
    found = [x for x in vars(folder).values() if isinstance(x, type)]
    (kind,) = [
        x
        for x in found
        if issubclass(x, Lab) and getattr(x, "stem", "") == stem
    ]
    return kind


def link(mine):
    """The address of these settings, each of them said."""
    parts = [f"#lab={mine.stem}"]
    for name, setting in mine.settings().items():
        value = getattr(mine, name)
        if isinstance(setting, Cells):
            text = ",".join(f"{i}.{j}" for i, j in value)
        elif isinstance(setting, Points):
            start = getattr(type(mine)(), name)
            text = ",".join(
                f"{i}:{x}:{y}"
                for i, (x, y) in enumerate(value)
                if (x, y) != tuple(start[i])
            )
        else:
            text = str(value).lower() if value in (True, False) else str(value)
            text = quote_plus(text)
        parts += [f"{name}={text}"] if text else []
    return "&".join(parts)


def lead(lab, mine):
    """Follow the link to these settings, and see them drawn."""
    lab.page.evaluate(GO, link(mine))


def face(lab, mine):
    """What the lab shows at these settings, which are reached by a link."""
    lead(lab, mine)
    return lab.evaluate(FACE)


def prepared(stem, name):
    """Python's lab, set so that this control is to be seen."""
    return kind_of(stem)(**BEFORE.get((stem, name), {}))


def extremes(mine, name):
    """The ends of a slider, as this setting has them now."""
    setting = mine.settings()[name]
    if isinstance(setting, Choice):
        return setting.allowed(mine)[0], setting.allowed(mine)[-1]
    high = getattr(setting, "highest", lambda lab: setting.high)(mine)
    return setting.low, high


# What goes along with a slider as long as it is equal to it.
ALONG = {("masks", "n"): "n_q", ("multihead", "n_heads"): "n_kv_heads"}


def with_set(mine, name, value):
    """Another lab like this one, in which one setting is another."""
    other = type(mine)(**mine.values())
    setattr(other, name, value)
    along = ALONG.get((mine.stem, name), name)
    if getattr(mine, along) == getattr(mine, name):
        setattr(other, along, value)
    return other


def label_of(node):
    """The words of a control, which a reader may click as well."""
    return node.locator("xpath=ancestor::label")


def slid(lab, mine, name):
    """A slider to its ends: by Home and End, and by a click there."""
    node = control(lab, name)
    least, most = extremes(mine, name)
    width = node.bounding_box()["width"]
    for value, key, x in ((least, "Home", 2), (most, "End", width - 3)):
        if value != getattr(mine, name):
            yield (
                with_set(mine, name, value),
                lambda key=key: node.press(key),
                lambda x=x: node.click(position={"x": x, "y": 8}),
            )


def listed(lab, mine, name):
    """Each option of a list: by arrow keys, and by what it is called."""
    node, options = control(lab, name), mine.settings()[name].options
    words = WORDS[mine.stem][name]
    for place, option in enumerate(options):
        if option == getattr(mine, name):
            continue

        def by_keys(place=place):
            node.press("Home")
            for _ in range(place):
                node.press("ArrowDown")

        called = words.get(option, option)
        yield (
            with_set(mine, name, option),
            by_keys,
            lambda called=called: node.select_option(label=called),
        )


def turned(lab, mine, name):
    """A switch: by the space bar, and by a click on its words."""
    node = control(lab, name)
    other = with_set(mine, name, not getattr(mine, name))
    yield other, lambda: node.press("Space"), label_of(node).click


def chosen(lab, mine, name):
    """One of several: by an arrow key, and by a click on the next."""
    nodes, now = control(lab, name), getattr(mine, name)
    key, value = ("ArrowLeft", now - 1) if now else ("ArrowRight", now + 1)
    yield (
        with_set(mine, name, value),
        lambda: nodes.nth(now).press(key),
        label_of(nodes.nth(value)).click,
    )


def typed(lab, mine, name):
    """Words: in place of those that are marked by keys, or by a click."""
    node, text = control(lab, name), TYPED[mine.stem]

    def by_keys():
        node.press("Control+a")
        lab.page.keyboard.type(text)

    def by_mouse():
        node.click(click_count=3)
        lab.page.keyboard.type(text)

    first = with_set(mine, name, text[0])  # of one word, which asks
    yield with_set(first, name, text), by_keys, by_mouse


def dragged(lab, mine, name):
    """A point, one to the right and one up: by ten steps, or dragged."""
    node = lab.get_by_role("slider", name=WORDS[mine.stem][name]).first
    place = mine.query if name == "q" and mine.stem == "dot_product" else 1
    if name == "q" and mine.stem == "intro":
        place = mine.asks
    points = [list(point) for point in getattr(mine, name)]
    points[place] = [points[place][0] + 1, points[place][1] - 1]

    def by_keys():
        for key in ("ArrowRight", "ArrowDown"):
            node.press(f"Shift+{key}")
            node.press(f"Shift+{key}")

    def by_mouse():
        plane = lab.locator(".lab-plane svg:has([role=slider])").first
        unit = plane.bounding_box()["width"] / 7.2
        node.scroll_into_view_if_needed()
        box = node.locator(".lab-reach").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        mouse = lab.page.mouse
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + unit, y + unit, steps=3)
        mouse.up()

    yield with_set(mine, name, points), by_keys, by_mouse


def changed(lab, mine, name):
    """A cell of a mask: by the button for it, and by a click on it."""
    button = lab.get_by_role("button", name=WORDS[mine.stem][name])
    canvas = lab.locator("canvas").first

    def by_mouse():
        side = canvas.bounding_box()["width"] / mine.n
        y, x = ((cell + 0.5) * side for cell in (mine.i, mine.j))
        canvas.click(position={"x": x, "y": y})

    cell = with_set(mine, name, [[mine.i, mine.j]])
    yield cell, lambda: button.press("Enter"), by_mouse


def ways(lab, mine, name):
    """Settings that a control can make, each by keys and by mouse."""
    setting = mine.settings()[name]
    nodes = control(lab, name)
    if isinstance(setting, Points):
        return dragged(lab, mine, name)
    if isinstance(setting, Cells):
        return changed(lab, mine, name)
    if isinstance(setting, Flag):
        return turned(lab, mine, name)
    if isinstance(setting, Words):
        return typed(lab, mine, name)
    if nodes.count() > 1:
        return chosen(lab, mine, name)
    kind = nodes.get_attribute("type")
    return (slid if kind == "range" else listed)(lab, mine, name)


@pytest.fixture
def opened(open_lab, site_url):
    """Open the page of the lab of this name."""

    def start(stem):
        folder = "efficient/" if stem in IN_EFFICIENT else ""
        address = f"{site_url}book/{folder}{stem}.html"
        return open_lab(f"#lab={stem}&x=x", address=address)

    return start


def unlike(lab, stem):
    """Settings to which a link, keys and mouse do not all lead."""
    lab.page.set_default_timeout(20_000)
    wrong = []
    for name in WORDS[stem]:
        mine = prepared(stem, name)
        before = face(lab, mine)
        said, wanted = said_of(lab, mine, name)
        if said != wanted:
            wrong.append((name, said, wanted))
        for other, by_keys, by_mouse in ways(lab, mine, name):
            wanted = face(lab, other)
            shown = ["" if wanted != before else "as before"]
            for way in (by_keys, by_mouse):
                lead(lab, mine)
                way()
                lab.page.mouse.move(0, 0)
                shown.append(parting(lab.evaluate(FACE), wanted))
            if any(shown):
                wrong.append((name, getattr(other, name), shown))
    return wrong


def parting(shown, wanted):
    """Where two faces part, and what each has there; nothing, if nowhere."""
    if shown == wanted:
        return ""
    pairs = zip(shown, wanted, strict=False)
    place = len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])
    begin = max(0, place - 150)
    return f"{shown[begin : place + 60]!r}, not {wanted[place : place + 60]!r}"


def test_no_lab_is_left_out():
    scripts = {path.stem for path in Path(labs.__file__).parent.glob("*.js")}
    modules = {path.stem for path in Path(labs.__file__).parent.glob("*.py")}
    assert {*WORDS} == scripts & modules


def test_where_two_faces_part_is_told():
    """Which of a lab's hundreds of parts it was, nobody could say."""
    one, other = ("<p>" * 99 + x + "</p>" for x in ("one", "other"))
    assert parting(one, one) == ""
    told = parting(one, other)
    assert "<p>one</p>'" not in told.rpartition(", not ")[2]
    assert "<p>one</p>'" in told
    assert told.endswith(", not 'ther</p>'")


@pytest.mark.parametrize("stem", WORDS)
def test_link_keys_and_mouse_lead_to_one_picture(opened, stem):
    assert WORDS[stem].keys() == kind_of(stem).settings().keys()
    assert unlike(opened(stem), stem) == []


@pytest.mark.parametrize(
    ("was", "becomes", "red"),
    [
        (
            'root: "√dₖ", whole: "dₖ"',
            'root: "dₖ", whole: "√dₖ"',
            "divisor",
        ),
        ("stops ? stops[place] : place", "stops ? stops[place] : 0", "query"),
        (
            "[name]: options[Number(select",
            "[name]: options[2 - Number(select",
            "divisor",
        ),
        ('"query", "Query"', '"query", "Key"', "query"),
    ],
)
def test_a_control_that_leads_elsewhere_is_red(
    site, site_url, page, was, becomes, red
):
    script = (site / "_static/labs/scaling.js").read_text("utf-8")
    start, _, module = script.partition(" =\n")
    text = json.loads(module.rstrip(";\n"))
    assert text.count(was) == 1
    broken = f"{start} =\n{json.dumps(text.replace(was, becomes))};"
    page.route("**/labs/scaling.js*", lambda it: it.fulfill(body=broken))
    page.goto(f"{site_url}book/scaling.html#lab=scaling&x=x")
    found = unlike(page.locator(site_pages.LAB), "scaling")
    assert {name for name, *_ in found} == {red}
