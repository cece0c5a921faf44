"""Looking inside, against what one can work out by hand."""

import math

import pytest
import torch
from torch.testing import assert_close

from selfattn.dot_product import (
    attention_steps,
    attention_weights,
)
from selfattn.looking_inside import (
    entropy,
    fewest_keys,
    not_finite,
    peaks,
    row_sums,
    spread,
    weight_on,
)
from selfattn.masks import causal_mask

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


def test_who_sees_one_key_has_no_choice_though_dropout_took_some_of_it():
    mask = torch.tensor([[True, False], [True, True]])
    weights = torch.tensor([[0.3, 0.0], [0.5, 0.5]])
    assert spread(weights, mask).tolist() == [0.0, 1.0]


def test_spread_of_padded_and_empty_rows():
    weights = torch.tensor([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0], [0.0] * 3])
    mask = torch.tensor([[True, True, False]] * 2 + [[False] * 3])
    bits = -(0.9 * math.log2(0.9) + 0.1 * math.log2(0.1))
    assert_close(spread(weights, mask), torch.tensor([1.0, bits, 0.0]))
    # One row of a mask stands for all of them.
    assert_close(spread(weights[:2], mask[0]), torch.tensor([1.0, bits]))


@pytest.mark.parametrize("default", [torch.float16, torch.float32])
def test_spread_has_the_digits_of_its_weights(default):
    """The number of keys is whole, and its logarithm was of the default
    type: shares of float64 weights had the digits of float32, or of float16.
    """
    weights = torch.rand(5, 300).double().softmax(-1)
    torch.set_default_dtype(default)
    try:
        shares = spread(weights)
    finally:
        torch.set_default_dtype(torch.float32)
    assert_close(shares, entropy(weights) / math.log(300), atol=0, rtol=1e-14)


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


def test_a_query_without_keys_has_no_peak():
    """PyTorch finds no largest number among none."""
    assert peaks(torch.zeros(2, 3, 0)).tolist() == [[0.0] * 3] * 2


# Single heads


def test_weight_on_by_a_loop():
    weights = torch.rand(2, 3, 7, 11).softmax(dim=-1)
    queries, keys = torch.tensor([2, 5]), torch.tensor([[0, 10], [4, 3]])
    for head, mean in enumerate(weight_on(weights, queries, keys).tolist()):
        every = [
            weights[b, head, i, keys[b, m]].item()
            for b in range(2)
            for m, i in enumerate(queries)
        ]
        assert mean == pytest.approx(sum(every) / 4)


@pytest.mark.parametrize(
    ("queries", "keys"),
    [([], [[]]), ([3], [[0]]), ([0], [[4]]), ([-1], [[0]])],
)
def test_weight_on_a_place_that_is_none_is_refused(queries, keys):
    with pytest.raises(ValueError, match="must be positions from 0 to"):
        weight_on(
            torch.rand(1, 2, 3, 4),
            torch.tensor(queries, dtype=torch.long),
            torch.tensor(keys, dtype=torch.long),
        )


# Other weights, same output


@pytest.mark.parametrize("n", [1, 3, 8, 30])
def test_fewest_keys_keep_the_output_and_the_sum(n):
    weights = torch.rand(n).double().softmax(dim=-1)
    values = torch.randn(n, 5).double()
    other = fewest_keys(weights, values)
    assert (other >= 0).all()
    assert int((other > 0).sum()) <= 6
    assert_close(other @ values, weights @ values)
    assert_close(other.sum(), weights.sum())
    assert torch.equal(other, weights) == (n <= 6)


def test_keys_that_are_alike_need_one():
    """Where values span less, fewer keys are enough only if need be."""
    values = torch.ones(9, 2).double()
    other = fewest_keys(torch.full((9,), 1 / 9).double(), values)
    assert_close(other @ values, values[0])
    assert int((other > 0).sum()) <= 3


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf])
def test_weights_and_values_that_are_none_are_refused(wrong):
    values = torch.randn(4, 2)
    with pytest.raises(ValueError, match="finite and not negative"):
        fewest_keys(torch.tensor([0.5, wrong, 0.25, 0.25]), values)
    if not math.isfinite(wrong):
        values[1, 1] = wrong
        with pytest.raises(ValueError, match="values must be finite"):
            fewest_keys(torch.full((4,), 0.25), values)


def test_weights_of_the_caller_stay():
    weights = torch.full((9,), 1 / 9)
    fewest_keys(weights, torch.randn(9, 2))
    assert torch.equal(weights, torch.full((9,), 1 / 9))


# Probes


def test_weights_are_not_negative_and_bases_are_finite():
    """One weight of −1e-9 made −∞ of its row; a base of ∞ made 0 of all."""
    for bad in (torch.tensor([[1.0, -1e-9]]), torch.tensor([[-1.0, 2.0]])):
        for measure in (entropy, spread):
            with pytest.raises(ValueError, match="weights must not be neg"):
                measure(bad)
    with pytest.raises(ValueError, match="finite number larger than 1"):
        entropy(torch.ones(1, 1), base=math.inf)
    assert entropy(torch.tensor([[1.0, -0.0]])).tolist() == [0.0]


@pytest.mark.parametrize(
    "mask",
    [
        torch.tensor([[0.0, -torch.inf]]),  # was counted: minus infinity
        torch.tensor([[2, 5]]),
        torch.ones(3, 1, 2).bool(),
        torch.ones(1, 3).bool(),
        torch.ones(1, 2).bool().to_sparse(),
    ],
)
def test_a_mask_of_spread_says_yes_or_no_of_each_weight(mask):
    with pytest.raises(ValueError, match="mask must"):
        spread(torch.tensor([[0.5, 0.5]]), mask)


@pytest.mark.parametrize("x", [1.0, None, [1.0], "x"])
def test_what_is_no_tensor_has_nothing_to_count(x):
    """It ended in `float has no attribute isfinite`."""
    with pytest.raises(TypeError, match="tensors"):
        not_finite({"a": x})
    for other in (torch.eye(2).to_sparse(), torch.eye(2).cfloat()):
        with pytest.raises(ValueError, match="but"):
            not_finite({"a": other})


@pytest.mark.parametrize(
    "kind", [torch.bfloat16, torch.float16, torch.float32]
)
def test_a_spread_is_never_more_than_all(kind):
    """Rounded weights of keys that are all alike had an entropy of more."""
    for n in range(2, 200):
        weights = torch.full((1, n), 1 / n, dtype=kind, requires_grad=True)
        share = spread(weights)
        assert 1 - 2 * torch.finfo(kind).eps < share.item() <= 1
        share.sum().backward()
        assert weights.grad.isfinite().all() and weights.grad.any()
