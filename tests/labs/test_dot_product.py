"""The lab on queries, keys and values computes what the package computes."""

import itertools
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from page_numbers import assert_close

from selfattn.labs.dot_product import DotProductLab, steps, vectors
from selfattn.labs.machinery import esm

START = DotProductLab().values()


def compare_lab(in_node, all_values, text=None):
    """Raise AssertionError unless the lab's module computes as its class."""
    calls = [["compute", values] for values in all_values]
    for values, theirs in zip(
        all_values, in_node("dot_product", calls, text), strict=True
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


def test_it_computes_as_the_package_everywhere(in_node, unchecked):
    everywhere = list(every_setting())
    assert len(everywhere) == 5610  # at most 20,000, so all of them
    compare_lab(in_node, everywhere)


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
def test_dragged_vectors_compute_as_the_package(in_node, many):
    compare_lab(in_node, many)


@settings(max_examples=8, deadline=None)
@given(st.lists(any_values(), min_size=20, max_size=40))
def test_a_link_brings_every_setting_back(assert_links_bring_back, many):
    assert_links_bring_back(DotProductLab(), many)


def test_a_changed_sign_of_the_core_is_seen_here_too(in_node):
    text = esm.module_text("dot_product")
    planted = text.replace("sum += x[c] * y[c]", "sum -= x[c] * y[c]")
    assert planted != text
    sample = random.Random(0).sample(list(every_setting()), 20)
    with pytest.raises(AssertionError):
        compare_lab(in_node, sample, planted)


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
            for row in vectors(kind, START[kind], 64).tolist()
        ]
    )
    # 1,240 numbers of variance one: five standard errors.
    assert abs(many.mean()) < 5 / many.numel() ** 0.5
    assert abs(many.var() - 1) < 5 * (2 / many.numel()) ** 0.5


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
