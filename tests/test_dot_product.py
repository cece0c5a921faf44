"""The definition and the fused form, against PyTorch and against hand work."""

import inspect
import math
import statistics
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from same import assert_same, gradients
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from selfattn.checks import batch_shape, check_shapes
from selfattn.cost import largest_bytes
from selfattn.dot_product import (
    attention,
    attention_steps,
    attention_weights,
    fused_attention,
    masked_softmax,
    refuse,
    widen,
    with_causal,
)
from selfattn.masks import causal_mask, padding_mask

BOTH = [attention, fused_attention]
TABLES = [  # every way to broadcast to (2, 3, 7, 11)
    (),
    (1,),
    (11,),
    (7, 1),
    (1, 11),
    (7, 11),
    (3, 1, 1),
    (3, 7, 11),
    (2, 1, 1, 11),
    (2, 3, 7, 11),
]


def mixed(shape, device):
    """A mask of this shape with both answers in it, where it has room."""
    mask = torch.rand(shape, device=device) < 0.6
    mask.view(-1)[0] = True
    return mask


def by_loops(q, k, v, mask=None, bias=None, scale=None):
    """Attention one number at a time, as the formula reads, in Python."""
    outputs = []
    for i, query in enumerate(q.tolist()):
        scores = []
        for j, key in enumerate(k.tolist()):
            dot = sum(a * b for a, b in zip(query, key, strict=True))
            score = dot / math.sqrt(len(query)) if scale is None else None
            score = dot * scale if score is None else score
            scores.append(score + (0 if bias is None else bias[i][j].item()))
        seen = [j for j in range(len(k)) if mask is None or mask[i][j]]
        parts = {j: math.exp(scores[j]) for j in seen}
        outputs.append(
            [
                sum(parts[j] * v[j][c].item() for j in seen)
                / (sum(parts.values()) or 1.0)
                for c in range(v.shape[1])
            ]
        )
    return torch.tensor(outputs, dtype=torch.float64)


# By hand


def test_the_running_example_by_hand():
    """The cat sat: scores and weights as one works them out on paper."""
    q = torch.tensor([[1.0, 0.0], [0.0, 2.0], [2.0, 1.0]])
    k = torch.tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 1.0]])
    v = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    steps = attention_steps(q, k, v)
    assert steps.scores.tolist() == [[1, 2, 0], [2, 0, 2], [3, 4, 1]]
    assert_close(steps.scaled, steps.scores / math.sqrt(2))
    e = math.exp(1 / math.sqrt(2))  # one more point of score
    first = torch.tensor([e, e**2, 1.0]) / (1 + e + e**2)
    assert_close(steps.weights[0], first)
    assert_close(steps.output[0], first @ v)
    rounded = [[0.284, 0.576, 0.140], [0.446, 0.108, 0.446]]
    assert_close(steps.weights[:2], torch.tensor(rounded), atol=5e-4, rtol=0)


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("scale", [None, 0.3])
def test_equals_the_formula_in_loops(attend, scale):
    q, k, v = (
        torch.randn(n, d, dtype=torch.float64)
        for n, d in ((7, 5), (11, 5), (11, 13))
    )
    mask, bias = mixed((7, 11), "cpu"), torch.randn(7, 11).double()
    mask[3] = False
    assert_close(
        attend(q, k, v, mask=mask, bias=bias, scale=scale),
        by_loops(q, k, v, mask, bias, scale),
    )


def test_every_step_follows_from_the_one_before(qkv):
    q, k, v = qkv
    bias = torch.randn(3, 7, 11, dtype=torch.float64, device=q.device)
    mask = mixed((7, 11), q.device)
    mask[:, 0] = True
    steps = attention_steps(q, k, v, mask=mask, bias=bias, causal=True)
    allowed = mask & causal_mask(7, 11, device=q.device)
    assert_close(steps.scores, torch.einsum("...id,...jd->...ij", q, k))
    assert_close(steps.scaled, steps.scores / 5**0.5)
    assert_close(steps.biased, steps.scaled + bias)
    parts = steps.biased.exp() * allowed
    assert_close(steps.weights, parts / parts.sum(-1, keepdim=True))
    assert_close(steps.output, steps.weights @ v)


