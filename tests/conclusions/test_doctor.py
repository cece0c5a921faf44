"""Where the conclusions of the chapter on debugging hold."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from selfattn import MultiHeadAttention, attention
from selfattn.positions import rope

NEARLY_NONE = 0.01  # of the loss at the start


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def test_over_a_single_query_a_softmax_is_one():
    for n_q in (1, 2):
        weights = draw(3, n_q, 7).softmax(dim=-2)
        assert torch.equal(weights, torch.ones_like(weights)) == (n_q == 1)


def test_one_token_and_one_feature_hide_softmax_and_scale():
    for n, scale in ((1, 1.0), (1, 9.0), (5, 9.0)):
        q, k, v = draw(3, n, 4)
        sees = not torch.allclose(attention(scale * q, k, v), v)
        assert sees == (n > 1)
    assert [d for d in range(1, 100) if d == math.sqrt(d)] == [1]


def test_an_average_of_one_value_is_that_value():
    layer = MultiHeadAttention(12, 3).double()
    x = draw(2, 1, 12).expand(2, 5, 12)
    for causal in (False, True):
        assert_close(layer(x, causal=causal), layer.W_o(layer.W_v(x)))
    right = layer.W_v(x)
    for values in (right, layer.W_k(x), x, 2 * right):  # the rows are right
        made = attention(layer.W_q(x), layer.W_k(x), values)
        assert torch.allclose(made, right) == (values is right)
    parts = draw(2, 3, 5, 4)  # of heads that are not the same for all tokens
    wrong = (draw(2, 3, 5, 5).softmax(dim=-1) @ parts).reshape(2, 5, 12)
    assert not torch.allclose(wrong, wrong[:, :1])


def test_the_mean_of_the_row_sums_tells_no_axis_of_a_square():
    for n_q, n_k in ((6, 6), (3, 6), (6, 2)):
        for axis, mean in ((-1, 1.0), (-2, n_k / n_q)):
            sums = draw(n_q, n_k).softmax(dim=axis).sum(dim=-1)
            assert sums.mean().item() == pytest.approx(mean)


def test_the_loss_of_zeros_is_that_of_chance():
    for size in (2, 50, 1000):
        text = torch.randint(size, (64,))
        loss = cross_entropy(torch.zeros(64, size), text)
        assert loss.item() == pytest.approx(math.log(size), rel=1e-5)


def test_who_does_not_see_a_random_token_does_no_better_than_chance():
    """The mean over all tokens that might come, each as likely."""
    for size in (2, 11, 50):
        for loud in (0.0, 0.1, 5.0):
            said = (loud * draw(1, size)).expand(size, size)
            loss = cross_entropy(said, torch.arange(size)).item()
            chance = math.log(size)
            assert loss >= chance - 1e-12
            assert (loss == pytest.approx(chance)) == (loud == 0.0)


def test_behind_a_layer_norm_squares_do_not_move():
    norm = nn.LayerNorm(8, eps=0.0).double()
    x = draw(5, 8).requires_grad_()
    made = norm(x)
    assert_close(made.square().sum(dim=-1), torch.full((5,), 8.0).double())
    made.square().sum().backward()
    assert x.grad.abs().max() < 1e-12
    x.grad = None
    (norm(x) * draw(5, 8)).sum().backward()
    assert x.grad.abs().max() > 1e-3
    for learnt in ("weight", "bias"):  # no longer fresh
        norm = nn.LayerNorm(8, eps=0.0).double()
        getattr(norm, learnt).data = draw(8)
        x.grad = None
        norm(x).square().sum().backward()
        assert x.grad.abs().max() > 1e-3


def test_a_bias_of_the_keys_moves_whole_rows():
    q, k, v, bias = draw(5, 4), draw(7, 4), draw(7, 3), draw(4)
    bias.requires_grad_()
    moved = q @ (k + bias).T - q @ k.T
    assert_close(moved, moved[:, :1].expand(5, 7))
    (attention(q, k + bias, v) * draw(5, 3)).sum().backward()
    assert bias.grad.abs().max() < 1e-12
    for turn in (rope, nn.LayerNorm(4).double()):  # rotated, or normed
        moved = q @ turn(k + bias).T - q @ turn(k).T
        assert not torch.allclose(moved, moved[:, :1].expand(5, 7), atol=1e-3)
        bias.grad = None
        (attention(q, turn(k + bias), v) * draw(5, 3)).sum().backward()
        assert bias.grad.abs().max() > 1e-3


KEEP_UP = {"no scale", "softmax over queries", "softmax over axis 1"}
AT_A_HUNDREDTH = {"scaled by the width of v", "scaled by the number of keys"}


def test_three_mistakes_have_learnt_wherever_the_right_one_has(setting, runs):
    after, line = setting["after"], setting["learnt_at"]
    share = "share" if after == 300 else f"share at {after}"
    worst, best = {}, {}
    for run in runs:
        name = run["mistake"]
        worst[name] = max(run[share], worst.get(name, 0.0))
        best[name] = min(run[share], best.get(name, math.inf))
    lowest = best["none: this one is right"]
    right = worst.pop("none: this one is right")
    assert right < line
    expected = KEEP_UP | (AT_A_HUNDREDTH if line == NEARLY_NONE else set())
    assert {name for name in worst if worst[name] < line} >= expected
    assert worst["no scale"] <= lowest  # and it is no larger loss that tells
    assert all(best[name] <= right for name in KEEP_UP)
