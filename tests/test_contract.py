"""The contract: what every mechanism of the book promises.

A new mechanism is one line in one of the first four lists, and one in COSTS.
"""

import inspect
import math
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from same import assert_same, gradients
from torch import nn
from torch.autograd import forward_ad
from torch.autograd.functional import jacobian
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import selfattn
from selfattn.cost import flops, largest_bytes, log_log_slope, peak_bytes
from selfattn.devices.ring import ring_attention
from selfattn.devices.ulysses import ulysses_attention
from selfattn.dot_product import Attend, attention, fused_attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import linear_attention, linear_weights
from selfattn.efficient.linformer import LinformerAttention, MeanPooling
from selfattn.efficient.longformer import longformer_attention, longformer_mask
from selfattn.efficient.performer import (
    performer_attention,
    performer_weights,
)
from selfattn.efficient.reformer import lsh_attention
from selfattn.efficient.sparse import (
    fixed_attention,
    fixed_mask,
    strided_attention,
    strided_mask,
)
from selfattn.efficient.swin import swin_attention, swin_mask
from selfattn.efficient.window import sliding_window_attention
from selfattn.masks import padding_mask, window_mask
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import AdditiveAttention, MultiplicativeAttention
from selfattn.positions import ShawAttention, TransformerXLAttention
from selfattn.random_features import random_directions

# Equal `attention`, whatever they are given.
EXACT: list[Attend] = [
    fused_attention,
    flash_attention,
    partial(flash_attention, block_q=4, block_k=3),
    ring_attention,  # of one rank; test_devices.py has more
    ulysses_attention,
]


def grid_of(n):
    """The grid of n tokens that is nearest to a square."""
    rows = max(i for i in range(1, n + 1) if i * i <= n and n % i == 0)
    return rows, n // rows


def on_a_grid(q, k, v, *, mask=None, bias=None, causal=False):
    """Swin on any number of tokens."""
    grid = grid_of(k.shape[-2] if k is not None else q.shape[-2])
    options = {"mask": mask, "bias": bias, "causal": causal}
    return swin_attention(q, k, v, grid=grid, **WINDOWS, **options)