def test_without_bias_the_biased_scores_are_the_scaled_ones(qkv):
    steps = attention_steps(*qkv)
    assert torch.equal(steps.biased, steps.scaled)


def test_attention_is_the_last_of_its_steps(qkv):
    options = {
        "mask": mixed((7, 11), qkv[0].device),
        "bias": torch.randn(7, 11, device=qkv[0].device).double(),
        "causal": True,
        "scale": 0.7,
    }
    steps = attention_steps(*qkv, **options)
    assert torch.equal(attention(*qkv, **options), steps.output)
    q, k, _ = qkv
    assert torch.equal(attention_weights(q, k, **options), steps.weights)
    for name in options:  # and each of them counts
        fewer = {n: o for n, o in options.items() if n != name}
        assert not torch.equal(attention(*qkv, **fewer), steps.output)
        assert not torch.equal(attention_weights(q, k, **fewer), steps.weights)


# Against PyTorch


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("shape", TABLES, ids=str)
def test_a_mask_means_what_it_means_to_pytorch(qkv, attend, shape):
    mask = mixed(shape, qkv[0].device)
    theirs = mask.expand(2, 3, 7, 11)
    expected = F.scaled_dot_product_attention(*qkv, attn_mask=theirs)
    assert_same(attend(*qkv, mask=mask), expected, qkv)


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("shape", TABLES, ids=str)
def test_a_bias_means_what_it_means_to_pytorch(qkv, attend, shape):
    bias = torch.randn(
        shape, dtype=torch.float64, device=qkv[0].device, requires_grad=True
    )
    theirs = bias.expand(2, 3, 7, 11)
    expected = F.scaled_dot_product_attention(*qkv, attn_mask=theirs)
    assert_same(attend(*qkv, bias=bias), expected, (*qkv, bias))


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", TABLES, ids=str)
def test_mask_bias_and_causal_all_count(qkv, attend, causal, shape):
    device = qkv[0].device
    mask = padding_mask(torch.tensor([11, 4], device=device), 11)
    bias = torch.randn(shape, dtype=torch.float64, device=device)
    allowed = mask & causal_mask(7, 11, device=device) if causal else mask
    theirs = bias.expand(2, 3, 7, 11).masked_fill(~allowed, -math.inf)
    expected = F.scaled_dot_product_attention(*qkv, attn_mask=theirs)
    assert_same(
        attend(*qkv, mask=mask, bias=bias, causal=causal), expected, qkv
    )


@pytest.mark.parametrize("attend", BOTH)
def test_causal_on_squares_is_pytorchs(square, attend):
    expected = F.scaled_dot_product_attention(*square, is_causal=True)
    assert_same(attend(*square, causal=True), expected, square)


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("by", ["mask", "bias"])
def test_causal_on_squares_joins_what_else_is_given(square, attend, by):
    past = torch.ones(11, 11, device=square[0].device).tril().bool()
    if by == "mask":
        table = mixed((11, 11), past.device)
        theirs = table & past
    else:
        table = torch.randn(11, 11, device=past.device).double()
        theirs = table.masked_fill(~past, -math.inf)
    expected = F.scaled_dot_product_attention(*square, attn_mask=theirs)
    assert_same(attend(*square, causal=True, **{by: table}), expected, square)


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("n_q", [1, 3, 11, 13])
def test_causal_puts_the_last_query_on_the_last_key(square, attend, n_q):
    _, k, v = square
    q = torch.randn(2, 3, n_q, 5, dtype=k.dtype, device=k.device)
    allowed = torch.ones(n_q, 11, device=k.device).tril(11 - n_q).bool()
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
    assert_close(attend(q, k, v, causal=True), expected)


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0, -2.0])
def test_scale_takes_the_place_of_one_over_root_d(qkv, attend, scale):
    expected = F.scaled_dot_product_attention(*qkv, scale=scale)
    assert_same(attend(*qkv, scale=scale), expected, qkv)
    assert not torch.allclose(expected, attend(*qkv))


