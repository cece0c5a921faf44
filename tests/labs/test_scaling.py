"""The lab on the scale: its numbers are the package's, at every setting."""

import itertools
import json
import math
import re

import pytest
import torch

from selfattn.labs.machinery.settings import SettingError
from selfattn.labs.scaling import (
    FEATURES,
    N_QUERIES,
    ScalingLab,
    counts,
    row,
)
from selfattn.looking_inside import entropy

START = ScalingLab().values()
EVERYWHERE = [
    {"d_k": d_k, "divisor": divisor, "query": query}
    for d_k, divisor, query in itertools.product(
        [2**e for e in range(11)],
        ["none", "root", "whole"],
        range(N_QUERIES),
    )
]

# The scores are sums of quarters, exact in float64. A scaled score may be off
# by its last digit, up to 1e-14 for scores near 100, and so a weight by 1e-14
# of itself; adding 64 of them, or their 4096 products, adds little to that.
CLOSE = 1e-12


def compare(results, settings):
    """Raise AssertionError unless the page's numbers are the package's."""
    for values, theirs in zip(settings, results, strict=True):
        ours = row(**values)
        for name in ("scaled", "weights"):
            page = torch.tensor(theirs[name], dtype=torch.float64)
            expected = getattr(ours, name)
            off = (page - expected).abs() - CLOSE * expected.abs()
            assert (off <= 0).all(), (name, values)
        for name in ("deviation", "peak", "slope"):
            assert theirs[name] == pytest.approx(
                getattr(ours, name), rel=1e-11, abs=0
            ), (name, values)
        # The largest term, -p log p of a p near one, loses digits.
        assert theirs["entropy"] == pytest.approx(ours.entropy, abs=CLOSE)
        assert theirs["counts"] == counts(ours.scaled), values


def test_it_computes_as_the_package_at_every_setting(in_node, unopened):
    assert len(EVERYWHERE) == 264
    calls = [["compute", values] for values in EVERYWHERE]
    compare(in_node("scaling", calls), EVERYWHERE)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("1 / Math.sqrt(d_k)", "1 / Math.cbrt(d_k)"),
        ("((state % 7) - 3) / 2", "((state % 7) - 2) / 2"),
        ("if (i === j) return;", ""),
        ("squares += (p_i * others) ** 2;", ""),
        ("-sum(weights.map", "sum(weights.map"),
        ("Math.floor(score)", "Math.ceil(score)"),
        ("x * x)) / N_KEYS", "x * x)) / WIDEST"),
    ],
)
def test_one_wrong_operation_is_seen(planted, right, wrong):
    some = EVERYWHERE[::11]
    with pytest.raises(AssertionError):
        compare(planted("scaling", right, wrong, some), some)


def test_the_package_computes_what_it_says():
    for values in EVERYWHERE[::7]:
        now = row(**values)
        scores = now.scaled.clone().requires_grad_()
        J = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)
        # Autograd takes 1 - p as a difference, which is off by 1e-16.
        assert now.slope == pytest.approx(J.norm().item(), abs=1e-14)
        assert now.entropy == pytest.approx(entropy(now.weights[None]).item())
        assert now.peak == now.weights.max()
        divisor = {"none": 1, "root": values["d_k"] ** 0.5}.get(
            values["divisor"], values["d_k"]
        )
        q, k = FEATURES[values["query"]], FEATURES[N_QUERIES:]
        plain = k[:, : values["d_k"]] @ q[: values["d_k"]] / divisor
        torch.testing.assert_close(now.scaled, plain)


def test_the_features_are_random_of_mean_zero_and_variance_one():
    n = FEATURES.numel()
    assert n == 72 * 1024
    assert sorted({*FEATURES.flatten().tolist()}) == [
        -1.5, -1, -0.5, 0, 0.5, 1, 1.5,
    ]  # fmt: skip
    # Five standard errors of the mean and, as the fourth moment of these
    # seven numbers is 1.75, of the variance.
    assert abs(FEATURES.mean()) < 5 / math.sqrt(n)
    assert abs(FEATURES.var() - 1) < 5 * math.sqrt(0.75 / n)
    # The 512 scores of all queries have the variance that the chapter
    # derives; five standard errors.
    scores = FEATURES[:N_QUERIES] @ FEATURES[N_QUERIES:].mT
    assert abs(scores.var() / 1024 - 1) < 5 * math.sqrt(2 / 512)


def test_every_score_is_in_a_bar():
    for values in EVERYWHERE:
        assert sum(counts(row(**values).scaled)) == 64
    at = torch.tensor([-99.0, -10.01, -10, -0.5, 0, 0.5, 9.99, 10, 99])
    heights = counts(at)
    assert len(heights) == 22
    assert [i for i, n in enumerate(heights) if n] == [0, 1, 10, 11, 20, 21]
    assert [n for n in heights if n] == [2, 1, 1, 2, 1, 2]


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    assert_links_bring_back(ScalingLab(), EVERYWHERE)


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        (
            "d_k=1024&divisor=none",
            {"d_k": 1024, "divisor": "none"},
            "",
        ),
        ("d_k=100", {}, "d_k must be one of 1, 2, 4"),
        ("divisor=two", {}, "divisor must be one of none"),
        ("query=8", {"query": 7}, "query must lie between 0"),
        ("query=NaN", {}, "query must be a number"),
        ("n=3", {}, "no setting “n”"),
    ],
)
def test_a_bad_link_is_mended_and_said(
    assert_link_is_mended, link, changed, complaint
):
    assert_link_is_mended(ScalingLab(), link, changed, complaint)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"d_k": 100}, "d_k must be one of 1, 2, 4"),
        ({"divisor": "half"}, "divisor must be one of 'none'"),
        ({"query": 8}, "query must lie between 0 and 7, but it is 8"),
    ],
)
def test_a_bad_setting_is_refused_in_python(start, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        ScalingLab(**start)


def test_the_repr_is_the_call_that_makes_it():
    some = ScalingLab(d_k=256, divisor="none", query=5)
    assert repr(some) == "ScalingLab(d_k=256, divisor='none', query=5)"
    assert eval(repr(some)).values() == some.values()


def test_the_still_picture_and_its_words_are_of_this_setting():
    some = ScalingLab(d_k=1024, divisor="none", query=2)
    data, metadata = some._repr_mimebundle_()
    assert "query 3 with 64 keys of 1024 features" in some.alt
    assert metadata["image/png"]["alt"] == some.alt
    above, below = some.figure().axes
    heights = [bar.get_height() for bar in above.patches]
    assert heights == counts(some.row().scaled)
    assert heights[0] + heights[-1] > 32  # most are off the picture's ends
    weights = [bar.get_height() for bar in below.patches]
    assert weights == some.row().weights.tolist()
    assert some._repr_mimebundle_() == (data, metadata)
    assert json.dumps(some.rules)


def test_from_256_features_on_the_largest_weight_stays_above_one_half():
    """It crosses the half three times, and the chapter asked when it does."""
    peaks = {
        d_k: row(d_k=d_k, divisor="none", query=0).peak
        for d_k in ScalingLab.d_k.options
    }
    below = [d_k for d_k, peak in peaks.items() if peak <= 0.5]
    assert max(below) == 128
    assert peaks[64] > 0.5
