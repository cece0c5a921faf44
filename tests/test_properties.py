"""What holds for every attention, whatever the numbers and the sizes."""

import itertools

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import nn
from torch.testing import assert_close

from selfattn.dot_product import (
    attention,
    attention_weights,
    fused_attention,
    masked_softmax,
)
from selfattn.masks import as_keep, causal_mask, indices
from selfattn.multihead import MultiHeadAttention

BOTH = pytest.mark.parametrize("attend", [attention, fused_attention])
counts, widths = st.integers(1, 13), st.integers(1, 7)
batches = st.lists(st.integers(1, 3), max_size=2).map(tuple)
gains = st.sampled_from([0.1, 1.0, 10.0, 100.0])  # even to saturated rows


@st.composite
def inputs(draw, square=False):
    """Queries, keys and values of any size, from flat to saturated."""
    torch.manual_seed(draw(st.integers(0, 2**31)))
    batch, n_q, d, d_v = (
        draw(batches),
        draw(counts),
        draw(widths),
        draw(widths),
    )
    n_k = n_q if square else draw(counts)
    shapes = (n_q, d), (n_k, d), (n_k, d_v)
    q, k, v = (torch.randn(*batch, *s, dtype=torch.float64) for s in shapes)
    return q * draw(gains), k, v


@st.composite
def masked(draw):
    """The same, and a mask, with rows that see all, some or nothing."""
    q, k, v = draw(inputs())
    share = draw(st.sampled_from([0.0, 0.3, 0.8, 1.0]))
    return q, k, v, torch.rand(q.shape[-2], k.shape[-2]) < share


# What an average is


@given(masked())
def test_rows_sum_to_one_or_see_nothing(case):
    q, k, _, mask = case
    weights = attention_weights(q, k, mask=mask)
    assert (weights >= 0).all()
    assert not weights.masked_select(~mask).any()
    expected = mask.any(dim=-1).double().expand(weights.shape[:-1])
    assert_close(weights.sum(dim=-1), expected)


@BOTH
@given(masked())
def test_no_output_leaves_the_range_of_what_is_seen(attend, case):
    """In one feature that range is the convex hull, and so it is in each."""
    q, k, v, mask = case
    output = attend(q, k, v, mask=mask)
    seen = mask[..., None].expand(*v.shape[:-2], *mask.shape, v.shape[-1])
    every = v[..., None, :, :].expand(seen.shape)
    least = every.masked_fill(~seen, torch.inf).amin(dim=-2)
    most = every.masked_fill(~seen, -torch.inf).amax(dim=-2)
    empty = ~mask.any(dim=-1)
    assert not output[..., empty, :].any()
    slack = 1e-12  # rounding of at most 13 products of numbers near one
    assert (output >= least - slack)[..., ~empty, :].all()
    assert (output <= most + slack)[..., ~empty, :].all()


@BOTH
@given(inputs(), st.floats(-5, 5))
def test_the_average_of_equal_values_is_that_value(attend, case, value):
    q, k, v = case
    output = attend(q, k, torch.full_like(v, value))
    assert_close(output, torch.full_like(output, value))


@BOTH
@given(inputs())
def test_the_output_is_linear_in_the_values(attend, case):
    q, k, v = case
    other = torch.randn_like(v)
    both = attend(q, k, 2 * v - 3 * other)
    assert_close(both, 2 * attend(q, k, v) - 3 * attend(q, k, other))


@BOTH
@given(masked())
def test_one_visible_key_hands_over_its_value(attend, case):
    q, k, v, _ = case
    chosen = torch.randint(k.shape[-2], (q.shape[-2],))
    mask = chosen[:, None] == indices(q.shape[-2], k.shape[-2])[1]
    expected = v[..., chosen, :].expand(*q.shape[:-1], v.shape[-1])
    assert_close(attend(q, k, v, mask=mask), expected)


# What order means


@BOTH
@given(inputs(square=True))
def test_permuted_tokens_give_permuted_outputs(attend, case):
    q, k, v = case
    order = torch.randperm(q.shape[-2])
    permuted = attend(*(x[..., order, :] for x in (q, k, v)))
    assert_close(permuted, attend(q, k, v)[..., order, :])


@BOTH
@given(masked())
def test_keys_have_no_order(attend, case):
    q, k, v, mask = case
    order = torch.randperm(k.shape[-2])
    shuffled = attend(
        q, k[..., order, :], v[..., order, :], mask=mask[:, order]
    )
    assert_close(shuffled, attend(q, k, v, mask=mask))


@BOTH
@given(inputs(square=True), st.data())
def test_the_future_changes_no_bit_of_the_past(attend, case, data):
    q, k, v = case
    n = q.shape[-2]
    t = data.draw(st.integers(0, n - 1))
    before = attend(q, k, v, causal=True)
    k, v = k.clone(), v.clone()
    k[..., t:, :] = 3 * torch.randn_like(k[..., t:, :])
    v[..., t:, :] += 7.0
    after = attend(q, k, v, causal=True)
    assert torch.equal(after[..., :t, :], before[..., :t, :])
    # And whoever looks at the new, if only a little, is moved by it.
    new = attention_weights(q, k, causal=True)[..., t:, t:].sum(dim=-1) > 1e-3
    moved = (after != before)[..., t:, :].any(dim=-1)
    assert moved[new].all()


@BOTH
@given(inputs(square=True), st.data())
def test_a_prefix_alone_gives_the_same(attend, case, data):
    """One causal pass over n tokens holds the passes over all its prefixes."""
    q, k, v = case
    t = data.draw(st.integers(1, q.shape[-2]))
    whole = attend(q, k, v, causal=True)[..., :t, :]
    assert_close(
        attend(*(x[..., :t, :] for x in (q, k, v)), causal=True), whole
    )