@pytest.mark.parametrize("attend", BOTH)
def test_float32_equals_pytorch(qkv, attend):
    single = [x.detach().float().requires_grad_() for x in qkv]
    expected = F.scaled_dot_product_attention(*single)
    assert_same(attend(*single), expected, single)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_equal_finite_differences(causal):
    q, k, v = (
        torch.randn(n, d, dtype=torch.float64, requires_grad=True)
        for n, d in ((5, 3), (7, 3), (7, 2))
    )
    assert torch.autograd.gradcheck(
        lambda *x: attention(*x, causal=causal), (q, k, v)
    )


# Half precision

HALF = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("gain", [1.0, 8.0, 60.0])  # 60: nearly one-hot rows
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("n_q", "n_k", "d"), [(7, 11, 5), (37, 53, 64), (101, 211, 128)]
)
def test_half_precision_errs_at_most_twice_as_much_as_pytorch(
    device, attend, dtype, gain, causal, n_q, n_k, d
):
    """Against float64, in value and gradient; both of PyTorch's ways."""
    if device == "cuda" and d == 5:
        d = 8  # its fused kernels want multiples of eight
    inputs = [
        (torch.randn(2, 3, n, d, device=device) * g).to(dtype)
        for n, g in ((n_q, gain), (n_k, 1.0), (n_k, 1.0))
    ]
    allowed = causal_mask(n_q, n_k, device=device) if causal else None

    def run(f, dtype):
        wide = [x.detach().to(dtype).requires_grad_() for x in inputs]
        output = f(*wide)
        return [output, *gradients(output, wide)]

    def pytorch(*x):
        return F.scaled_dot_product_attention(*x, attn_mask=allowed)

    exact = run(pytorch, torch.float64)

    def errors(f):
        return [
            (x.double() - e).abs().max().item()
            for x, e in zip(run(f, dtype), exact, strict=True)
        ]

    with sdpa_kernel(SDPBackend.MATH):
        by_products = errors(pytorch)
    theirs = zip(errors(pytorch), by_products, strict=True)
    ours = errors(lambda *x: attend(*x, causal=causal))
    for error, allowance in zip(ours, theirs, strict=True):
        assert error <= 2 * max(allowance)


def times_closer(size, seed):
    """How often our error in bfloat16 goes into that of the bare lines."""
    torch.manual_seed(seed)
    q, k, v = (torch.randn(3, 64, 16) * size).bfloat16()
    truth = attention(q.double(), k.double(), v.double())
    bare = (q @ k.mT / 4).softmax(dim=-1) @ v
    bare, ours = (
        (output.double() - truth).abs().max()
        for output in (bare, attention(q, k, v))
    )
    return (bare / ours).item()


def test_float32_inside_gains_the_more_the_larger_the_inputs():
    at = [
        statistics.median(times_closer(size, seed) for seed in range(100))
        for size in (1, 2, 4, 8)
    ]
    assert at == sorted(at)
    assert 1.5 < at[0] < 3  # "about half", in the chapter
    assert at[-1] > 20


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_comes_out_as_it_went_in(qkv, attend, dtype):
    q, k, v = (x.detach().to(dtype).requires_grad_() for x in qkv)
    output = attend(q, k, v)
    assert output.dtype == dtype
    assert all(g.dtype == dtype for g in gradients(output, (q, k, v)))


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_keeps_its_steps_in_float32(qkv, dtype):
    steps = attention_steps(*(x.to(dtype) for x in qkv))
    assert {x.dtype for x in steps[:-1]} == {torch.float32}


