"""The lab on masks: its tables are the package's, and its calls run."""

import itertools
import random
import re
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from selfattn import MultiHeadAttention, attention, attention_weights
from selfattn.labs.machinery.settings import SettingError
from selfattn.labs.masks import LONGEST, MasksLab, keep, vectors

START = MasksLab().values()
KINDS = ["none", "causal", "prefix", "window", "block", "documents"]

# float64 carries 2.2e-16; two products, an exponential and a sum of at most
# 128 lose less than a thousand times that.
CLOSE = 1e-13


def at(**changed):
    """All settings, with those that another bounds lowered to fit."""
    values = START | changed
    for name, of, plus in (
        ("size", "n", 0),
        ("padded", "n", 0),
        ("i", "n_q", -1),
        ("j", "n", -1),
    ):
        values[name] = min(values[name], values[of] + plus)
    return values


def drawn(chance, n_q, n, count):
    cells = {
        (chance.randrange(n_q), chance.randrange(n)) for _ in range(count)
    }
    return [list(cell) for cell in sorted(cells)]


def any_setting(chance, longest=LONGEST):
    n = round(2 * (longest / 2) ** chance.random())
    n_q = chance.choice([n, round(longest ** chance.random())])
    flipped = drawn(chance, n_q, n, chance.choice([0, 0, 1, 9]))
    return at(
        kind=chance.choice(KINDS),
        n=n,
        n_q=n_q,
        size=chance.randint(1, n),
        causal=chance.random() < 0.5,
        padded=chance.choice([0, chance.randint(0, n)]),
        left=chance.random() < 0.5,
        alignment=chance.choice(["last", "first"]),
        flipped=flipped,
    )


def every_value_and_pair():
    """Every value of each control, every pair of choices, the extremes."""
    for n in range(2, LONGEST + 1):
        yield at(n=n, n_q=n)
    for n_q in range(1, LONGEST + 1):
        yield at(n_q=n_q, kind="prefix")
    for size in range(1, LONGEST + 1):
        kind = KINDS[2 + size % 4]
        yield at(kind=kind, size=size, n=LONGEST, n_q=3)
    for padded in range(LONGEST + 1):
        yield at(padded=padded, n=LONGEST, n_q=3, left=padded % 2 == 0)
    for kind, causal, left, alignment in itertools.product(
        KINDS, [False, True], [False, True], ["last", "first"]
    ):
        for n, n_q in ((2, 1), (2, 2), (7, 5), (5, 7), (5, 13)):
            for size, padded, cells in itertools.product(
                (1, 3, n), (0, 2), ([], [[0, 0], [0, 1], [4, 2]])
            ):
                yield at(
                    kind=kind,
                    causal=causal,
                    left=left,
                    alignment=alignment,
                    n=n,
                    n_q=n_q,
                    size=size,
                    padded=padded,
                    flipped=cells,
                )
    for n, n_q in ((LONGEST, LONGEST), (LONGEST, 1), (2, LONGEST)):
        for kind in KINDS:
            yield at(kind=kind, n=n, n_q=n_q, alignment="first")


def compare(results, many):
    """Raise AssertionError unless the page's tables are the package's."""
    for values, theirs in zip(many, results, strict=True):
        table = keep_of(values)
        assert theirs["keep"] == table.tolist(), values
        q, k = vectors(values["n_q"], values["n"])
        weights = torch.tensor(theirs["weights"], dtype=torch.float64)
        expected = attention_weights(q, k, mask=table)
        assert_close(weights, expected, atol=CLOSE, rtol=CLOSE)
        empty = ~table.any(dim=-1)
        assert theirs["empty"] == empty.nonzero().flatten().tolist()


def keep_of(values):
    """The package's mask; a lab gives the same, and takes longer."""
    return keep(**{x: values[x] for x in values.keys() - {"i", "j"}})


def test_it_computes_as_the_package(in_node, unchecked):
    chance = random.Random(0)
    many = [
        *every_value_and_pair(),
        *(any_setting(chance) for _ in range(2000)),
    ]
    compare(in_node("masks", [["compute", values] for values in many]), many)


