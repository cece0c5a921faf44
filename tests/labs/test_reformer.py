"""The lab on Reformer: its numbers are the package's, at every setting."""

import itertools
import json

import pytest
import torch
from page_numbers import settings_of

from selfattn import attention
from selfattn.efficient.reformer import lsh_mask
from selfattn.labs.machinery.esm import LABS
from selfattn.labs.reformer import ReformerLab, directions, state
from selfattn.random_features import normal

NAMES = ReformerLab.settings()
EVERYWHERE = settings_of(
    NAMES,
    [1, 2, 4, 8], [1, 3, 4], [0, 1, 3], [2, 4, 16],
    [False, True], [0, 8, 15], [3, 11],
)  # fmt: skip


def compare(results, settings):
    """Raise AssertionError unless the page's numbers are the package's."""
    for values, theirs in zip(settings, results, strict=True):
        mine = state(**values)._asdict()
        assert theirs.pop("weight") == pytest.approx(mine.pop("weight"))
        assert theirs == mine, values


def test_it_computes_as_the_package_at_every_setting(in_node, unopened):
    calls = [["compute", values] for values in EVERYWHERE]
    compare(in_node("reformer", calls), EVERYWHERE)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("products[nearest] < 0 ?", "products[nearest] > 0 ?"),
        ("|| a - b", "|| b - a"),
        ("(causal ? j < i : j !== i)", "(causal ? j <= i : j !== i)"),
        ("piece[r][j] === 1", "piece[r][j] === -1"),
        ("yes && !seen[j]", "yes && seen[j]"),
        (".slice(0, rounds)", ".slice(0, 1)"),
        ("/ Math.SQRT2", "/ 2"),
        ("[draw] : [[]", "[0] : [[]"),
    ],
)
def test_one_wrong_operation_is_seen(planted, right, wrong):
    some = EVERYWHERE[::7]
    with pytest.raises(AssertionError):
        compare(planted("reformer", right, wrong, some), some)


def test_its_directions_are_those_that_the_package_draws():
    table = (LABS / "reformer_draws.json").read_text("utf-8")
    for buckets, draws in json.loads(table).items():
        for seed, numbers in enumerate(draws):
            generator = torch.Generator().manual_seed(seed)
            mine = normal(4, 2, int(buckets) // 2, generator=generator)
            torch.testing.assert_close(torch.tensor(numbers), mine.float())


@pytest.mark.parametrize("buckets", [1, 2, 4, 8])
@pytest.mark.parametrize("causal", [False, True])
def test_whole_buckets_are_the_package_s_mask_and_softmax(buckets, causal):
    options = {"n_buckets": buckets, "n_rounds": 4, "causal": causal}
    for last, draw in itertools.product([0, 7], [0, 2]):
        x = directions(last)
        mask = lsh_mask(x, x, seed=draw, **options)
        mask &= ~torch.eye(16, dtype=torch.bool)
        past = torch.ones(16, 16).tril() if causal else torch.ones(16, 16)
        others = past.bool() & ~torch.eye(16, dtype=torch.bool)
        eye = torch.eye(16, dtype=torch.float64)
        weights = attention(3 * x, x, eye, mask=others)
        for token in (1, 9, 15):
            now = state(
                buckets=buckets, rounds=4, draw=draw, chunk=16,
                causal=causal, token=token, last=last,
            )  # fmt: skip
            assert now.seen == mask[token].tolist()
            assert now.pairs == int(mask.sum())
            share = (weights[token] * mask[token]).sum().item()
            assert now.weight == pytest.approx(share)


def test_the_picture_is_told_in_words():
    told = ReformerLab(buckets=2).describe()
    assert "token 10 sees 7 of 15 others" in told and "92% of its" in told


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    assert_links_bring_back(ReformerLab(), EVERYWHERE[::17])


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("buckets=8&token=0", {"buckets": 8, "token": 0}, ""),
        ("rounds=5", {"rounds": 4}, "rounds must lie between 1"),
        ("chunk=3", {}, "chunk must be"),
        ("causal=2", {}, "causal must be"),
        ("n=3", {}, "no setting “n”"),
    ],
)
def test_a_link_is_mended(assert_link_is_mended, link, changed, complaint):
    assert_link_is_mended(ReformerLab(), link, changed, complaint)