@pytest.mark.parametrize("attend", BOTH)
def test_float16_scores_may_exceed_float16(attend):
    """Scores of 64·40·40 = 102,400 lie past float16's largest, 65,504."""
    q = torch.full((3, 64), 40.0, dtype=torch.float16)
    k = torch.full((5, 64), 40.0, dtype=torch.float16)
    v = torch.arange(5.0).half()[:, None].expand(5, 64)
    output = attend(q, k, v)
    assert_close(output, torch.full_like(output, 2.0))


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("dtype", [*HALF, torch.float32, torch.float64])
@pytest.mark.parametrize("of_bias", [*HALF, torch.float32, torch.float64])
def test_a_bias_may_be_of_another_type(qkv, attend, dtype, of_bias):
    q, k, v = (x.detach().to(dtype) for x in qkv)
    bias = torch.randn(7, 11, device=q.device).to(of_bias)
    exact = attention(*(x.double() for x in (q, k, v)), bias=bias.double())
    output = attend(q, k, v, bias=bias)
    assert output.dtype == dtype
    # Rounding of the result alone, the bias being exact in float32.
    assert_close(output, exact.to(dtype), rtol=1.6e-2, atol=1e-3)


def test_widening_never_narrows():
    dtypes = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
    widened = [widen(torch.ones(1, dtype=d))[0].dtype for d in dtypes]
    assert widened == [torch.float32] * 3 + [torch.float64]
    x = torch.ones(3)
    same, none = widen(x, None)
    assert same is x
    assert none is None


# Rows that see nothing


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("by", ["mask", "bias", "both", "causal"])
@pytest.mark.parametrize("width", [5, 13])  # d_v = d is PyTorch's fused path
def test_a_query_that_sees_nothing_gets_zeros(qkv, attend, by, width):
    q, k, v = qkv
    v = v[..., :width]
    seen = torch.ones(7, 11, dtype=torch.bool, device=q.device)
    seen[[0, 3]] = False
    bias = torch.zeros(7, 11, dtype=torch.float64, device=q.device)
    if by == "mask":
        output = attend(q, k, v, mask=seen)
    elif by == "bias":
        output = attend(q, k, v, bias=bias.masked_fill(~seen, -math.inf))
    elif by == "both":  # each leaves something, together they leave nothing
        half = seen.clone()
        half[[0, 3], :5] = True
        other = bias.clone()
        other[[0, 3], :5] = -math.inf
        output = attend(q, k, v, mask=half, bias=other)
    else:  # two queries sit before the first key
        q, k, v = q, k[..., :5, :], v[..., :5, :]
        seen = causal_mask(7, 5, device=q.device)
        output = attend(q, k, v, causal=True)
    empty = ~seen.any(dim=-1)
    assert empty.sum() == 2
    assert torch.equal(
        output[..., empty, :], torch.zeros_like(output[..., empty, :])
    )
    assert (output[..., ~empty, :] != 0).all()
    for grad in torch.autograd.grad(output.square().sum(), qkv):
        assert grad.isfinite().all()


@pytest.mark.parametrize("attend", BOTH)
def test_when_nobody_sees_anything_all_is_zero(qkv, attend):
    nothing = torch.zeros(1, dtype=torch.bool, device=qkv[0].device)
    output = attend(*qkv, mask=nothing)
    assert not output.any()
    assert not any(g.any() for g in gradients(output, qkv))


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("causal", [False, True])
def test_no_keys_no_queries_no_batch(attend, causal):
    empty = [((0, 7, 5), (0, 11, 5)), ((3, 0, 5), (3, 7, 5))]
    for q, k in empty:
        output = attend(
            torch.ones(q), torch.ones(k), torch.ones(k), causal=causal
        )
        assert output.shape == q
    nothing = torch.ones(3, 0, 5)
    output = attend(torch.ones(3, 7, 5), nothing, nothing, causal=causal)
    assert torch.equal(output, torch.zeros(3, 7, 5))
    no_width = attend(torch.ones(7, 5), torch.ones(11, 5), torch.ones(11, 0))
    assert no_width.shape == (7, 0)


def test_masked_softmax_of_an_additive_empty_row():
    scores = torch.tensor([[-math.inf, -math.inf], [-math.inf, 3.0]])
    scores.requires_grad_()
    weights = masked_softmax(scores)
    assert weights.tolist() == [[0, 0], [0, 1]]
    (weights * torch.tensor([2.0, 3.0])).sum().backward()
    assert scores.grad.tolist() == [[0, 0], [0, 0]]  # and not NaN


def test_masked_softmax_leaves_its_scores_alone():
    scores, mask = torch.randn(3, 5), mixed((3, 5), "cpu")
    before = scores.clone(), mask.clone()
    masked_softmax(scores, mask)
    assert torch.equal(scores, before[0])
    assert torch.equal(mask, before[1])


