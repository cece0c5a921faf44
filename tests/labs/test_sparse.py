"""The lab on sparse patterns: its numbers are the package's, everywhere."""

import itertools

import pytest
import torch
from page_numbers import compare_all, settings_of

from selfattn import fixed_attention, strided_attention
from selfattn.labs.sparse import N, SparseLab, state

NAMES = SparseLab.settings()
EVERYWHERE = settings_of(
    NAMES,
    ["strided", "fixed"], [1, 2, 3, 4, 5, 7, 15, 16], [False, True],
    [0, 2, 9, 15], [0, 1, 6, 15],
)  # fmt: skip


def test_it_computes_as_the_package_at_every_setting(in_node, unopened):
    calls = [["compute", values] for values in EVERYWHERE]
    compare_all(state, in_node("sparse", calls), EVERYWHERE)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Math.abs(i - j) < l", "Math.abs(i - j) < l - 1"),
        ("(i - j) % l === 0", "j % l === 0"),
        ("j % l === l - 1", "j % l === 0"),
        ("(!causal || j <= i)", "j <= i"),
        ("seen[m][key] && m !== query", "seen[m][key]"),
        ("seen[m][j]) ? 2 : 0", "seen[m][j]) ? 2 : 1"),
        ("(N * (N + 1)) / 2", "(N * N) / 2"),
    ],
)
def test_one_wrong_operation_is_seen(planted, right, wrong):
    some = EVERYWHERE[::3]
    with pytest.raises(AssertionError):
        compare_all(state, planted("sparse", right, wrong, some), some)


@pytest.mark.parametrize("causal", [False, True])
def test_steps_are_layers_through_which_a_gradient_comes_back(causal):
    """The package's functions, stacked, and not the lab's masks."""
    for attend, pattern in (
        (strided_attention, "strided"),
        (fixed_attention, "fixed"),
    ):
        for stride, query in itertools.product([1, 3, 5, 16], [0, 6, 15]):
            x = torch.randn(1, N, 4, dtype=torch.float64, requires_grad=True)
            y, felt = x, []
            for _ in range(2):
                y = attend(y, y, y, stride=stride, causal=causal)
                total = y[0, query].sum()
                [slope] = torch.autograd.grad(total, x, retain_graph=True)
                felt.append(slope[0].any(dim=-1).tolist())
            now = state(
                pattern=pattern, stride=stride, causal=causal, query=query,
                key=0,
            )  # fmt: skip
            assert felt[0] == [step == 1 for step in now.steps]
            assert felt[1] == [step > 0 for step in now.steps]


def test_every_way_is_seen_by_the_query_and_sees_the_key():
    for values in EVERYWHERE[::5]:
        now, query, key = state(**values), values["query"], values["key"]
        for m in range(N):
            between = now.seen[query][m] and now.seen[m][key]
            expected = between and m not in (query, key)
            assert (m in now.ways) == expected


def test_the_picture_is_told_in_words():
    told = SparseLab().describe()
    assert "the pattern strided with a stride of 4: 82 of 136 pairs" in told
    assert "Query 16 sees 7 keys and reaches 9 more in two steps" in told


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    assert_links_bring_back(SparseLab(), EVERYWHERE[::17])


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("stride=16&key=0", {"stride": 16, "key": 0}, ""),
        ("pattern=fixed", {"pattern": "fixed"}, ""),
        ("stride=0", {"stride": 1}, "stride must lie between 1"),
        ("pattern=dense", {}, "pattern must be one of"),
        ("causal=2", {}, "causal must be"),
        ("n=3", {}, "no setting “n”"),
    ],
)
def test_a_link_is_mended(assert_link_is_mended, link, changed, complaint):
    assert_link_is_mended(SparseLab(), link, changed, complaint)
