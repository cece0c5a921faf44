"""The lab on Swin: its numbers are the package's, at every setting."""

import pytest
import torch
from page_numbers import compare_all, settings_of

from selfattn.efficient.swin import swin_mask
from selfattn.labs.swin import COLUMNS, ROWS, SwinLab, numbers, state

NAMES = SwinLab.settings()
EVERYWHERE = settings_of(
    NAMES,
    [2, 3, 6], [1, 2, 3, 6], [False, True], [False, True],
    [0, 2, 5], [0, 3, 11],
)  # fmt: skip


def test_it_computes_as_the_package_at_every_setting(in_node, unopened):
    calls = [["compute", values] for values in EVERYWHERE]
    compare_all(state, in_node("swin", calls), EVERYWHERE)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("layer % 2 ?", "layer % 3 ?"),
        ("Math.floor(window / 2) : 0", "1 : 0"),
        ("if (!masked)", "if (masked)"),
        ("[...every].reverse()", "[...every]"),
        ("Math.abs(rowOf(i) - row),", "(rowOf(i) - row),"),
        ("sum + size * size", "sum + size"),
        ("every.some((own) =>", "every.every((own) =>"),
        ("after[token] = 0", "after[token] = 1"),
    ],
)
def test_one_wrong_operation_is_seen(planted, right, wrong):
    some = EVERYWHERE[::5]
    with pytest.raises(AssertionError):
        compare_all(state, planted("swin", right, wrong, some), some)


@pytest.mark.parametrize("window", [2, 3, 6])
@pytest.mark.parametrize("shift", [0, 1])
def test_its_windows_are_those_of_the_package(window, shift):
    mine = numbers(window, shift, masked=True)
    mask = swin_mask((ROWS, COLUMNS), (window,) * 2, (shift,) * 2)
    assert torch.equal(mine[:, None] == mine, mask)
    rolled = numbers(window, shift, masked=False).view(ROWS, COLUMNS)
    cut = rolled.roll((-shift, -shift), dims=(0, 1))
    whole = numbers(window, 0, masked=True).view(ROWS, COLUMNS)
    assert torch.equal(cut, whole)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (2, 3), (5, 11)])
def test_what_is_heard_is_what_the_masks_lead_to(row, column):
    masks = [
        swin_mask((ROWS, COLUMNS), (3, 3), (shift, shift)).double()
        for shift in (0, 1, 0)
    ]
    paths = torch.linalg.multi_dot(masks[::-1])[row * COLUMNS + column]
    now = state(
        window=3, layers=3, shifted=True, masked=True, row=row, column=column
    )
    assert [layer >= 0 for layer in now.after] == (paths > 0).tolist()
    assert now.pairs == int(sum(mask.sum() for mask in masks))


def test_the_picture_is_told_in_words():
    told = SwinLab().describe()
    assert "has heard 36 of 72 tokens" in told and "8 of the 8" in told


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    assert_links_bring_back(SwinLab(), EVERYWHERE[::7])


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("window=6&row=0", {"window": 6, "row": 0}, ""),
        ("layers=7", {"layers": 6}, "layers must lie between 1"),
        ("window=4", {}, "window must be"),
        ("masked=2", {}, "masked must be"),
        ("n=3", {}, "no setting “n”"),
    ],
)
def test_a_link_is_mended(assert_link_is_mended, link, changed, complaint):
    assert_link_is_mended(SwinLab(), link, changed, complaint)