# Axes


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize(
    ("batch_q", "batch_k", "batch_v"),
    [
        ((), (), ()),
        ((3,), (3,), (3,)),
        ((), (3,), (3,)),
        ((3,), (), ()),
        ((3,), (3,), (2, 3)),
        ((2, 1), (1, 3), (2, 3)),
        ((2, 3), (3,), (1, 1)),
        ((5, 2, 3), (5, 2, 3), (5, 2, 3)),
        ((5, 1, 3), (2, 3), ()),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("width", [5, 13])
def test_axes_before_the_last_two_broadcast(
    attend, batch_q, batch_k, batch_v, masked, width
):
    q = torch.randn(*batch_q, 7, 5, dtype=torch.float64, requires_grad=True)
    k = torch.randn(*batch_k, 11, 5, dtype=torch.float64, requires_grad=True)
    v = torch.randn(
        *batch_v, 11, width, dtype=torch.float64, requires_grad=True
    )
    batch = torch.broadcast_shapes(batch_q, batch_k, batch_v)
    mask = mixed((7, 11), "cpu") if masked else None
    output = attend(q, k, v, mask=mask)
    assert output.shape == (*batch, 7, width)
    wide = [
        x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:])
        for x in (q, k, v)
    ]
    one_by_one = torch.stack(
        [attention(*x, mask=mask) for x in zip(*wide, strict=True)]
    )
    expected = one_by_one.view(*batch, 7, width)
    assert_same(output, expected, (q, k, v))


@pytest.mark.parametrize("attend", BOTH)
def test_memory_layout_does_not_matter(attend):
    q = torch.randn(2, 7, 3, 5).transpose(1, 2)
    k = torch.randn(2, 3, 5, 11).mT
    v = torch.randn(2, 3, 1, 5).expand(2, 3, 11, 5)
    assert not any(x.is_contiguous() for x in (q, k, v))
    expected = attention(q.contiguous(), k.contiguous(), v.contiguous())
    assert_close(attend(q, k, v), expected)


@pytest.mark.parametrize("attend", BOTH)
def test_nothing_the_caller_passed_in_is_modified(qkv, attend):
    given = [
        *(x.detach() for x in qkv),
        mixed((7, 11), qkv[0].device),
        torch.randn(7, 11, device=qkv[0].device).double(),
    ]
    before = [x.clone() for x in given]
    q, k, v, mask, bias = given
    attend(q, k, v, mask=mask, bias=bias, causal=True)
    for now, then in zip(given, before, strict=True):
        assert torch.equal(now, then)


@pytest.mark.parametrize("attend", BOTH)
def test_the_causal_mask_is_made_where_the_queries_are(attend):
    q, k = torch.randn(7, 5), torch.randn(11, 5)
    with torch.device("meta"):  # where new tensors go unless told otherwise
        assert attend(q, k, k, causal=True).device == q.device


def test_causal_joins_the_mask(qkv):
    q, k, _ = qkv
    mask, past = mixed((7, 11), q.device), causal_mask(7, 11, device=q.device)
    assert with_causal(None, False, q, k) is None
    assert with_causal(mask, False, q, k) is mask
    assert torch.equal(with_causal(None, True, q, k), past)
    assert torch.equal(with_causal(mask, True, q, k), mask & past)


# Dropout of weights


@pytest.mark.parametrize("attend", BOTH)
def test_dropped_weights_are_zero_and_the_others_grow(attend):
    """With v the identity, the output is the weights that were used."""
    q, k = torch.randn(2, 1, 211, 5), torch.randn(2, 1, 101, 5)
    v, p = torch.eye(101).expand(2, 1, 101, 101), 0.3
    used = attend(q, k, v, dropout_p=p)
    kept = used != 0
    weights = attention_weights(q, k)
    assert_close(used[kept], weights[kept] / (1 - p))
    n = used.numel()
    # Five standard deviations of a binomial count.
    slack = 5 * math.sqrt(p * (1 - p) / n)
    assert abs((~kept).sum().item() / n - p) < slack