@BOTH
@given(inputs(square=True))
def test_one_query_at_a_time_on_a_cache_gives_the_same(attend, case):
    q, k, v = case
    steps = [
        attend(
            q[..., t : t + 1, :],
            k[..., : t + 1, :],
            v[..., : t + 1, :],
            causal=True,
        )
        for t in range(q.shape[-2])
    ]
    assert_close(torch.cat(steps, dim=-2), attend(q, k, v, causal=True))


# What softmax ignores, and what it does not


@BOTH
@given(masked(), st.floats(-1e3, 1e3))
def test_the_same_added_to_every_score_changes_nothing(attend, case, shift):
    q, k, v, mask = case
    row = shift * torch.randn(q.shape[-2], 1, dtype=torch.float64)
    # Scores of up to some 1e4 are rounded at 1e-12.
    assert_close(
        attend(q, k, v, mask=mask, bias=row),
        attend(q, k, v, mask=mask),
        atol=1e-8,
        rtol=1e-7,
    )


@given(masked(), st.sampled_from([2.0, 0.5, 4.0, 0.125]))
def test_a_scaled_query_is_a_scaled_scale(case, c):
    """Powers of two, so that nothing is rounded and no bit may differ."""
    q, k, v, mask = case
    for attend in (attention, fused_attention):
        assert_close(
            attend(q * c, k, v, mask=mask, scale=0.25),
            attend(q, k, v, mask=mask, scale=0.25 * c),
        )
        assert_close(
            attend(q, k * c, v, mask=mask),
            attend(q, k, v, mask=mask, scale=c * q.shape[-1] ** -0.5),
        )


@given(inputs())
def test_scale_zero_looks_everywhere_alike(case):
    q, k, v = case
    expected = v.mean(dim=-2, keepdim=True).expand(*q.shape[:-1], v.shape[-1])
    for attend in (attention, fused_attention):
        assert_close(attend(q, k, v, scale=0.0), expected)


@given(inputs())
def test_a_key_that_nobody_may_see_might_as_well_not_be(case):
    q, k, v = case
    more = torch.randn_like(k[..., :1, :]), torch.randn_like(v[..., :1, :])
    longer = torch.cat([k, more[0]], dim=-2), torch.cat([v, more[1]], dim=-2)
    mask = torch.arange(k.shape[-2] + 1) < k.shape[-2]
    for attend in (attention, fused_attention):
        assert_close(attend(q, *longer, mask=mask), attend(q, k, v))


@given(masked())
def test_a_mask_is_a_bias_of_minus_infinity(case):
    q, k, v, mask = case
    bias = torch.zeros(mask.shape, dtype=torch.float64)
    bias = bias.masked_fill(~mask, -torch.inf)
    assert torch.equal(as_keep(bias), mask)
    for attend in (attention, fused_attention):
        assert_close(attend(q, k, v, bias=bias), attend(q, k, v, mask=mask))


@given(masked())
def test_masked_softmax_is_softmax_of_what_is_left(case):
    q, k, _, mask = case
    scores = q @ k.mT
    weights = masked_softmax(scores, mask)
    for i, seen in enumerate(mask):
        left = scores[..., i, :][..., seen].softmax(dim=-1)
        assert_close(weights[..., i, :][..., seen], left)


# What belongs to whom


@BOTH
@given(masked())
def test_members_of_a_batch_do_not_meet(attend, case):
    q, k, v, mask = case
    output = attend(q, k, v, mask=mask)
    for b in itertools.product(*(range(size) for size in q.shape[:-2])):
        assert_close(output[b], attend(q[b], k[b], v[b], mask=mask))


@BOTH
@given(inputs(square=True))
def test_queries_before_the_first_key_get_zeros(attend, case):
    """More queries than keys: the first of a causal pass see nothing."""
    q, k, v = (x.requires_grad_() for x in case)
    n, fewer = q.shape[-2], q.shape[-2] // 2
    output = attend(q, k[..., :fewer, :], v[..., :fewer, :], causal=True)
    assert not output[..., : n - fewer, :].any()
    sees = causal_mask(n, fewer).any(dim=-1)
    assert sees.sum() == fewer
    of_q, of_k, of_v = torch.autograd.grad(output.sum(), (q, k, v))
    for grad in (of_q, of_k, of_v):
        assert grad.isfinite().all()
    assert not of_q[..., : n - fewer, :].any()
    assert not of_k[..., fewer:, :].any()
    assert not of_v[..., fewer:, :].any()


@given(
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 11),
    st.integers(0, 2**31),
)
def test_one_head_is_one_attention_and_heads_have_no_order(
    batch, heads, n, seed
):
    torch.manual_seed(seed)
    d_head = 3
    layer = MultiHeadAttention(heads * d_head, heads).double()
    x = torch.randn(batch, n, heads * d_head, dtype=torch.float64)
    out = layer(x, causal=True)
    if heads == 1:
        alone = attention(
            layer.W_q(x), layer.W_k(x), layer.W_v(x), causal=True
        )
        assert_close(out, layer.W_o(alone))
    # The same heads in another order, and W_o's columns with them.
    order = torch.randperm(heads)
    features = (
        torch.arange(heads * d_head).view(heads, d_head)[order].flatten()
    )
    for projection in (layer.W_q, layer.W_k, layer.W_v):
        weight = projection.weight.detach()[features]
        projection.weight = nn.Parameter(weight)
    layer.W_o.weight = nn.Parameter(layer.W_o.weight.detach()[:, features])
    assert_close(layer(x, causal=True), out)
