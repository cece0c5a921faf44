"""The lab on windows: its numbers are the package's, at every setting."""

import itertools

import pytest
import torch
from page_numbers import compare_all, settings_of

from selfattn import sliding_window_attention
from selfattn.labs.window import N, WindowLab, state

START = WindowLab().values()
EVERYWHERE = settings_of(
    START,
    [1, 2, 4, 7, 16], [1, 2, 6], [False, True], [0, 1, 3],
    [False, True], [0, 2, 9, 15],
)  # fmt: skip


def test_it_computes_as_the_package_at_every_setting(in_node, unopened):
    calls = [["compute", values] for values in EVERYWHERE]
    compare_all(state, in_node("window", calls), EVERYWHERE)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Math.abs(i - j) < w", "Math.abs(i - j) <= w"),
        ("(!causal || j <= i)\n    && (", "(("),
        ("|| i < first || j < first", "|| j < first"),
        ("full_last && layer === layers", "full_last"),
        ("heard[layer - 1][j]", "heard[0][j]"),
        ("(N * (N + 1)) / 2", "(N * N) / 2"),
        ("seen[N - 1].length", "seen[0].length"),
    ],
)
def test_one_wrong_operation_is_seen(planted, right, wrong):
    some = EVERYWHERE[::7]
    with pytest.raises(AssertionError):
        compare_all(state, planted("window", right, wrong, some), some)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_who_has_heard_is_where_a_gradient_comes_back(layers, causal):
    """The package's function, stacked, and not the lab's masks."""
    for window, token in itertools.product([1, 3, 5], [0, 6, 15]):
        x = torch.randn(1, N, 4, dtype=torch.float64, requires_grad=True)
        y = x
        for _ in range(layers):
            y = sliding_window_attention(y, y, y, window=window, causal=causal)
        moved = [
            bool(torch.autograd.grad(y[0, i].sum(), x, retain_graph=True)[0]
                 [0, token].any())
            for i in range(N)
        ]  # fmt: skip
        now = state(
            window=window, layers=layers, causal=causal, token=token,
            global_tokens=0, full_last=False,
        )  # fmt: skip
        assert moved == now.heard[-1]


def test_the_picture_is_told_in_words():
    told = WindowLab().describe()
    assert "token 3 is heard by 4, 7, 10 tokens after each layer" in told
    pairs = 3 * (4 * N - 6)
    assert f"{pairs} pairs are looked at, {3 * 136} without" in told


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    assert_links_bring_back(WindowLab(), EVERYWHERE[::17])


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("window=16&token=0", {"window": 16, "token": 0}, ""),
        ("layers=7", {"layers": 6}, "layers must lie between 1"),
        ("global_tokens=4", {"global_tokens": 3}, "global_tokens must lie"),
        ("causal=2", {}, "causal must be"),
        ("n=3", {}, "no setting “n”"),
    ],
)
def test_a_link_is_mended(assert_link_is_mended, link, changed, complaint):
    assert_link_is_mended(WindowLab(), link, changed, complaint)