@pytest.mark.parametrize("attend", BOTH)
def test_dropping_none_and_dropping_all(qkv, attend):
    assert torch.equal(attend(*qkv, dropout_p=0.0), attend(*qkv))
    assert not attend(*qkv, dropout_p=1.0).any()


def test_the_weights_of_the_steps_are_those_before_dropping(qkv):
    steps = attention_steps(*qkv, dropout_p=0.5)
    assert torch.equal(steps.weights, attention_steps(*qkv).weights)
    assert not torch.allclose(steps.output, steps.weights @ qkv[2])


@pytest.mark.parametrize("attend", BOTH)
@pytest.mark.parametrize("p", [-0.1, 1.5, math.nan])
def test_a_share_that_is_none_is_refused(qkv, attend, p):
    with pytest.raises(ValueError, match=rf"between 0 and 1, but it is {p}"):
        attend(*qkv, dropout_p=p)


# What the fused form is for


@pytest.mark.parametrize("axes", [(), (3,), (2, 3)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"causal": True},
        {"mask": torch.arange(211) < 200},
        {"bias": torch.zeros(211)},
        {"mask": torch.arange(211) < 200, "bias": torch.zeros(211)},
    ],
    ids=["plain", "causal", "mask", "bias", "both"],
)
def test_the_fused_form_never_makes_the_table(axes, options):
    n, d = 211, 8
    q = torch.randn(*axes, n, d)
    limit = q.element_size() * n * n  # of one head alone
    assert largest_bytes(lambda: fused_attention(q, q, q, **options)) < limit
    assert largest_bytes(lambda: attention(q, q, q, **options)) >= limit


# Errors


def shapes(*sizes):
    return [torch.randn(s) for s in sizes]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            ((7, 5), (11, 3), (11, 13)),
            r"same number of features, at least 1, "
            r"but q is \(7, 5\) and k is \(11, 3\)",
        ),
        (((7, 0), (11, 0), (11, 13)), r"at least 1, but q is \(7, 0\)"),
        (
            ((7, 5), (11, 5), (2, 13)),
            r"one value per key, but k is \(11, 5\) and v is \(2, 13\)",
        ),
        (((5,), (11, 5), (11, 5)), r"q must be .*two axes.* it is \(5,\)"),
        (((7, 5), (5,), (11, 5)), r"k must be .*two axes.* it is \(5,\)"),
        (((7, 5), (11, 5), (5,)), r"v must be .*two axes.* it is \(5,\)"),
        (
            ((2, 7, 5), (3, 11, 5), (3, 11, 5)),
            r"must broadcast together, but q is \(2, 7, 5\), "
            r"k is \(3, 11, 5\) and v is \(3, 11, 5\)",
        ),
        (
            ((3, 7, 5), (3, 11, 5), (2, 11, 5)),
            r"must broadcast together.* v is \(2, 11, 5\)",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_named(sizes, message):
    with pytest.raises(ValueError, match=message):
        check_shapes(*shapes(*sizes))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_whole_numbers_are_no_features(place):
    inputs = shapes((7, 5), (11, 5), (11, 5))
    inputs[place] = inputs[place].long()
    with pytest.raises(
        ValueError, match=rf"{'qkv'[place]} must be floating-point.*int64"
    ):
        check_shapes(*inputs)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_types_are_not_mixed(place):
    inputs = shapes((7, 5), (11, 5), (11, 5))
    inputs[place] = inputs[place].double()
    with pytest.raises(ValueError, match=r"one type.*float64"):
        check_shapes(*inputs)


@pytest.mark.parametrize(
    "shape", [(11, 7), (8, 11), (2, 7, 11), (4, 1, 3, 7, 11), (1, 2, 3, 7, 11)]
)
def test_a_table_that_would_make_more_rows_is_refused(qkv, shape):
    fits = r"broadcast to \(..., n_q, n_k\) = \(2, 3, 7, 11\)"
    asked = str(shape).replace("(", r"\(").replace(")", r"\)")
    message = f"{fits}, but it is {asked}"
    with pytest.raises(ValueError, match=f"mask must {message}"):
        check_shapes(*qkv, torch.ones(shape, dtype=torch.bool))
    with pytest.raises(ValueError, match=f"bias must {message}"):
        check_shapes(*qkv, None, torch.ones(shape))


AXES = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3).map(tuple)