def test_the_lab_is_what_its_functions_say():
    chance = random.Random(2)
    for values in (any_setting(chance, 24) for _ in range(20)):
        lab = MasksLab(**values)
        assert torch.equal(lab.keep(), keep_of(values))
        q, k = vectors(lab.n_q, lab.n)
        expected = attention_weights(q, k, mask=lab.keep())
        assert torch.equal(lab.weights(), expected)


def test_one_wrong_comparison_is_seen(planted):
    chance = random.Random(0)
    many = [any_setting(chance, 24) for _ in range(60)]
    for right, wrong in (
        ("causal: () => (i, j) => j <= i,", "causal: () => (i, j) => j < i,"),
        ("Math.abs(i - j) < size", "Math.abs(i - j) <= size"),
        ("|| j < size", "|| j <= size"),
        ("[0, n - padded]", "[0, n - padded + 1]"),
        (
            'alignment === "first" ? 0 : n - n_q;\n  const [from',
            "0;\n  const [from",
        ),
        ("score / Math.SQRT2", "score / 2"),
    ):
        results = planted("masks", right, wrong, many)
        with pytest.raises(AssertionError):
            compare(results, many)


# --- The calls --------------------------------------------------------------


def some_calls():
    """Settings with every branch of the calls in them."""
    chance = random.Random(1)
    yield from (
        at(kind=kind, n=n, n_q=n_q, alignment=alignment, **more)
        for kind in KINDS
        for n, n_q in ((7, 7), (7, 5), (5, 7))
        for alignment in ("last", "first")
        for more in (
            {},
            {"causal": True},
            {"padded": 2},
            {"padded": 2, "left": True, "flipped": [[0, 1], [4, 2], [4, 3]]},
            {"flipped": [[0, 1], [4, 2], [4, 3]]},
        )
    )
    yield from (any_setting(chance, 24) for _ in range(60))


@pytest.fixture(scope="module")
def emitted(in_node):
    """Settings, and the four calls that the page writes for each."""
    many = list(some_calls())
    results = in_node("masks", [["compute", values] for values in many])
    return [
        (values, result["calls"])
        for values, result in zip(many, results, strict=True)
    ]


def run(text, **given):
    """What a call makes of its inputs; it brings its own imports."""
    exec(compile(text, "call", "exec"), given)
    return given["output"]


def inputs(values, width=4):
    """Queries, keys and values of two sequences and three heads."""
    torch.manual_seed(0)
    n_q, n = values["n_q"], values["n"]
    return (
        torch.randn(2, 3, n_q, width),
        torch.randn(2, 3, n, width),
        torch.randn(2, 3, n, width),
    )


@pytest.mark.parametrize("which", ["ours", "sdpa"])
def test_the_call_gives_attention_with_this_mask(emitted, which):
    for values, calls in emitted:
        q, k, v = inputs(values)
        expected = attention(q, k, v, mask=keep_of(values))
        output = run(calls[which], q=q, k=k, v=v)
        assert_close(output, expected, msg=lambda m, t=calls: t[which] + m)


def test_the_call_of_flex_attention_gives_the_same(emitted):
    with warnings.catch_warnings():
        # Not compiled, it says that it is slow. Slow is right here.
        warnings.filterwarnings("ignore", "flex_attention called without")
        for values, calls in emitted[::19]:  # it is slow
            q, k, v = inputs(values, width=16)
            expected = attention(q, k, v, mask=keep_of(values))
            assert_close(run(calls["flex"], q=q, k=k, v=v), expected)


def test_the_call_of_the_layer_gives_the_same(emitted):
    layer = nn.MultiheadAttention(6, 2, batch_first=True)
    ours = MultiHeadAttention.from_torch(layer)
    for values, calls in emitted:
        x = torch.randn(3, values["n_q"], 6)
        context = torch.randn(3, values["n"], 6)
        if values["n"] == values["n_q"]:
            context = x
        expected = ours(x, context, mask=keep_of(values))
        output = run(calls["layer"], layer=layer, x=x, context=context)
        assert_close(output, expected, msg=lambda m, t=calls: t["layer"] + m)


def test_the_layer_is_warned_of_exactly_where_it_gives_nan(emitted):
    layer = nn.MultiheadAttention(6, 2, batch_first=True).eval()
    seen = set()
    for values, calls in emitted:
        text = calls["layer"].replace(
            "need_weights=False", "need_weights=True"
        )
        x = torch.randn(3, values["n_q"], 6)
        context = torch.randn(3, values["n"], 6)
        with torch.no_grad():
            nan = run(text, layer=layer, x=x, context=context).isnan().any()
        assert ("NaN" in text) == nan.item()
        seen.add(nan.item())
    assert seen == {True, False}


