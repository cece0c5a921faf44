"""What strangers found of looking at a model: what is read off it, recorded
of it and counted of it, and what that does to the model and to its gradients.

As in `test_strangers`, each is a single story.
"""

import copy
import math
import pickle

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.cost import largest_bytes, peak_bytes
from selfattn.dot_product import attention_weights, masked_softmax
from selfattn.looking_inside import entropy, fewest_keys, spread
from selfattn.masks import causal_mask, padding_mask
from selfattn.multihead import MultiHeadAttention
from selfattn.probing import Probe
from selfattn.single_heads import change_heads, record_heads, record_weights


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


# What is read off weights has a gradient


def numbers_of(f, scores, step=1e-6):
    """The gradient of a sum, by differences."""
    found = torch.zeros_like(scores)
    for i in range(scores.numel()):
        moved = [scores.detach().clone() for _ in range(2)]
        for x, sign in zip(moved, (1, -1), strict=True):
            x.view(-1)[i] += sign * step
        one, other = (f(x).sum() for x in moved)
        found.view(-1)[i] = (one - other) / (2 * step)
    return found


MASKS = {
    "causal": causal_mask(4, 4),
    "padding": padding_mask(torch.tensor([0, 1, 3]), 4)[:, 0],
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("read", ["entropy", "spread"])
def test_how_widely_one_looks_past_a_mask_can_be_trained(read, mask):
    """A key that is hidden weighs 0, where -w log w has no slope: all
    gradients of such a query were NaN.
    """
    scores = torch.randn(3, 4, 4, dtype=torch.float64, requires_grad=True)

    def f(x):
        weights = masked_softmax(x, mask)
        if read == "entropy":
            return entropy(weights)
        return spread(weights, mask.expand(3, 4, 4))

    [found] = torch.autograd.grad(f(scores).sum(), scores, create_graph=True)
    assert_close(found, numbers_of(f, scores))
    [again] = torch.autograd.grad(found.square().sum(), scores)
    assert again.isfinite().all()


def test_so_can_weights_too_small_for_their_type():
    """A score that is far below the others has a weight of 0 unmasked."""
    scores = torch.tensor([[0.0, 1.0, -200.0]], requires_grad=True)
    [found] = torch.autograd.grad(entropy(scores.softmax(-1)).sum(), scores)
    [wanted] = torch.autograd.grad(
        entropy(scores[:, :2].softmax(-1)).sum(), scores
    )
    assert_close(found, wanted)


# Fewest keys


def test_a_long_row_needs_no_square_of_its_length():
    """All of the null space was made anew for each key: of 512, for seconds;
    of 4,096, for hours.
    """
    weights, values = torch.randn(120).softmax(-1), torch.randn(120, 4)
    other = fewest_keys(weights, values)
    assert (other > 0).sum() == 5
    assert_close(other @ values, weights @ values, atol=1e-5, rtol=0)
    made = largest_bytes(lambda: fewest_keys(weights, values))
    assert made < 8 * 120 * 120


def test_weights_whose_sum_is_no_number_are_refused():
    weights = torch.full((4,), 1e308, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"weights must .* finite"):
        fewest_keys(weights, torch.zeros(4, 1, dtype=torch.float64))


# What is recorded is what ran


class Adapted(nn.Module):
    """A matrix of which some features are dropped in training."""

    def __init__(self, d):
        super().__init__()
        self.matrix, self.dropout = nn.Linear(d, d), nn.Dropout(0.5)

    def forward(self, x):
        return self.matrix(self.dropout(x))


def test_recorded_weights_are_those_of_the_features_that_were_dropped():
    """They were made with others, and what was drawn next was another."""
    made = []

    def attend(q, k, v, *, mask=None, bias=None, causal=False):
        made.append(attention_weights(q, k, causal=causal).detach())
        return made[-1] @ v

    attend.weights = attention_weights
    layer = MultiHeadAttention(8, 2, attend=attend)
    layer.W_q, layer.W_o = Adapted(8), Adapted(8)
    x = torch.randn(2, 5, 8)
    torch.manual_seed(3)
    wanted, after = layer(x, causal=True), torch.rand(())
    torch.manual_seed(3)
    with record_weights(layer) as recorded:
        assert_close(layer(x, causal=True), wanted, rtol=0, atol=0)
    assert torch.rand(()) == after
    assert torch.equal(recorded[0], made[0])


@pytest.mark.parametrize("how", ["weights", "heads", "changes"])
def test_a_copy_that_is_made_meanwhile_is_rid_of_it_afterwards(how):
    """Its hooks were copied with it, and nobody took them away."""
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    wanted = layer(x)
    ways = {
        "weights": lambda: record_weights(layer),
        "heads": lambda: record_heads(layer),
        "changes": lambda: change_heads(layer, {"1.1": 0.0}),
    }
    with ways[how]() as recorded:
        other = copy.deepcopy(layer)
    assert torch.equal(other(x), wanted)
    assert not recorded


def test_what_heads_bring_back_is_the_callers_own():
    """Whoever wrote into it broke the way back."""
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    with record_heads(layer) as heads:
        output = layer(x)
    wanted = torch.autograd.grad(
        output.sum(), layer.W_o.weight, retain_graph=True
    )
    heads["1.1"].detach().zero_()
    found = torch.autograd.grad(output.sum(), layer.W_o.weight)
    assert_close(found, wanted)


def test_heads_are_changed_as_was_said_at_first():
    """What became of the caller's dictionary decided later."""
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    instead = {"1.1": 0.0}
    with change_heads(layer, instead):
        wanted = layer(x)
        instead["1.1"] = "nothing"
        instead["9.9"] = 1.0
        assert torch.equal(layer(x), wanted)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        (torch.float32, 1e300),
        (torch.float32, -1e39),
        (torch.float16, 1e6),
        (torch.float32, 10**400),
        (torch.float32, 10**39),
        (torch.float32, torch.tensor([True])),
    ],
)
def test_what_no_head_can_bring_back_is_named(dtype, number):
    """PyTorch told of an overflow, or infinity was put there in silence."""
    layer = MultiHeadAttention(8, 2).to(dtype)
    x = torch.randn(1, 3, 8, dtype=dtype)
    says = pytest.raises(ValueError, match=r"instead\['1.1'\] must be")
    with says, change_heads(layer, {"1.1": number}):
        layer(x)
    with change_heads(layer, {"1.1": math.inf}):
        assert not layer(x).isfinite().all()