@given(shapes=st.lists(AXES, min_size=1, max_size=3))
def test_axes_broadcast_as_in_pytorch(shapes):
    tensors = [torch.empty(*shape, 7, 5) for shape in shapes]
    try:
        expected = torch.broadcast_shapes(*shapes)
    except RuntimeError:
        with pytest.raises(ValueError, match="cannot be broadcast"):
            batch_shape(*tensors)
    else:
        assert batch_shape(*tensors) == tuple(expected)


def test_axes_broadcast_without_an_algebra_system():
    """PyTorch's own rule imports one, and every examination of the doctor, in
    a process of its own, waited a second for that."""
    lines = (
        "import sys, torch; from selfattn import attention\n"
        "attention(torch.ones(2, 3, 5), *torch.ones(2, 3, 5)[:, :2])\n"
        "assert 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", lines], check=True)


def test_a_table_fits_the_broadcast_batch():
    q, k, v = shapes((2, 1, 7, 5), (1, 3, 11, 5), (11, 5))
    check_shapes(q, k, v, torch.ones(2, 3, 7, 11, dtype=torch.bool))
    assert batch_shape(q, k, v) == (2, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_numbers_are_no_mask(qkv, dtype):
    with pytest.raises(ValueError, match=rf"True = may.*{dtype}.*`bias`"):
        check_shapes(*qkv, torch.ones(7, 11, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64])
def test_yes_and_no_are_no_bias(qkv, dtype):
    with pytest.raises(ValueError, match=rf"added to the.*{dtype}.*`mask`"):
        check_shapes(*qkv, None, torch.ones(7, 11, dtype=dtype))


@pytest.mark.parametrize("attend", [attention_steps, fused_attention])
def test_every_form_checks(attend):
    # Unwrapped, since with types checked at run time the hook speaks first.
    attend = inspect.unwrap(attend)
    q, k, v = shapes((7, 5), (11, 5), (11, 5))
    with pytest.raises(ValueError, match="one value per key"):
        attend(q, k, v[:-1])
    with pytest.raises(ValueError, match="mask must broadcast"):
        attend(q, k, v, mask=torch.ones(11, 7, dtype=torch.bool))
    with pytest.raises(ValueError, match="bias must broadcast"):
        attend(q, k, v, bias=torch.ones(11, 7))


def test_refusing_says_who_what_and_why():
    table = torch.ones(7, 11)
    refuse("that_attention", "it never makes it", None, None)
    with pytest.raises(
        ValueError, match="that_attention cannot use a mask: it never makes it"
    ):
        refuse("that_attention", "it never makes it", table, None)
    with pytest.raises(ValueError, match="cannot use a bias"):
        refuse("that_attention", "it never makes it", None, table)


def test_without_keys_the_batch_is_still_broadcast():
    """PyTorch's kernel returned the queries' batch alone."""
    q, k, v = (torch.randn(*shape, 5) for shape in ((7,), (2, 3, 0), (3, 0)))
    assert torch.equal(fused_attention(q, k, v), torch.zeros(2, 3, 7, 5))


@pytest.mark.parametrize("attend", [attention, fused_attention])
@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        *(("scale", math.nan), ("scale", "1"), ("scale", 1j)),
        *(("dropout_p", "x"), ("dropout_p", None)),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_an_option_that_is_no_number_is_named(attend, option, wrong):
    q = torch.randn(3, 5)
    message = rf"{option} must be a (finite )?number, but it is"
    with pytest.raises((TypeError, ValueError), match=message):
        attend(q, q, q, **{option: wrong})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("text",), "scores must be a tensor, but it is 'text'"),
        ((torch.eye(3).to_sparse(),), "scores must be a dense tensor"),
        ((torch.eye(3).long(),), "scores must be floating-point"),
        ((torch.eye(3).cfloat(),), "scores must be floating-point"),
        ((torch.eye(3), 1), "mask must be a tensor, but it is 1"),
        ((torch.eye(3), torch.eye(3)), "mask must be boolean"),
        ((torch.eye(3), torch.ones(2, 3, 3) > 0), "mask must broadcast to"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_no_table_of_scores_is_named(given, says):
    """It said that a text has no `all`, or made two tables of one."""
    with pytest.raises((TypeError, ValueError), match=says):
        masked_softmax(*given)


@pytest.mark.parametrize("k", [None, 1j, [1.0], torch.tensor(1.0)])
@pytest.mark.usefixtures("unchecked")
def test_weights_of_what_is_no_key_are_refused_by_name(k):
    """It cut the values out of k before it looked at what k is."""
    with pytest.raises((TypeError, ValueError), match=r"k must be"):
        attention_weights(torch.randn(3, 5), k)


@pytest.mark.parametrize("exponent", [20, 400])
@pytest.mark.parametrize("attend", [attention, fused_attention])
def test_a_scale_that_no_number_holds_is_refused(unchecked, attend, exponent):
    """Python's own words were of a number too large to convert."""
    with pytest.raises(ValueError, match="scale must be a finite number"):
        attend(*torch.randn(3, 2, 2), scale=10**exponent)


def test_keys_of_infinity_leave_the_rows_that_are_sound_their_gradients():
    """Large keys count as spoilt if sums overflow by them, else never."""
    q, k, v = torch.randn(3, 2, 1, 5, 4)
    k[0, 0, 0] = 1e30
    q[0] = 0
    v[1] = math.nan
    x = q.clone().requires_grad_()
    output = fused_attention(x, k, v, causal=True)
    [grad] = torch.autograd.grad(output[0].sum(), x)
    assert grad[0].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_who_may_see_nothing_gets_zeros_though_all_scores_overflow(dtype):
    """That it sees nothing only the table tells: what is hidden by -inf has
    the score NaN, if it overflows, even between queries and keys of ones.
    """
    q, k, v = (torch.ones(n, 8, dtype=dtype) for n in (2, 3, 3))
    mask = torch.tensor([[False] * 3, [True] * 3])
    output = fused_attention(q, k, v, mask=mask, scale=1e38)
    assert torch.equal(output[0], torch.zeros_like(output[0]))
    expected = attention(q, k, v, mask=mask, scale=1e38)
    assert torch.equal(output.isnan(), expected.isnan())
    assert output[1].isnan().all()


@pytest.mark.parametrize("places", [("cpu", "meta"), ("meta", "cpu")])
def test_softmax_says_that_a_mask_is_elsewhere(places):
    """PyTorch said it, of no argument."""
    scores, mask = (torch.ones(2, 3, device=place) for place in places)
    with pytest.raises(ValueError, match="mask must be where scores is"):
        masked_softmax(scores, mask.bool())


@pytest.mark.parametrize("attend", [attention, fused_attention])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("seen", "hidden", "up"),
    [(0.8, 1.0, 0.01), (0.6, 0.8, 0.25), (0.0, 0.8, 0.25), (0.0, 0.6, 0.45)],
)
def test_the_largest_value_is_hidden_among_large_ones(
    attend, dtype, seen, hidden, up
):
    """Who saw a value of 1e30 felt the largest number there is, hidden: its
    product overflowed on the way back, and 0 · ∞ is NaN. So it was with less
    of both where what came from behind was large.
    """
    most = torch.finfo(dtype).max
    q, k, v = torch.randn(3, 2, 11, 5).to(dtype)
    v, mask = v * most**seen, torch.arange(11) % 4 != 3
    given = [x.requires_grad_() for x in (q, k, v)]
    up = torch.full((2, 11, 5), most**up, dtype=dtype)
    wanted = torch.autograd.grad(attend(*given, mask=mask), given, up)
    with torch.no_grad():
        v[:, 3], v[:, 7] = most**hidden, most
    found = torch.autograd.grad(attend(*given, mask=mask), given, up)
    assert all(x.isfinite().all() for x in wanted)
    assert_close(found, wanted)
