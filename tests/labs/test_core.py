"""The arithmetic that the labs share computes what the package computes."""

import re

import pytest
import torch
from page_numbers import assert_close

from selfattn.dot_product import attention_steps, masked_softmax
from selfattn.labs.machinery import esm
from selfattn.labs.machinery.park_miller import fixed_numbers
from selfattn.masks import causal_mask, padding_mask, window_mask

CORE = esm.LABS / "machinery" / "core.js"


def assert_steps(theirs, ours, q, k, v):
    """All four steps of one attention, each against its own size."""
    size = q.abs() @ k.abs().mT
    assert_close(theirs["scores"], ours.scores, size)
    assert_close(theirs["scaled"], ours.scaled, size)
    assert_close(theirs["weights"], ours.weights, ours.weights)
    assert_close(theirs["output"], ours.output, ours.weights @ v.abs())


def compare_core(in_node, text):
    """Raise AssertionError unless this core.js computes as the package."""
    n_q, n_k, d, d_v = 3, 5, 7, 2
    random_ = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(*shape, generator=random_, dtype=torch.float64)
        for shape in ((n_q, d), (n_k, d), (n_k, d_v))
    )
    # Far apart and far from zero: without care, exp overflows.
    loud = torch.tensor([[900.0, 899.0, -900.0, 0.5, 1.0]]).double()
    masks = [
        (["fullMask", n_q, n_k], torch.ones(n_q, n_k, dtype=torch.bool)),
        (["causalMask", n_q, n_k], causal_mask(n_q, n_k)),
        (["windowMask", n_q, n_k, 2], window_mask(n_q, n_k, 2)),
        (["windowMask", n_k, n_k, 3], window_mask(n_k, n_k, 3)),
        (["paddingMask", n_q, n_k, 4], padded(4, n_q, n_k)),
        (["paddingMask", n_q, n_k, 0], padded(0, n_q, n_k)),
    ]
    rows = [[True] * 5, [False, False, True, True, True], [False] * 5]
    on = [mask for _, mask in masks if mask.shape == (n_q, n_k)]
    vectors = [q.tolist(), k.tolist(), v.tolist()]
    drawn = iter(
        in_node(
            "core",
            [call for call, _ in masks]
            + [["maskedSoftmax", loud[0].tolist(), row] for row in rows]
            + [["attentionSteps", *vectors, mask.tolist()] for mask in on]
            + [["attentionSteps", *vectors], ["fixedNumbers", 7919, 11]],
            text,
        )
    )
    for _, mask in masks:
        assert next(drawn) == mask.tolist()
    for row in rows:
        expected = masked_softmax(loud, torch.tensor([row]))
        assert_close(next(drawn), expected, expected)
    for mask in [*on, None]:
        expected = attention_steps(q, k, v, mask=mask)
        assert_steps(next(drawn), expected, q, k, v)
    assert next(drawn) == fixed_numbers(7919, 11)


def padded(length, n_q, n_k):
    mask = padding_mask(torch.tensor([length]), n_k)[0, 0]
    return mask.expand(n_q, n_k)


def test_the_core_computes_as_the_package(in_node, unchecked):
    compare_core(in_node, CORE.read_text("utf-8"))


def signs():
    """Every + and - of the core's arithmetic, by place."""
    text = CORE.read_text("utf-8")
    code = re.sub(r"//.*", lambda found: " " * len(found[0]), text)
    return [found.start(1) for found in re.finditer(r" ([+-]) ", code)]


@pytest.mark.parametrize("place", signs())
def test_one_changed_sign_in_the_core_is_seen(in_node, place):
    text = CORE.read_text("utf-8")
    other = {"+": "-", "-": "+"}[text[place]]
    planted = text[:place] + other + text[place + 1 :]
    with pytest.raises(AssertionError):
        compare_core(in_node, planted)