def test_a_whole_number_may_have_more_than_64_bits():
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    with change_heads(layer, {"1.1": 10**20}):
        found = layer(x)
    with change_heads(layer, {"1.1": 1e20}):
        assert torch.equal(found, layer(x))


# A probe keeps what it has learnt, and nothing else


@pytest.mark.parametrize("keep", [copy.deepcopy, lambda x: pickle.dumps(x)])
def test_a_probe_of_what_is_trained_is_kept(keep):
    """It held the whole graph, of which PyTorch makes no copy."""
    tokens = torch.randn(6, 2, requires_grad=True)
    labels = torch.tensor([0, 1, 1, 0, 1, 1])
    probe = Probe(tokens * 2, labels)
    assert not (probe.weight.requires_grad or probe.mean.requires_grad)
    assert keep(probe)


# Bytes


@pytest.mark.parametrize(
    "f",
    [
        lambda x, layer: torch.linalg.vecdot(x, x),
        lambda x, layer: x @ x.mT,
        lambda x, layer: layer(x),
    ],
)
def test_bytes_are_counted_in_inference_mode(f):
    """What PyTorch puts together of others' steps hid what they make."""
    x, layer = torch.randn(3, 5, 8), nn.LSTM(8, 4)
    for count in (peak_bytes, largest_bytes):
        with torch.no_grad():
            wanted = count(lambda: f(x, layer))
        with torch.inference_mode():
            assert count(lambda: f(x, layer)) == wanted
