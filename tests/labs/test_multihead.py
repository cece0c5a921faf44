"""The lab on heads: its numbers are those of the package's layer."""

import itertools
import random
import re

import pytest
import torch
from page_numbers import compare_each
from torch.testing import assert_close

from selfattn import MultiHeadAttention
from selfattn.labs.machinery.settings import SettingError
from selfattn.labs.multihead import CACHED, MultiheadLab, layer, table

START = MultiheadLab().values()
WIDTHS = [8, 12, 16, 24, 48, 64]

# float64 carries 2.2e-16; scores of some tens, each a sum of 64 products of
# sums of 64, and an exponential lose less than a thousand times that.
CLOSE = 1e-12


def every_setting():
    """All that the controls offer and that changes a number."""
    for d_model, heads, kv, n in itertools.product(
        WIDTHS, range(1, 13), range(1, 13), range(1, 11)
    ):
        if d_model % heads == 0 and heads % kv == 0:
            yield {
                "d_model": d_model,
                "n_heads": heads,
                "n_kv_heads": kv,
                "n": n,
                "head": 0,
            }


def compare(theirs, values):
    """Raise AssertionError unless the page shows what the package has."""
    ours = MultiheadLab(**values)
    weights = torch.tensor(theirs["weights"], dtype=torch.float64)
    assert_close(weights, ours.weights(), atol=CLOSE, rtol=0)
    assert theirs["parameters"] == ours.parameters()
    assert theirs["cacheBytes"] == ours.cache_bytes()
    shapes = {name: tuple(x) for name, x in theirs["shapes"].items()}
    assert shapes == ours.shapes()


def test_the_page_computes_as_the_package_everywhere(in_node, unopened):
    everywhere = list(every_setting())
    assert len(everywhere) == 920  # at most 20,000, so all of them
    calls = [["compute", values] for values in everywhere]
    compare_each(compare, in_node("multihead", calls), everywhere)


def test_biases_are_counted_as_those_of_the_layer(in_node):
    sizes = [(8, 2, 1), (24, 4, 4), (48, 12, 3), (64, 8, 2)]
    calls = [
        [
            "compute",
            START | {"d_model": d, "n_heads": h, "n_kv_heads": kv},
        ]
        for d, h, kv in sizes
    ]
    for (d, h, kv), theirs in zip(
        sizes, in_node("multihead", calls), strict=True
    ):
        made = MultiHeadAttention(d, h, n_kv_heads=kv, projection_bias=True)
        biases = sum(p.numel() for p in made.parameters() if p.ndim == 1)
        assert theirs["biases"] == biases


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Math.floor(h / group)", "h % n_kv_heads"),
        ("score / Math.sqrt(d)", "score / Math.sqrt(d_model)"),
        ("row.slice(h * d, (h + 1) * d)", "row.slice(0, d)"),
        ("2 * CACHED * n * d_kv", "2 * CACHED * n * d_model"),
        ("2 * d_model * d_kv", "2 * d_model * d_model"),
    ],
)
def test_a_planted_mistake_is_seen(planted, right, wrong):
    sample = random.Random(0).sample(list(every_setting()), 60)
    sample.append(START | {"n_heads": 6, "n_kv_heads": 2})
    theirs = planted("multihead", right, wrong, sample)
    with pytest.raises(AssertionError):
        compare_each(compare, theirs, sample)


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    chance = random.Random(1)
    many = [
        values | {"head": chance.randrange(values["n_heads"])}
        for values in chance.sample(list(every_setting()), 200)
    ]
    assert_links_bring_back(MultiheadLab(), many)


def test_fewer_heads_take_their_dependants_along():
    some = MultiheadLab(n_heads=12, n_kv_heads=12, head=11)
    some.n_heads = 3
    assert (some.n_kv_heads, some.head) == (3, 2)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"n_heads": 5}, "n_heads must divide d_model, but n_heads=5 and"),
        ({"n_heads": 24}, "n_heads must be one of 1, 2, 3"),
        ({"n_kv_heads": 3}, "n_kv_heads must divide n_heads"),
        ({"head": 4}, "head must lie between 0 and 3"),
        ({"d_model": 20}, "d_model must be one of 8, 12, 16"),
        ({"n": 0}, "n must lie between 1 and 10"),
    ],
)
def test_a_bad_setting_is_refused_in_python(start, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        MultiheadLab(**start)


def test_a_narrower_layer_takes_the_next_number_of_heads_that_divides():
    some = MultiheadLab(d_model=48, n_heads=12, n_kv_heads=6)
    some.d_model = 64
    assert (some.n_heads, some.n_kv_heads) == (8, 4)
    some.d_model = 12
    assert (some.n_heads, some.n_kv_heads) == (6, 3)


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("n_heads=6", {"n_heads": 6, "n_kv_heads": 3}, ""),
        ("n_heads=5", {}, "one of 1, 2, 3, 4, 6, 8, 12, which divide d_model"),
        ("d_model=64&n_heads=16&n_kv_heads=3", {"d_model": 64}, "n_heads=4"),
    ],
)
def test_a_bad_link_is_mended_and_said(
    assert_link_is_mended, link, changed, complaint
):
    assert_link_is_mended(MultiheadLab(), link, changed, complaint)


def test_the_cache_holds_keys_and_values_of_all_words():
    some = MultiheadLab(d_model=48, n_heads=12, n_kv_heads=3, n=7)
    assert some.cache_bytes() == CACHED * 2 * 7 * 3 * 4


def test_the_fixed_numbers_have_variance_one():
    many = torch.cat([table(kind, 64, 64) for kind in ("x", "W_q", "W_k")])
    # Five standard errors of a mean and of a variance.
    assert abs(many.mean()) < 5 / many.numel() ** 0.5
    assert abs(many.var() - 1) < 5 * (2 / many.numel()) ** 0.5


def test_query_heads_of_a_group_share_keys():
    shared, own = layer(24, 4, 2), layer(24, 4, 4)
    _, k, _ = shared.heads(table("x", 5, 24)[None])
    assert torch.equal(k[0, 0], k[0, 1])
    assert not torch.equal(k[0, 1], k[0, 2])
    # Key head 0 is the same, however many others there are.
    _, all_k, _ = own.heads(table("x", 5, 24)[None])
    assert_close(k[0, 0], all_k[0, 0])


def test_the_still_picture_has_a_map_for_each_head():
    some = MultiheadLab(n_heads=8, n_kv_heads=2, d_model=16, n=3)
    axes = [ax for ax in some.figure().axes if ax.get_visible()]
    assert len(axes) == 8
    for ax, weights in zip(axes, some.weights(), strict=True):
        (image,) = ax.images
        drawn = torch.tensor(image.get_array().tolist()).double()
        assert_close(drawn, weights, atol=1e-6, rtol=0)
    titles = [ax.get_title() for ax in axes]
    assert titles[3] == "head 4, keys 1"
    assert titles[4] == "head 5, keys 2"
    assert len(some.describe().split(" → ")) == 9
