"""The lab on tiles: its numbers are the package's, at every setting."""

import itertools

import pytest
import torch

from selfattn import attention
from selfattn.labs.flash import N_KEYS, SCORES, VALUES, FlashLab, state

EVERYWHERE = [
    {"scores": scores, "tiles": tiles, "read": read, "position": position}
    for scores, tiles in itertools.product(SCORES, [1, 2, 4, 8])
    for read in range(tiles + 1)
    for position in range(N_KEYS)
]

# The largest exponential is 1. The package's are powers of two, and the
# exponent of a score of 60,000, times log₂e, has digits down to 1e-11.
CLOSE = {"60,000 less": 1e-10}
OTHERWISE = 1e-14


def compare(results, settings):
    """Raise AssertionError unless the page's numbers are the package's."""
    for values, theirs in zip(settings, results, strict=True):
        ours = state(**values)._asdict()
        assert theirs.keys() == ours.keys()
        close = CLOSE.get(values["scores"], OTHERWISE)
        for name, mine in ours.items():
            assert (theirs[name] is None) == (mine is None), (name, values)
            if mine is not None:
                expected = pytest.approx(mine, rel=8 * close, abs=8 * close)
                assert theirs[name] == expected, (name, values)


def test_it_computes_as_the_package_at_every_setting(in_node, unopened):
    assert len(EVERYWHERE) == 5 * 8 * (2 + 3 + 5 + 9)
    calls = [["compute", values] for values in EVERYWHERE]
    compare(in_node("flash", calls), EVERYWHERE)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("total *= factor;", ""),
        ("x * factor", "x"),
        ("Math.exp(m - larger)", "Math.exp(larger - m)"),
        ("&& j <= position", "&& j < position"),
        ("[-Number.MAX_VALUE, 0,", "[-50000, 0,"),
        ("seen > 0 ? factor : null", "factor"),
        ("x + power * VALUES", "x + VALUES"),
    ],
)
def test_one_wrong_operation_is_seen(planted, right, wrong):
    some = EVERYWHERE[::7]
    with pytest.raises(AssertionError):
        compare(planted("flash", right, wrong, some), some)


def test_after_the_last_tile_it_is_attention_and_on_the_way_to_it():
    for values in EVERYWHERE:
        seen = values["read"] * N_KEYS // values["tiles"]
        seen = min(seen, values["position"] + 1)
        if not seen:
            continue
        scores = SCORES[values["scores"]]
        scores = torch.tensor(scores, dtype=torch.float64)
        one = torch.ones(1, 1).double()
        judge = attention(one, scores[:seen, None], VALUES[:seen])[0]
        output = torch.tensor(state(**values).output, dtype=judge.dtype)
        torch.testing.assert_close(output, judge, atol=1e-10, rtol=0)


def test_each_number_of_tiles_read_is_one_that_there_is():
    lab = FlashLab(tiles=8, read=7)
    lab.tiles = 2
    assert lab.read == 2


def test_the_picture_is_told_in_words():
    assert FlashLab().describe().endswith("Nothing has been collected.")
    told = FlashLab(read=3).describe()
    assert "The largest score so far is 3.00" in told
    output = state(scores="mixed", tiles=4, read=3, position=7).output
    assert f"({output[0]:.3f}, {output[1]:.3f})" in told


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    assert_links_bring_back(FlashLab(), EVERYWHERE[::5])


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("scores=alike&read=4", {"scores": "alike", "read": 4}, ""),
        ("tiles=3", {}, "tiles must be one of 1, 2, 4, 8"),
        ("read=5", {"read": 4}, "read must lie between 0"),
        ("position=8", {"position": 7}, "position must lie between 0"),
        ("n=3", {}, "no setting “n”"),
    ],
)
def test_a_link_is_mended(assert_link_is_mended, link, changed, complaint):
    assert_link_is_mended(FlashLab(), link, changed, complaint)