def scores_on_a_grid(n):
    """How many scores that makes: of each window with itself."""
    rows, columns = grid_of(n)
    down = Counter((i - 1) // 3 for i in range(rows)).values()
    right = Counter((j - 2) // 4 for j in range(columns)).values()
    return sum(i * i for i in down) * sum(j * j for j in right)


WINDOWS = {"window": (3, 4), "shift": (1, 2)}

# Equal `attention` with the mask they publish: (mechanism, mask of n_q, n_k).
RESTRICTED: list[tuple[Attend, Callable[[int, int], torch.Tensor]]] = [
    (
        partial(sliding_window_attention, window=3),
        partial(window_mask, window=3),
    ),
    (on_a_grid, lambda n, _: swin_mask(grid_of(n), **WINDOWS)),
    (
        partial(strided_attention, stride=3),
        partial(strided_mask, stride=3),
    ),
    (partial(fixed_attention, stride=3), partial(fixed_mask, stride=3)),
    (
        partial(longformer_attention, window=3),
        partial(longformer_mask, window=3),
    ),
    # All tokens are in the one bucket; with more, the mask depends on them.
    (
        partial(lsh_attention, n_buckets=1),
        lambda n_q, n_k: torch.ones(n_q, n_k, dtype=torch.bool),
    ),
]


def quadratic(q, k, v, *, mask=None, bias=None, causal=False):
    """Linear attention with its table of weights, as PyTorch has elu."""
    weights = (F.elu(q) + 1) @ (F.elu(k) + 1).mT
    weights = weights.tril() if causal else weights
    return weights / weights.sum(dim=-1, keepdim=True) @ v


def favor(q, k, v, *, mask=None, bias=None, causal=False):
    """Performer's 16 features with their table of weights, by logarithms."""
    omega = random_directions(16, q.shape[-1]).to(q)
    q, k = (x / x.shape[-1] ** 0.25 for x in (q, k))
    of_k = k @ omega.mT - k.square().sum(dim=-1, keepdim=True) / 2
    table = (q @ omega.mT)[..., :, None, :] + of_k[..., None, :, :]
    no_scores = q[..., :1] * 0, k[..., :1] * 0
    return attention(*no_scores, v, bias=table.logsumexp(-1), causal=causal)


# Equal a quadratic form of their own: (mechanism, that form).
luong_dot = MultiplicativeAttention()
KERNELS: list[tuple[Attend, Attend]] = [
    (linear_attention, quadratic),
    (luong_dot, partial(attention, scale=1.0)),
    (partial(performer_attention, n_features=16), favor),
]


def pooled(q, k, v, *, mask=None, bias=None, causal=False, by=attention):
    """Linformer's means of neighbours, as weights on the tokens."""
    n = k.shape[-2]
    m = min(n, 4)
    parts = [range(t * n // m, -((t + 1) * n // -m)) for t in range(m)]
    means = [[(j in part) / len(part) for j in range(n)] for part in parts]
    means = torch.tensor(means, dtype=k.dtype, device=k.device)
    return by(q, means @ k, means @ v)


# Equal such a form, too, but cannot be causal: each key they look at may hold
# tokens of all times.
TIMELESS: list[tuple[Attend, Attend]] = [
    (LinformerAttention(nn.Identity()), attention),
    (LinformerAttention(MeanPooling(4)), pooled),
]


class Cost(NamedTuple):
    """What a mechanism costs on n tokens of one head of width d."""

    attend: Attend
    flops: Callable[[int, int], int]  # of n and d, counted by hand
    time_grows: float  # the exponent of n
    memory_grows: float  # at most
    lengths: tuple[int, ...] = (128, 256, 512, 1024, 2048)


COSTS = [
    Cost(attention, lambda n, d: 4 * n * n * d, 2, 2),
    Cost(luong_dot, lambda n, d: 4 * n * n * d, 2, 2),
    Cost(fused_attention, lambda n, d: 4 * n * n * d, 2, 1),
    Cost(flash_attention, lambda n, d: 4 * n * n * d, 2, 1),
    Cost(ring_attention, lambda n, d: 4 * n * n * d, 2, 1),
    Cost(ulysses_attention, lambda n, d: 4 * n * n * d, 2, 1),
    # Blocks of 64 queries see 64 + 2 * 3 keys; the first and the last 67.
    Cost(RESTRICTED[0][0], lambda n, d: 4 * d * (70 * n - 2 * 3 * 64), 1, 1),
    Cost(
        on_a_grid,
        lambda n, d: 4 * d * scores_on_a_grid(n),
        *(1, 1),
        lengths=(512, 1024, 2048, 4096, 8192),  # of several lines each
    ),
    # With a stride of √n: bands as of a window, and √n classes of √n tokens.
    Cost(
        strided_attention,
        lambda n, d: (
            4 * d * (3 * n**1.5 - 2 * n - 2 * n + 2 * n**0.5 + n**1.5)
        ),
        *(1.5, 1),
        lengths=(4096, 6400),
    ),
    # Each block with itself, and everyone with the last of each block.
    Cost(
        fixed_attention,
        lambda n, d: 4 * d * 2 * n**1.5,
        *(1.5, 1),
        lengths=(4096, 6400),
    ),
    # Blocks of 64 queries see 64 + 2 * 2 keys and the global one, which sees
    # itself besides all.
    Cost(
        partial(longformer_attention, window=3),
        lambda n, d: 4 * d * (69 * n - 2 * 2 * 64 + n + 1),
        *(1, 1),
    ),
    # All in one bucket; before that, each meets the one direction.
    Cost(
        partial(lsh_attention, n_buckets=1),
        lambda n, d: 4 * n * n * d + 4 * n * d,
        *(2, 1),
        lengths=(512, 1024, 2048, 4096),  # of two tiles and more
    ),
    # Keys and queries each meet the memory, d x d.
    Cost(linear_attention, lambda n, d: 4 * n * d * d, 1, 1),
    # Here it is 16 x d, the sum of weights is one more, and before that they
    # each meet 16 directions.
    Cost(
        partial(performer_attention, n_features=16),
        lambda n, d: 4 * n * 16 * (d + 1 + d),
        *(1, 1),
    ),
    Cost(TIMELESS[0][0], lambda n, d: 4 * n * n * d, 2, 1),
    Cost(TIMELESS[1][0], lambda n, d: 4 * n * 4 * d, 1, 1),
]


def restricted_to(published, by=attention):
    """The definition, with a mask that is always there."""

    def reference(q, k, v, *, mask=None, bias=None, causal=False):
        own = published(q.shape[-2], k.shape[-2]).to(q.device)
        both = own if mask is None else own & mask
        return by(q, k, v, mask=both, bias=bias, causal=causal)

    return reference


# Each mechanism, and what it must equal.
PAIRS = [
    *((attend, attention) for attend in EXACT),
    *((attend, restricted_to(mask)) for attend, mask in RESTRICTED),
    *KERNELS,
    *TIMELESS,
]
EVERY = [attention, *(attend for attend, _ in PAIRS)]
# And what its error in half precision is held against: PyTorch's own kernel,
# where there is one. (The definition errs less: it computes in float32.)
RIVALS = [
    *(fused_attention for _ in EXACT),
    *(restricted_to(mask, by=fused_attention) for _, mask in RESTRICTED),
    *(form for _, form in KERNELS),
    *(fused_attention, partial(pooled, by=fused_attention)),
]


@pytest.fixture(scope="module", autouse=True)
def alone():
    """A world of one rank, for those that ask for a world."""
    dist.init_process_group(
        "gloo", store=dist.HashStore(), rank=0, world_size=1
    )
    yield
    dist.destroy_process_group()


def name(attend):
    """What a test of this mechanism is called."""
    if isinstance(attend, tuple):
        return name(attend[0])
    if isinstance(attend, bool):
        return "causal" if attend else "full"
    if isinstance(attend, partial):
        options = "-".join(f"{n}={o}" for n, o in attend.keywords.items())
        return f"{name(attend.func)}-{options}"
    return getattr(attend, "__name__", type(attend).__name__)


def first(case):
    """The mechanism, be it in company or by itself."""
    return case[0] if isinstance(case, tuple) else case


def causally(what, cases):
    """Each case without and, unless it cannot be, with the future hidden."""
    both = [(case, causal) for case in cases for causal in (False, True)]
    able = [
        (case, causal)
        for case, causal in both
        if not (causal and first(case) in [first(t) for t in TIMELESS])
    ]
    return pytest.mark.parametrize((what, "causal"), able, ids=name)


each = pytest.mark.parametrize("attend", EVERY, ids=name)
each_of_the_past = pytest.mark.parametrize(
    "attend", [f for f in EVERY if f not in [t for t, _ in TIMELESS]], ids=name
)
each_causally = causally("attend", EVERY)
pair_causally = causally("pair", PAIRS)


def honoured(attend, q, k, v, **options):
    """The output, or None if what is given is refused, and by name."""
    try:
        return attend(q, k, v, **options)
    except ValueError as error:
        given = [n for n in ("mask", "bias") if options.get(n) is not None]
        assert any(f"cannot use a {n}" in str(error) for n in given), error
        return None


# What it computes


@pytest.mark.parametrize(
    ("weigh", "form"),
    [
        (linear_weights, quadratic),
        (partial(performer_weights, n_features=16), favor),
    ],
)
@pytest.mark.parametrize("causal", [False, True])
def test_the_weights_published_are_those_of_the_form(
    square, weigh, form, causal
):
    q, k, v = square
    actual = weigh(q, k, causal=causal) @ v
    assert_same(actual, form(*square, causal=causal), square)


@pair_causally
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_each_equals_its_reference_or_refuses(
    square, pair, causal, padded, biased
):
    """In value and gradient. What it is given is honoured, or refused."""
    attend, reference = pair
    device = square[0].device
    lengths = torch.tensor([11, 4], device=device)
    options = {
        "mask": padding_mask(lengths, 11) if padded else None,
        "bias": torch.randn(3, 11, 11, dtype=torch.float64, device=device)
        if biased
        else None,
        "causal": causal,
    }
    actual = honoured(attend, *square, **options)
    if actual is not None:
        assert_same(actual, reference(*square, **options), square)
    else:
        assert padded or biased


@causally("attend", EXACT)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_exact_ones_do_so_with_other_queries_than_keys(
    qkv, attend, causal, padded, biased
):
    device = qkv[0].device
    mask = padding_mask(torch.tensor([11, 4], device=device), 11)
    bias = torch.randn(
        3, 7, 11, dtype=torch.float64, device=device, requires_grad=True
    )
    options = {"mask": mask if padded else None, "causal": causal}
    inputs = qkv
    if biased:  # and the bias may be learned
        options["bias"], inputs = bias, (*qkv, bias)
    expected = attention(*qkv, **options)
    assert_same(attend(*qkv, **options), expected, inputs)


@pytest.mark.parametrize("attend", EXACT, ids=name)
@pytest.mark.parametrize("n_q", [1, 3, 13])
def test_exact_ones_put_the_last_query_on_the_last_key(square, attend, n_q):
    _, k, v = square
    q = torch.randn(2, 3, n_q, 5, dtype=k.dtype, device=k.device)
    assert_close(attend(q, k, v, causal=True), attention(q, k, v, causal=True))


@pair_causally
@pytest.mark.parametrize("n", [1, 2, 7, 64, 131])
def test_no_length_is_special(pair, causal, n):
    """Odd lengths, blocks that come out even, and blocks that do not."""
    attend, reference = pair
    q, k, v = torch.randn(3, 2, n, 5, dtype=torch.float64)
    expected = reference(q, k, v, causal=causal)
    assert_close(attend(q, k, v, causal=causal), expected)


# Causality


@each_of_the_past
def test_the_future_changes_no_bit_of_the_past(square, attend):
    q, k, v = (x.detach() for x in square)
    before = attend(q, k, v, causal=True)
    k, v = k.clone(), v.clone()
    k[..., 6:, :], v[..., 6:, :] = 3.0, -100.0
    after = attend(q, k, v, causal=True)
    assert torch.equal(after[..., :6, :], before[..., :6, :])
    moved = (after != before).any(dim=-1)
    assert moved[..., 6:].all()


@each_of_the_past
def test_the_jacobian_is_exactly_zero_beyond_the_diagonal(attend):
    n = 7
    q, k, v = torch.randn(3, n, 3, dtype=torch.float64)
    for of in jacobian(
        lambda k, v: attend(q, k, v, causal=True).sum(dim=-1), (k, v)
    ):
        reaches = of.abs().sum(dim=-1)  # (n_q, n_k)
        assert not reaches.triu(1).any()
    assert (reaches.diagonal() > 0).all()  # of the values


@pytest.mark.parametrize("attend", [t for t, _ in TIMELESS], ids=name)
def test_what_cannot_be_causal_says_so_and_why(square, attend):
    with pytest.raises(ValueError, match=r"cannot be causal: .+ future"):
        attend(*square, causal=True)


# Rows that see nothing


@each
def test_a_query_that_sees_nothing_gets_zeros_and_clean_gradients(
    square, attend
):
    mask = torch.ones(11, 11, dtype=torch.bool, device=square[0].device)
    mask[[0, 4]] = False
    output = honoured(attend, *square, mask=mask)
    if output is None:
        return
    assert not output[..., [0, 4], :].any()
    assert output[..., 1:4, :].all()
    for grad in torch.autograd.grad(output.square().sum(), square):
        assert grad.isfinite().all()


@pytest.mark.parametrize("attend", [attention, *EXACT], ids=name)
def test_queries_before_the_first_key_get_zeros(qkv, attend):
    q, k, v = qkv
    output = attend(q, k[..., :5, :], v[..., :5, :], causal=True)
    assert not output[..., :2, :].any()
    assert output[..., 2:, :].all()
    for grad in torch.autograd.grad(output.square().sum(), qkv):
        assert grad.isfinite().all()


# What is hidden


def blind(attend, q, k, v, at, causal):
    """Which queries do not see a key, (batch, heads, n_q): those that another
    value there does not move.
    """
    other = v.clone()
    other[0, 0, at] += 3.0
    before, after = (attend(q, k, x, causal=causal) for x in (v, other))
    return (before == after).all(dim=-1)


@each_causally
@pytest.mark.parametrize(
    ("which", "poison"),
    [("k", math.nan), ("v", math.nan), ("k", math.inf), ("kv", -math.inf)],
)
@pytest.mark.usefixtures("unchecked")
def test_what_a_query_cannot_see_it_does_not_feel(
    attend, causal, which, poison
):
    """Nor what another sequence of the batch holds: 0 · NaN is NaN, and a
    group that was padded with the last token of all held its NaN, too.
    """
    q, k, v = torch.randn(3, 2, 1, 40, 5).double()
    clean = attend(q, k, v, causal=causal)
    for at in (17, 39):
        unseeing = blind(attend, q, k, v, at, causal)
        assert unseeing[1].all()
        bad = {"k": k.clone(), "v": v.clone()}
        for name in which:
            bad[name][0, 0, at] = poison
        output = attend(q, bad["k"], bad["v"], causal=causal)
        assert_close(output[unseeing], clean[unseeing])


@pytest.mark.parametrize("attend", [attention, *EXACT], ids=name)
@pytest.mark.parametrize("by", ["mask", "bias"])
@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_padding_may_hold_anything(attend, by, poison):
    """Values that no query sees: in output and gradients."""
    q, k, v = torch.randn(3, 2, 3, 11, 5).double()
    mask = padding_mask(torch.tensor([11, 4]), 11)
    added = torch.zeros(mask.shape).double().masked_fill(~mask, -math.inf)
    table = {"mask": mask} if by == "mask" else {"bias": added}
    spoilt = v.clone()
    spoilt[1, :, 4:] = poison
    inputs = [q, k, v]
    for x in (*inputs, spoilt):
        x.requires_grad_()
    output = attend(q, k, spoilt, **table)
    expected = attention(q, k, v, **table)
    assert_close(output, expected)
    for actual, wanted in zip(
        torch.autograd.grad(output.square().sum(), [q, k, spoilt]),
        torch.autograd.grad(expected.square().sum(), inputs),
        strict=True,
    ):
        assert_close(actual, wanted)


@each_causally
def test_whoever_sees_nan_says_so(attend, causal):
    """It is not taken for padding, and averaged away."""
    q, k, v = torch.randn(3, 1, 1, 40, 5).double()
    v[..., 39, :] = math.nan
    assert attend(q, k, v, causal=causal)[..., 39, :].isnan().all()


@each_causally
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.usefixtures("unchecked")
def test_a_neighbour_that_is_spoilt_takes_no_gradients(attend, causal, dtype):
    """A key of 300 counted as spoilt in float16, once anything was NaN: the
    rows that saw it, of another sequence, passed nothing back.
    """
    q, k, v = (x.to(dtype) for x in torch.randn(3, 2, 1, 40, 5))
    q, k[0, 0, 0] = q / 100, 300.0
    found = []
    for poison in (1.0, math.nan):
        v[1] = poison
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]
        output = attend(*inputs, causal=causal)
        grads = torch.autograd.grad(output[0].float().sum(), inputs)
        found.append([grad[0] for grad in grads])
    assert all(map(torch.equal, *found))


ROOMS = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def around(attend, causal, numbers, large, last):
    """Its output for those who do not see the last token of the one sequence,
    and what they pass back to all the others, if that token holds this.
    """
    q, k, v, g = (x.clone() for x in numbers)
    unseeing = blind(attend, q.double(), k.double(), v.double(), 39, causal)
    unseeing[0, 0, 39] = False
    g[~unseeing] = 0
    given = {"q": q, "k": k, "v": v}
    for which in large:
        given[which][0, 0, 39] = last
    inputs = [x.requires_grad_() for x in given.values()]
    output = attend(*inputs, causal=causal)
    grads = torch.autograd.grad(output, inputs, g)
    others = torch.ones(2, 1, 40, dtype=torch.bool)
    others[0, 0, 39] = False
    return [output[unseeing], *(grad[others] for grad in grads)]


@each_causally
@pytest.mark.parametrize("dtype", ROOMS)
@pytest.mark.usefixtures("unchecked")
def test_the_largest_numbers_are_not_felt_where_they_are_not_seen(
    attend, causal, dtype
):
    """Not in the output, nor in any gradient. Of a query whose scores were
    numbers on the way there, Swin's overflowed on the way back: those who
    shared its window got NaN. And a ring's sum of values, before it was
    divided by that of the weights: the query got infinity.
    """
    for large in ("v", "k", "q", "qk", "qkv"):
        for seed in (4, 6):
            torch.manual_seed(seed)
            numbers = torch.randn(4, 2, 1, 40, 5).to(dtype)
            found, wanted = (
                around(attend, causal, numbers, large, last)
                for last in (torch.finfo(dtype).max, 1.0)
            )
            near = {"atol": ROOMS[dtype], "rtol": ROOMS[dtype]}
            assert_close(found, wanted, **near, msg=f"{large} {seed}")


class Alike(NamedTuple):
    """A mechanism that hides by a mask, and how wide its queries are."""

    attend: Attend
    d: int = 5


HIDE = [
    *(Alike(attend) for attend in (attention, *EXACT, luong_dot)),
    Alike(ShawAttention(5, max_distance=2).double()),
    Alike(TransformerXLAttention(3, 5).double()),
    Alike(AdditiveAttention(5, 5, 4).double()),
]


@pytest.mark.parametrize("hides", HIDE, ids=name)
@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("from_all", [True, False], ids=["all", "some"])
def test_a_hidden_key_passes_nothing_back_to_its_queries(
    hides, poison, from_all
):
    """The output was right and the gradient of q was NaN: 0 · NaN is."""
    q, k, v = torch.randn(3, 2, 3, 11, hides.d).double()
    mask = torch.ones(11, 11, dtype=torch.bool)
    mask[: 11 if from_all else 6, 7:] = False
    grads = []
    for bad in (0.5, poison):
        spoilt = k.clone()
        spoilt[1, :, 7:] = bad
        inputs = [x.clone().requires_grad_() for x in (q, spoilt, v)]
        output = hides.attend(*inputs, mask=mask)
        seeing = slice(None) if from_all else slice(6)
        total = output[..., seeing, :].square().sum()
        grads.append(torch.autograd.grad(total, inputs))
    # What queries that see it pass back to the other keys is theirs to spoil.
    n = 3 if from_all else 1
    for found, wanted in zip(*(g[:n] for g in grads), strict=True):
        assert_close(found[..., :6, :], wanted[..., :6, :])


# Numbers


def in_half(f, dtype, inputs):
    """Its output and gradients on these numbers, computed in this type."""
    inputs = [x.detach().to(dtype).requires_grad_() for x in inputs]
    output = f(*inputs)
    return [output, *gradients(output, inputs)]


@causally(
    "trio", [(*p, rival) for p, rival in zip(PAIRS, RIVALS, strict=True)]
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("gain", [1.0, 8.0])
@pytest.mark.usefixtures("unchecked")
def test_half_precision_errs_at_most_twice_as_much_as_its_rival(
    device, trio, dtype, gain, causal
):
    attend, reference, rival = (partial(f, causal=causal) for f in trio)
    q, k, v = torch.randn(3, 2, 131, 64, device=device)
    inputs = [(x * g).to(dtype) for x, g in ((q, gain), (k, 1.0), (v, 1.0))]
    exact = in_half(reference, torch.float64, inputs)
    for ours, theirs, truth in zip(
        in_half(attend, dtype, inputs),
        in_half(rival, dtype, inputs),
        exact,
        strict=True,
    ):
        error = (ours.double() - truth).abs().max()
        assert error <= 2 * (theirs.double() - truth).abs().max()


SOFTMAX = [
    pair
    for pair in PAIRS
    if first(pair) not in (linear_attention, KERNELS[2][0])
]


@causally("pair", SOFTMAX)
@pytest.mark.parametrize("size", [1e6, 1e8, -1e8])
def test_scores_that_are_large_and_equal_share_equally(pair, causal, size):
    """In the output, and in the gradient of the values: the logarithm of how
    many keys share is lost beside a score of 1e8, which leaves 8 no digit.
    """
    attend, reference = (partial(f, causal=causal) for f in pair)
    q, k = torch.ones(2, 1, 40, 5), torch.full((2, 1, 40, 5), size)
    v = torch.randn(2, 1, 40, 3)
    values = [v.clone().requires_grad_(), v.double().requires_grad_()]
    output = attend(q, k, values[0])
    expected = reference(q.double(), k.double(), values[1])
    assert_close(output.double(), expected, atol=2e-4, rtol=0)
    g = torch.randn_like(output)
    [actual] = torch.autograd.grad(output, values[0], g)
    [wanted] = torch.autograd.grad(expected, values[1], g.double())
    assert_close(actual.double(), wanted, atol=4e-4, rtol=0)


@pytest.mark.parametrize(
    "attend", [f for f in EXACT if f is not fused_attention], ids=name
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.usefixtures("unchecked")
def test_the_gradient_of_a_bias_is_no_sum_in_half_precision(attend, dtype):
    """A bias for all heads, whose gradient is the sum of theirs: in bfloat16
    it stalled at 1024, where it should have gone on to 1778. A tile a head.
    """
    q, k, v = (torch.zeros(500, n, 4) for n in (4, 3, 3))
    v[:, 0] = 1.0
    bias = torch.zeros(1, 3, dtype=dtype, requires_grad=True)
    inputs = [x.to(dtype) for x in (q, k, v)]
    found = [
        torch.autograd.grad(f(*inputs, bias=bias).sum(), bias)[0]
        for f in (attend, attention)
    ]
    assert_close(*found)


@pytest.mark.parametrize("default", [torch.float64, torch.float16])
@each
def test_the_default_type_decides_nothing(attend, default):
    """It decided which directions a seed stands for."""
    q, k, v = torch.randn(3, 2, 3, 70, 5)
    before = attend(q, k, v)
    torch.set_default_dtype(default)
    try:
        assert torch.equal(attend(q, k, v), before)
    finally:
        torch.set_default_dtype(torch.float32)


@each
def test_the_default_device_decides_nothing(attend):
    q, k, v = torch.randn(3, 2, 3, 70, 5)
    before = attend(q, k, v)
    with torch.device("meta"):
        assert torch.equal(attend(q, k, v), before)


@each_causally
def test_saturated_rows_have_finite_gradients(square, attend, causal):
    q, k, v = square
    output = attend(100 * q, k, v, causal=causal)
    assert output.isfinite().all()
    for grad in gradients(output, square):
        assert grad.isfinite().all()


@each
@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float32, torch.float64],
)
def test_what_comes_out_is_of_the_kind_that_went_in(square, attend, dtype):
    q, k, v = (x.detach().to(dtype) for x in square)
    output = attend(q, k, v)
    assert output.shape == (2, 3, 11, 7)
    assert output.dtype == dtype
    assert output.device == q.device


@each_causally
@pytest.mark.parametrize("axes", [(), (3,), (2, 3, 1)])
def test_any_number_of_axes_before_the_tokens(attend, causal, axes):
    q, k, v = (torch.randn(*axes, 11, d).double() for d in (5, 5, 7))
    whole = attend(q, k, v, causal=causal)
    assert whole.shape == (*axes, 11, 7)
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (q, k, v)]
    for *one, out in zip(*flat, whole.reshape(-1, 11, 7), strict=True):
        assert_close(attend(*one, causal=causal), out)


@each_causally
@pytest.mark.parametrize("d_v", [0, 7])
def test_axes_broadcast_whatever_the_width_of_values(attend, causal, d_v):
    """Without features of values, PyTorch's kernel lost the axes of k."""
    q, k = torch.randn(2, 1, 12, 5), torch.randn(1, 3, 12, 5)
    output = attend(q, k, torch.randn(3, 12, d_v), causal=causal)
    assert output.shape == (2, 3, 12, d_v)


@each_causally
def test_nothing_the_caller_passed_in_is_modified(square, attend, causal):
    device = square[0].device
    q, k, v = (x.detach() for x in square)
    mask = torch.rand(11, 11, device=device) < 0.8
    bias = torch.randn(11, 11, device=device).double()
    given = [q, k, v, mask, bias]
    before = [x.clone() for x in given]
    attend(q, k, v, causal=causal)
    honoured(attend, q, k, v, mask=mask, causal=causal)
    honoured(attend, q, k, v, bias=bias, causal=causal)
    assert all(map(torch.equal, given, before))


@each
def test_memory_layout_does_not_matter(attend):
    q = torch.randn(2, 11, 3, 5).double().transpose(1, 2)
    k = torch.randn(2, 3, 5, 11).double().mT
    v = torch.randn(2, 3, 1, 7).double().expand(2, 3, 11, 7)
    expected = attend(q.contiguous(), k.contiguous(), v.contiguous())
    assert_close(attend(q, k, v), expected)


class Meanwhile(TorchDispatchMode):
    """Whatever is computed, something else is done first, in a thread."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        thread = threading.Thread(target=self.other)
        thread.start()
        thread.join()
        return func(*args, **(kwargs or {}))


@each
@pytest.mark.usefixtures("unchecked")
def test_the_autocast_of_one_thread_is_not_that_of_another(attend):
    """What was before was kept in one place for all: a call in a thread with
    autocast left it on in the thread that had begun before, without.
    """
    q, k, v = torch.randn(3, 1, 4, 5)

    def elsewhere():
        with torch.autocast("cpu", torch.bfloat16):
            x = q.clone().requires_grad_()
            torch.autograd.grad(attend(x, k, v).sum(), x)

    x = q.clone().requires_grad_()
    try:
        with Meanwhile(elsewhere):
            torch.autograd.grad(attend(x, k, v).sum(), x)
        assert not torch.is_autocast_enabled("cpu")
    finally:
        torch.set_autocast_enabled("cpu", False)


# How it is called


@each
def test_the_call_is_the_one_of_all_mechanisms(attend):
    function = getattr(attend, "func", attend)
    function = getattr(function, "forward", function)
    parameters = inspect.signature(function).parameters
    by_place = [
        p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY
    ]
    assert by_place == ["q", "k", "v"]
    for option, default in (("mask", None), ("bias", None), ("causal", False)):
        assert parameters[option].default is default
    assert isinstance(attend, Attend)


@each_causally
def test_a_layer_takes_any_mechanism(attend, causal):
    layer = MultiHeadAttention(15, 3, attend=attend).double()
    x = torch.randn(2, 11, 15).double()
    q, k, v = layer.heads(x)
    expected = attend(q, k, v, causal=causal).transpose(1, 2).flatten(-2)
    assert_close(layer(x, causal=causal), layer.W_o(expected))


TRANSFORMS = {
    "grad": lambda f, q: torch.func.grad(lambda q: f(q).sum())(q),
    "vmap": lambda f, q: torch.func.vmap(f)(q[None]),
    "jvp": lambda f, q: torch.func.jvp(f, (q,), (q,)),
    "forward_ad": lambda f, q: carried(f, q),
}


def carried(f, q):
    """The output and its derivative along q, carried along forwards."""
    with forward_ad.dual_level():
        return tuple(forward_ad.unpack_dual(f(forward_ad.make_dual(q, q))))


# Their way back is PyTorch's own.
KERNELS = (fused_attention, *(t for t, _ in TIMELESS))
PLAIN = (attention, luong_dot, *KERNELS)


# PyTorch's own words about its own rules for its own kernels.
@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@each
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_work_or_are_refused_in_words(attend, transform):
    """What PyTorch itself says of a backward pass by hand helps nobody."""
    q, k, v = torch.randn(3, 2, 3, 11, 5)
    if attend in PLAIN:
        found = transform(lambda q: attend(q, k, v), q)
        wanted = transform(lambda q: attention(q, k, v), q)
        parts = found if isinstance(found, tuple) else (found,)
        assert all(part.isfinite().all() for part in parts)
        if attend in (attention, fused_attention, TIMELESS[0][0]):
            assert_close(found, wanted)
        return
    with pytest.raises(
        ValueError, match=r"torch\.[\w.]+ cannot transform \w+"
    ):
        transform(lambda q: attend(q, k, v), q)


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        *(("q", [[1.0]]), ("k", None), ("v", torch.eye(11).to_sparse())),
        *(("mask", 1), ("bias", 0.5), ("causal", "no"), ("causal", 1)),
    ],
)
@each
def test_what_is_no_such_thing_is_named(
    square, unchecked, attend, option, wrong
):
    """The rule and what was given, not what PyTorch stumbled over."""
    options = dict(zip("qkv", square, strict=True)) | {option: wrong}
    message = rf"\b{option} (must|cannot)|cannot (use a|be) {option}"
    with pytest.raises((TypeError, ValueError), match=message):
        attend(**options)


@pytest.mark.parametrize("elsewhere", ["q", "k", "v", "mask", "bias"])
@each
def test_what_is_on_another_device_is_named(square, attend, elsewhere):
    """`attention` gave back whatever lay in memory for what was on meta."""
    given = dict(zip("qkv", (x.detach() for x in square), strict=True))
    device = square[0].device
    options = {
        "mask": torch.ones(11, 11, dtype=torch.bool, device=device),
        "bias": torch.zeros(11, 11, device=device),
    }
    table = {n: x for n, x in options.items() if n == elsewhere}
    if table and honoured(attend, **given, **table) is None:
        return  # it takes none
    given |= table
    given[elsewhere] = given[elsewhere].to("meta")
    with pytest.raises(ValueError, match=r"must be (where|on one).*meta"):
        attend(**given)


# What it costs


def counted(attend, n, d=8):
    """The operations and the most bytes at once, on n tokens."""
    q, k, v = torch.randn(3, 1, 1, n, d)
    run = partial(attend, q, k, v)
    return flops(run), peak_bytes(run)


def check_cost(cost):
    """Raise AssertionError unless a mechanism costs what it says."""
    operations, held = [], []
    for n in cost.lengths:
        ops, size = counted(cost.attend, n)
        assert ops == cost.flops(n, 8)
        operations.append(ops)
        held.append(size)
    # A tenth: what is added to a power law pulls its slope at short lengths.
    time_slope = log_log_slope(cost.lengths, operations)
    assert time_slope == pytest.approx(cost.time_grows, abs=0.1)
    # A tile whose size does not depend on n may be most of it, at first.
    assert log_log_slope(cost.lengths, held) < cost.memory_grows + 0.1


@pytest.mark.parametrize("cost", COSTS, ids=name)
def test_each_costs_what_it_says(cost):
    check_cost(cost)


def test_each_mechanism_says_what_it_costs():
    def function(attend):
        return getattr(attend, "func", attend)

    told = {function(cost.attend) for cost in COSTS}
    assert told >= {function(attend) for attend in EVERY}


@pytest.mark.parametrize(
    "impostor",
    [
        COSTS[0]._replace(memory_grows=1),
        COSTS[0]._replace(time_grows=1),
        COSTS[0]._replace(flops=lambda n, d: 4 * n * n * d + 1),
    ],
)
def test_an_impostor_is_found_out(impostor):
    with pytest.raises(AssertionError):
        check_cost(impostor)


@causally("cost", [c for c in COSTS if c.memory_grows < 2])
def test_lean_ones_never_build_the_square(cost, causal):
    n = cost.lengths[-1]
    q, k, v = torch.randn(3, 1, 1, n, 8)
    run = partial(cost.attend, q, k, v, causal=causal)
    assert largest_bytes(run) < n * n  # not even of booleans


# The package


def test_the_package_names_what_it_offers():
    for public in selfattn.__all__:
        assert getattr(selfattn, public).__doc__
    assert sorted(selfattn.__all__) == selfattn.__all__


def test_the_package_needs_torch_and_jaxtyping_alone():
    """And adds under half a second to the import of torch."""
    script = """
        import sys, time
        import torch, jaxtyping

        class Refuse:
            allowed = {"selfattn", "torch", "jaxtyping"}

            def find_spec(self, name, path=None, target=None):
                first = name.partition(".")[0]
                if first not in self.allowed | sys.stdlib_module_names:
                    raise ImportError(f"selfattn asked for {name}")

        sys.meta_path.insert(0, Refuse())
        start = time.process_time()
        import selfattn
        print(time.process_time() - start)
    """
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stderr == ""
    assert float(told.stdout) < 0.5
