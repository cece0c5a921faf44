"""The lab on a memory of fixed size: it is the package's, and the theory's."""

import pytest
import torch
from page_numbers import leaves, settings_of
from torch.testing import assert_close

from selfattn.efficient.linear import linear_attention_step
from selfattn.labs.linear import (
    LISTS,
    TOKENS,
    VALUES,
    LinearLab,
    memories,
    seen,
)

EVERYWHERE = settings_of(
    ("tokens", "read", "gate", "delta", "ask"),
    LISTS,
    range(TOKENS + 1),
    [0.5, 0.7, 0.9, 1.0],
    [False, True],
    [0, 3],
)


def ours(values):
    """The page's numbers, by the package."""
    asked = {name: x for name, x in values.items() if name != "ask"}
    return seen(**asked)._asdict()


def compare(results, settings):
    """Raise AssertionError unless the page's numbers are the package's."""
    for values, theirs in zip(settings, results, strict=True):
        mine = ours(values)
        assert theirs.keys() == mine.keys()
        for name, x in mine.items():
            flat, other = ([*leaves(y)] for y in (x, theirs[name]))
            assert len(flat) == len(other), (name, values)
            for a, b in zip(flat, other, strict=True):
                expected = a if a is None else pytest.approx(a, abs=1e-12)
                assert b == expected, (name, values)


def test_it_computes_as_the_package_at_every_setting(in_node, unopened):
    assert len(EVERYWHERE) == 3 * 5 * 4 * 2 * 2
    calls = [["compute", values] for values in EVERYWHERE]
    compare(in_node("linear", calls), EVERYWHERE)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("row.map((x) => gate * x)", "row.map((x) => x)"),
        ("asked(keys[j], faded)", "asked(keys[j], state)"),
        ("x - brings[c] : x", "x + brings[c] : x"),
        ("x + keys[j][f] * written[c]", "x + written[c]"),
        ("words.slice(0, read).lastIndexOf", "words.slice(0, read).indexOf"),
        ("words.indexOf(word) === j", "true"),
        ("x !== null && x < RIGHT", "x !== null"),
    ],
)
def test_one_wrong_operation_is_seen(planted, right, wrong):
    with pytest.raises(AssertionError):
        compare(planted("linear", right, wrong, EVERYWHERE), EVERYWHERE)


def lists():
    """Keys and values of every list, in float64."""
    values = torch.tensor(VALUES, dtype=torch.float64)
    for told in LISTS.values():
        yield torch.tensor(told["keys"], dtype=torch.float64), values


def test_adding_is_what_the_package_keeps():
    for keys, values in lists():
        kept, mine = None, memories(keys, values, gate=1.0, delta=False)
        for k, v, state in zip(keys, values, mine[1:], strict=True):
            _, kept = linear_attention_step(
                k, k, v, kept, feature_map=lambda x: x
            )
            assert_close(kept.pairs, state)


@pytest.mark.parametrize("gate", [0.5, 0.9, 1.0])
def test_both_rules_are_their_quadratic_forms(gate):
    for keys, values in lists():
        n = len(keys)
        later = torch.arange(n)[:, None] - torch.arange(n)
        decay = torch.tril(gate ** later.double())
        weights = decay * (keys @ keys.T)
        added = memories(keys, values, gate=gate, delta=False)[1:]
        read = [k @ S for k, S in zip(keys, added, strict=True)]
        assert_close(torch.stack(read), weights @ values)
        strict = torch.eye(n).double() + weights.tril(-1)
        written = torch.linalg.solve(strict, values)
        corrected = memories(keys, values, gate=gate, delta=True)
        assert_close(corrected[-1], (keys * decay[-1][:, None]).T @ written)


def test_keys_are_of_length_one_and_a_word_has_one_key():
    for (keys, _), told in zip(lists(), LISTS.values(), strict=True):
        assert_close(keys.norm(dim=-1), torch.ones(TOKENS).double())
        pairs = set(zip(told["words"], map(tuple, told["keys"]), strict=True))
        assert len(pairs) == len(set(told["words"]))


def test_the_picture_is_told_in_words():
    told = LinearLab().describe()
    assert "after 3 of four tokens, by adding" in told
    assert told.endswith("3 of 3 keys bring back what was written last.")
    later = LinearLab(tokens="one twice", delta=True, gate=0.5).describe()
    assert "by the delta rule, with 0.5 of it left" in later


def test_the_still_picture_shows_the_memory():
    lab = LinearLab(read=4, gate=0.9)
    ax = lab.figure().axes[0]
    shown = [float(text.get_text()) for text in ax.texts]
    flat = [x for row in lab.seen().state for x in row]
    assert shown == pytest.approx(flat, abs=0.00501)


def test_a_link_brings_every_setting_back(assert_links_bring_back):
    assert_links_bring_back(LinearLab(), EVERYWHERE[::3])


@pytest.mark.parametrize(
    ("link", "changed", "complaint"),
    [
        ("tokens=alike&delta=true", {"tokens": "alike", "delta": True}, ""),
        ("gate=0.8", {}, "gate must be one of 0.5, 0.7, 0.9, 1"),
        ("read=5", {"read": 4}, "read must lie between 0"),
        ("ask=4", {"ask": 3}, "ask must lie between 0"),
        ("n=3", {}, "no setting “n”"),
    ],
)
def test_a_link_is_mended(assert_link_is_mended, link, changed, complaint):
    assert_link_is_mended(LinearLab(), link, changed, complaint)