def test_a_call_for_nothing_special_is_short(in_node):
    many = [at(), at(kind="none"), at(n_q=2), at(n_q=2, alignment="first")]
    found = in_node("masks", [["compute", values] for values in many])
    causal, none, last, first = (result["calls"] for result in found)
    assert "causal=True" in causal["ours"] and "mask=" not in causal["ours"]
    assert "is_causal=True" in causal["sdpa"]
    assert "mask" not in none["ours"] + none["sdpa"] + none["layer"]
    assert "causal=True" in last["ours"] and "attn_mask" in last["sdpa"]
    assert "mask=keep" in first["ours"] and "is_causal=True" in first["sdpa"]


# --- Settings ---------------------------------------------------------------


@st.composite
def cells(draw):
    number = st.integers(0, LONGEST - 1)
    some = draw(st.sets(st.tuples(number, number), max_size=20))
    return [list(cell) for cell in sorted(some)]


@settings(max_examples=5)
@given(many=st.lists(cells(), min_size=10, max_size=20))
def test_a_link_brings_a_drawing_back(assert_links_bring_back, many):
    drawn = [at(n=LONGEST, n_q=LONGEST, flipped=one) for one in many]
    assert_links_bring_back(MasksLab(), drawn)


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("flipped=1.2,0.3", {"flipped": [[0, 3], [1, 2]]}, ""),
        ("flipped=1.2,1.2", {"flipped": [[1, 2]]}, ""),
        ("flipped=1.200,x,3.4", {"flipped": [[3, 4]]}, "2 of those"),
        ("flipped=", {}, "1 of those"),
        ("flipped=1.-2", {}, "1 of those"),
        ("n=1", {"n": 2, "size": 2}, "n must lie between 2 and 128"),
        ("kind=diagonal", {}, "kind must be one of none, causal"),
        ("left=perhaps", {}, "left must be true or false"),
    ],
)
def test_a_bad_link_is_mended_and_said(
    assert_link_is_mended, link, changed, complaint
):
    assert_link_is_mended(MasksLab(), link, changed, complaint)


@pytest.mark.parametrize(
    "flipped",
    [[[0, 128]], [[-1, 0]], [[i, j] for i in range(17) for j in range(17)]],
)
def test_cells_that_cannot_be_are_refused(flipped):
    with pytest.raises(SettingError, match="at most 256 cells"):
        MasksLab(flipped=flipped)


def test_cells_are_kept_in_order_and_once():
    assert MasksLab(flipped=[[3, 1], [0, 2], [3, 1]]).flipped == [
        [0, 2],
        [3, 1],
    ]


def test_the_repr_is_the_call_that_makes_it():
    assert repr(MasksLab()) == "MasksLab()"
    some = MasksLab(kind="window", n=9, n_q=4, flipped=[[1, 2]])
    assert eval(repr(some)).values() == some.values()


def test_the_picture_and_its_words_are_of_this_setting():
    some = MasksLab(padded=2, left=True)
    assert "21 of 64 pairs are allowed, and 2 queries" in some.describe()
    mask, weights = some.figure().axes
    shown = torch.tensor(mask.images[0].get_array().tolist())
    assert torch.equal(shown.bool(), some.keep())
    shades = torch.tensor(weights.images[0].get_array().tolist())
    assert_close(shades.double(), some.weights())


def test_the_start_is_the_running_example():
    weights = MasksLab(n=3, n_q=3).weights()
    by_hand = [[1, 0, 0], [0.804, 0.196, 0], [0.306, 0.620, 0.074]]
    assert_close(weights, torch.tensor(by_hand).double(), atol=5e-4, rtol=0)


def test_no_number_of_the_page_is_left_in_a_call_by_accident(emitted):
    for values, calls in emitted:
        numbers = {int(x) for x in re.findall(r"\b\d+\b", calls["sdpa"])}
        n, n_q = values["n"], values["n_q"]
        assert max(numbers, default=0) <= max(n, n_q)
