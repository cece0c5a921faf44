"""A graph as a mask, and attention over time: the mechanisms as they are."""

import math

import pytest
import torch
from torch.testing import assert_close

from selfattn import MultiHeadAttention, flash_attention, fused_attention
from selfattn.data.series import LONGEST, NOISE, series_batches
from selfattn.dot_product import attention, attention_weights


def graph(n, *, links=0.2):
    """Who is joined to whom; the last node to nobody, not even itself."""
    joined = torch.rand(n, n) < links
    joined = joined | joined.mT | torch.eye(n, dtype=torch.bool)
    joined[-1], joined[:, -1] = False, False
    return joined


# A graph


@pytest.mark.parametrize(
    "attend", [attention, fused_attention, flash_attention]
)
def test_a_graph_is_a_mask_over_the_nodes(attend):
    """Equal to a loop over the neighbours; a node without any gets zeros."""
    n, d = 17, 5
    q, k, v = torch.randn(3, n, d).double().unbind()
    joined = graph(n)
    output = attend(q, k, v, mask=joined)
    for i in range(n):
        near = joined[i].nonzero().flatten().tolist()
        shares = [math.exp(q[i] @ k[j] / math.sqrt(d)) for j in near]
        told = torch.zeros(d).double()
        for share, j in zip(shares, near, strict=True):
            told += share / sum(shares) * v[j]
        assert_close(output[i], told)


def test_a_node_hears_as_far_as_there_are_layers():
    """On a path, news of one end goes one node a layer."""
    n = 11
    i = torch.arange(n)
    path = (i[:, None] - i).abs() <= 1
    layers = [MultiHeadAttention(6, 2).double() for _ in range(4)]
    x = torch.randn(1, n, 6).double().requires_grad_()
    y = x
    for depth, layer in enumerate(layers, start=1):
        y = y + layer(y, mask=path)
        [heard] = torch.autograd.grad(y[0, 0].sum(), x, retain_graph=True)
        reached = heard[0].any(dim=-1)
        assert reached.tolist() == [j <= depth for j in range(n)]


def test_renumbering_the_nodes_renumbers_the_answers():
    n = 13
    layer = MultiHeadAttention(6, 3).double()
    x, joined = torch.randn(1, n, 6).double(), graph(n)
    order = torch.randperm(n)
    mixed = layer(x[:, order], mask=joined[order][:, order])
    assert_close(mixed, layer(x, mask=joined)[:, order])


# Time

PAST = 4  # the steps by which a moment is recognised


def foretold(attend, x):
    """Each step from the last few: what came after others like these?

    Queries and keys are the same stretches of the series; the value of a
    stretch is the step behind it. A stretch may look at earlier ones only,
    and not at itself, whose value is the answer.
    """
    stretches = x.unfold(-1, PAST, 1)  # (batch, n - 3, 4)
    q, k, v = stretches[:, 1:-1], stretches[:, :-2], x[:, PAST:-1, None]
    # Sharp, so that the nearest counts: |q - k|² = |q|² - 2 q k + |k|².
    sharp = 10.0
    q, k = q * 2 * sharp * math.sqrt(PAST), k * 1.0
    bias = -sharp * k.square().sum(dim=-1)[:, None]
    return attend(q, k, v, bias=bias, causal=True).squeeze(-1)


@pytest.mark.parametrize(
    "attend", [attention, fused_attention, flash_attention]
)
def test_a_series_is_foretold_by_where_it_was_like_this_before(attend):
    """No weight is trained: attention looks up what came next."""
    x, _ = next(series_batches(200, seed=0))
    late = slice(3 * LONGEST, None)  # each shape has been seen, twice
    truth = x[:, late]
    guessed = foretold(attend, x)[:, late.start - PAST - 1 :]
    error = (guessed - truth).square().mean().sqrt().item()
    before = (x[:, late.start - 1 : -1] - truth).square().mean().sqrt().item()
    assert error > NOISE  # nobody can be nearer
    assert error < 1.5 * NOISE  # measured: 0.123
    assert before > 1.0  # who says that nothing changes: 1.4
    assert_close(guessed, foretold(attention, x)[:, late.start - PAST - 1 :])


def test_the_weights_point_to_whole_periods_ago():
    x, period = next(series_batches(50, seed=0))
    stretches = x.unfold(-1, PAST, 1)
    q, k = stretches[:, 1:-1], stretches[:, :-2]
    sharp = 10.0
    weights = attention_weights(
        q * 2 * sharp * math.sqrt(PAST),
        k,
        bias=-sharp * k.square().sum(dim=-1)[:, None],
        causal=True,
    )
    last = weights[:, -1]
    ago = last.shape[-1] - torch.arange(last.shape[-1])
    whole = (ago % period[:, None] == 0).float()
    assert (last * whole).sum(dim=-1).mean() > 0.98  # measured: 0.996


def test_what_is_foretold_does_not_know_what_comes():
    x, _ = next(series_batches(3, seed=0))
    other = x.clone()
    other[:, 30:] = 7.0
    same = foretold(attention, other)[:, : 30 - PAST]
    assert torch.equal(same, foretold(attention, x)[:, : 30 - PAST])
