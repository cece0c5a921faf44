"""Looking inside, against what one can work out by hand."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.dot_product import (
    attention_steps,
    attention_weights,
    fused_attention,
)
from selfattn.looking_inside import (
    entropy,
    not_finite,
    peaks,
    record_weights,
    row_sums,
    spread,
)
from selfattn.masks import causal_mask
from selfattn.multihead import MultiHeadAttention, merge_heads


def layer_of(**options):
    return MultiHeadAttention(15, 3, **options).double()


def tokens(n=7):
    return torch.randn(2, n, 15, dtype=torch.float64)


# Numbers about weights


def test_rows_of_attention_sum_to_one_or_to_nothing(qkv):
    q, k, _ = qkv
    seen = torch.ones(7, 11, dtype=torch.bool, device=q.device)
    seen[3] = False
    sums = row_sums(attention_weights(q, k, mask=seen))
    expected = torch.ones(2, 3, 7, dtype=torch.float64, device=q.device)
    expected[..., 3] = 0
    assert_close(sums, expected)


def test_row_sums_catch_a_softmax_over_the_wrong_axis(square):
    q, k, _ = square
    wrong = attention_weights(q, k, scale=1.0).mT
    assert_close(row_sums(wrong).mean().item(), 1.0)  # the mean hides it
    assert (row_sums(wrong) - 1).abs().max() > 0.5


def test_peaks_are_the_largest_weights(qkv):
    weights = attention_weights(*qkv[:2])
    assert peaks(weights).shape == (2, 3, 7)
    for row, peak in zip(
        weights.flatten(0, -2).tolist(),
        peaks(weights).flatten().tolist(),
        strict=True,
    ):
        assert peak == max(row)


def test_entropy_by_hand():
    weights = torch.tensor(
        [[0.25] * 4, [1.0, 0, 0, 0], [0.5, 0.25, 0.25, 0], [0.0] * 4]
    )
    bits = torch.tensor([2.0, 0.0, 1.5, 0.0])
    assert_close(entropy(weights, base=2), bits)
    assert_close(entropy(weights), bits * math.log(2))
    assert_close(entropy(weights, base=10), bits * math.log10(2))


def test_entropy_is_that_of_pytorchs_distributions(qkv):
    weights = attention_weights(*qkv[:2])
    expected = torch.distributions.Categorical(probs=weights).entropy()
    assert entropy(weights).shape == (2, 3, 7)
    assert_close(entropy(weights), expected)


def test_a_base_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="base must be a number other than"):
        entropy(torch.ones(1, 1), base=math.nan)


@pytest.mark.parametrize("base", [1, 0, -2])
def test_a_base_that_is_none_is_refused(base):
    with pytest.raises(ValueError, match=f"larger than 1, but base={base}"):
        entropy(torch.ones(1, 1), base=base)


def test_spread_is_one_where_a_query_looks_at_all_it_may(square):
    q, k, _ = square
    past = causal_mask(11, 11, device=q.device)
    alike = attention_weights(q, k, causal=True, scale=0.0)
    shares = spread(alike, past)
    assert_close(shares[..., 1:], torch.ones_like(shares[..., 1:]))
    assert not shares[..., 0].any()  # one key is no choice
    without = spread(alike)
    assert_close(without, entropy(alike) / math.log(11))


def test_spread_of_padded_and_empty_rows():
    weights = torch.tensor([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0], [0.0] * 3])
    mask = torch.tensor([[True, True, False]] * 2 + [[False] * 3])
    bits = -(0.9 * math.log2(0.9) + 0.1 * math.log2(0.1))
    assert_close(spread(weights, mask), torch.tensor([1.0, bits, 0.0]))
    # One row of a mask stands for all of them.
    assert_close(spread(weights[:2], mask[0]), torch.tensor([1.0, bits]))


def test_spread_lies_between_nothing_and_all(qkv):
    shares = spread(attention_weights(*qkv[:2]))
    assert ((shares > 0) & (shares < 1)).all()


# NaN and infinity


def test_finite_tensors_are_not_named(qkv):
    assert not_finite(attention_steps(*qkv)._asdict()) == {}


def test_the_first_one_named_is_where_it_began(qkv):
    q, k, v = (x.detach().clone() for x in qkv)
    q[0, 0, 3, 1] = math.inf
    found = not_finite(attention_steps(q, k, v)._asdict())
    assert list(found) == ["scores", "scaled", "biased", "weights", "output"]
    assert sum(found["scores"].values()) == 11  # one query, every key
    assert found["scores"]["nan"] == 0
    assert found["weights"]["nan"] == 11
    assert found["output"]["nan"] == 13


def test_each_kind_is_counted_apart():
    x = torch.tensor([math.nan, math.inf, math.inf, -math.inf, 0.0])
    x = torch.cat([x, x[-2:-1], x[-2:-1]])
    found = not_finite({"a": torch.ones(3), "x": x, "b": x[:1]})
    assert found == {
        "x": {"nan": 1, "inf": 2, "-inf": 3},
        "b": {"nan": 1, "inf": 0, "-inf": 0},
    }


# Recording


@pytest.mark.parametrize("options", [{}, {"attend": fused_attention}])
def test_recorded_weights_are_those_that_made_the_output(options):
    layer, x, context = layer_of(**options), tokens(), tokens(11)
    mask = torch.rand(2, 1, 7, 11) < 0.7
    bias = torch.randn(7, 11).double()
    with record_weights(layer) as weights:
        output = layer(x, context, mask=mask, bias=bias, causal=True)
    assert len(weights) == 1
    assert weights[0].shape == (2, 3, 7, 11)
    _, _, v = layer.heads(x, context)
    assert_close(layer.W_o(merge_heads(weights[0] @ v)), output)


def test_weights_come_in_the_order_of_running():
    first, second = layer_of(), layer_of(n_kv_heads=1)
    model = nn.ModuleDict({"a": second, "b": nn.Sequential(nn.Tanh(), first)})
    x = tokens()
    with record_weights(model) as weights:
        y = first(x)
        second(y)
        first(x[:, :5])
    assert len(weights) == 3
    assert torch.equal(weights[0], first.weights(x))
    assert torch.equal(weights[1], second.weights(y))
    assert torch.equal(weights[2], first.weights(x[:, :5]))


def test_a_layer_inside_a_model_is_found():
    layer = layer_of()
    model = nn.Sequential(nn.Identity(), nn.Sequential(layer), nn.Tanh())
    with record_weights(model) as weights:
        model(tokens())
    assert len(weights) == 1


def test_weights_are_recorded_undropped_and_without_gradients():
    layer, x = layer_of(dropout=0.5).train(), tokens().requires_grad_()
    with record_weights(layer) as weights:
        output = layer(x)
    assert not weights[0].requires_grad
    assert torch.equal(weights[0], layer.weights(x))
    output.sum().backward()  # and recording took nothing from training
    assert x.grad.any()


def test_recording_changes_no_number():
    layer, x = layer_of(dropout=0.5).train(), tokens()
    torch.manual_seed(3)
    expected = layer(x)
    torch.manual_seed(3)
    with record_weights(layer):
        assert torch.equal(layer(x), expected)


def test_recording_ends_with_the_block():
    layer, x = layer_of(), tokens()
    with record_weights(layer) as weights:
        pass
    layer(x)
    assert weights == []
    assert not layer._forward_hooks


def test_recording_ends_with_an_error_too():
    layer = layer_of()
    with pytest.raises(ZeroDivisionError), record_weights(layer):
        raise ZeroDivisionError
    assert not layer._forward_hooks


def test_recordings_nest():
    layer, x = layer_of(), tokens()
    with record_weights(layer) as outer:
        layer(x)
        with record_weights(layer) as inner:
            layer(x)
        layer(x)
    assert (len(outer), len(inner)) == (3, 1)


def test_what_has_no_weights_is_not_made_up():
    def sums(q, k, v, *, mask=None, bias=None, causal=False):
        return q + v.sum(dim=-2, keepdim=True)

    layer = layer_of(attend=sums)
    with (
        pytest.raises(ValueError, match="table of weights"),
        record_weights(layer),
    ):
        layer(tokens())
    assert not layer._forward_hooks


def test_a_query_without_keys_has_no_peak():
    """PyTorch finds no largest number among none."""
    assert peaks(torch.zeros(2, 3, 0)).tolist() == [[0.0] * 3] * 2
