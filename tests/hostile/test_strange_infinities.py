"""What strangers found of infinity and NaN that somebody does see.

What is infinite has a right answer, too: a value of infinity is infinity to
whoever sees it, a score of minus infinity is a key that weighs nothing, one
of infinity is NaN. And what one query makes of it is no other's concern.
"""

import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from hostile.test_strangers import CAUSAL, MASKED
from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import linear_attention
from selfattn.efficient.linformer import LinformerAttention
from selfattn.efficient.longformer import (
    longformer_attention,
    longformer_mask,
)
from selfattn.efficient.performer import performer_attention
from selfattn.efficient.reformer import lsh_attention, lsh_mask
from selfattn.efficient.sparse import (
    fixed_attention,
    fixed_mask,
    strided_attention,
    strided_mask,
)
from selfattn.efficient.swin import swin_attention, swin_mask
from selfattn.efficient.window import sliding_window_attention
from selfattn.layers import AddNorm, FeedForward, relu
from selfattn.masks import causal_mask, window_mask
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import ShawAttention, TransformerXLAttention

INF, N = math.inf, 20
GRID = {"grid": (4, 5), "window": (2, 3)}
BUCKETS = {"n_buckets": 4, "n_rounds": 2}
RESTRICTED = {
    "attention": (attention, None),
    "flash": (partial(flash_attention, block_q=3, block_k=4), None),
    "window": (
        partial(sliding_window_attention, window=3),
        lambda q, k: window_mask(N, N, 3),
    ),
    "swin": (
        partial(swin_attention, **GRID),
        lambda q, k: swin_mask(**GRID),
    ),
    "strided": (
        partial(strided_attention, stride=3),
        lambda q, k: strided_mask(N, N, 3),
    ),
    "fixed": (
        partial(fixed_attention, stride=3),
        lambda q, k: fixed_mask(N, N, 3),
    ),
    "longformer": (
        partial(longformer_attention, window=3),
        lambda q, k: longformer_mask(N, N, 3),
    ),
    "lsh": (
        partial(lsh_attention, **BUCKETS),
        lambda q, k: lsh_mask(q, k, **BUCKETS),
    ),
}
# Where in q, k and v something stands: (of which, token, feature, number).
SPOILT = {
    "a value": [("v", 7, 1, INF)],
    "two values": [("v", 7, 1, INF), ("v", 15, 1, -INF)],
    "a key and a value": [("k", 7, 1, -INF), ("v", 8, 0, INF)],
    "two keys": [("k", 7, 1, INF), ("k", 12, 1, -INF)],
    "a NaN and a key": [("k", 9, 0, math.nan), ("k", 10, 1, INF)],
    "a query": [("q", 7, 1, -INF)],
    "a query and a key": [("q", 7, 1, INF), ("k", 8, 1, INF)],
    "a NaN and a value": [("v", 7, 1, math.nan), ("v", 8, 1, INF)],
}


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


def by_definition(q, k, v, seen):
    """Attention pair by pair, in which what weighs nothing is left out."""
    scores = (q[..., :, None, :] * k[..., None, :, :]).sum(dim=-1)
    scores = (scores / math.sqrt(q.shape[-1])).masked_fill(~seen, -INF)
    empty = (scores == -INF).all(dim=-1, keepdim=True)
    weights = scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0)
    brought = weights[..., None] * v[..., None, :, :]
    return brought.masked_fill((weights == 0)[..., None], 0).sum(dim=-2)


@pytest.mark.parametrize("name", RESTRICTED)
@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT)
@pytest.mark.parametrize("causal", [False, True])
def test_what_is_infinite_is_what_it_is_by_definition(name, spoilt, causal):
    """A value of infinity was NaN to some of those who saw it: another piece
    hid it, with a weight of zero. So were those who saw one infinity, and
    not another; and those of whose keys one weighs nothing, by its score of
    minus infinity, beside another that is hidden.
    """
    attend, published = RESTRICTED[name]
    inputs = dict(zip("qkv", torch.randn(3, 2, N, 5).double(), strict=True))
    for which, token, feature, number in spoilt:
        inputs[which][0, token, feature] = number
    q, k, v = inputs.values()
    seen = torch.ones(N, N) > 0 if published is None else published(q, k)
    if causal:
        seen = seen & causal_mask(N, N)
    expected = by_definition(q, k, v, seen)
    for learns in (False, True):
        q, k, v = (x.clone().requires_grad_(learns) for x in (q, k, v))
        found = attend(q, k, v, causal=causal)
        assert_close(found, expected, equal_nan=True, check_stride=False)


@pytest.mark.parametrize("see_itself", [True, False])
@pytest.mark.parametrize("n", [3, 7, 20])
def test_an_infinite_key_to_come_is_hidden_from_who_sees_infinity(
    n, see_itself
):
    """Of texts whose last key was infinite, all who saw a value of infinity
    got NaN: the score that was hidden was added to minus infinity.
    """
    q, k, v = torch.randn(3, 1, n, 5).double().abs()
    k[0, -1], v[0, 0, 1] = INF, INF
    options = {"n_buckets": 2, "see_itself": see_itself, "causal": True}
    seen = lsh_mask(q, k, **options)[..., :-1, :]
    assert not seen[..., -1].any()
    found = lsh_attention(q, k, v, **options)[:, :-1]
    expected = by_definition(q[:, :-1], k[:, :-1], v[:, :-1], seen[..., :-1])
    assert seen[..., 0].any()
    assert_close(found, expected)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n_buckets", [1, 2, 8])
@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        (torch.float64, 1e25),
        (torch.float32, 8e18),
        (torch.bfloat16, 8e18),
        (torch.float64, INF),
        (torch.bfloat16, INF),
        (torch.float16, INF),
    ],
)
def test_a_token_sees_itself_last_however_large_its_score(
    causal, n_buckets, dtype, size
):
    """Something low was added to its score with itself, which was no less
    than those with others, if it was infinite or 1e38: NaN, or itself alone.
    """
    q, k, v = torch.rand(3, 2, N, 2).to(dtype) + 0.5
    q[:, ::3] *= -1
    q[0, 7, 1] = q[1, 3] = k[1, 5, 0] = size
    k[0, 7, 0], q[1, 2], k[1, 3] = -size, -size, size
    options = {"n_buckets": n_buckets, "n_rounds": 2, "causal": causal}
    seen = lsh_mask(q, k, **options, see_itself=False)
    expected = by_definition(q.double(), k.double(), v.double(), seen)
    found = lsh_attention(q, k, v, **options, see_itself=False)
    room = {"atol": 4e-2, "rtol": 4e-2} if dtype != torch.float64 else {}
    assert_close(found.double(), expected, equal_nan=True, **room)


TOO = {
    **MASKED,
    **CAUSAL,
    "swin": partial(swin_attention, grid=(2, 3), window=(2, 2)),
    "linformer": LinformerAttention(nn.Identity()),
}


@pytest.mark.parametrize("name", TOO)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("poison", [math.nan, INF])
def test_a_spoilt_query_passes_nothing_back_for_others(name, causal, poison):
    """Nobody asked what came of it, and yet the gradients of all values and
    weights were NaN: zero times the NaN of its weights.
    """
    if causal and name == "linformer":
        return
    attend, grads = TOO[name], []
    inputs = torch.randn(3, 2, 6, 4)
    learned = [*attend.parameters()] if isinstance(attend, nn.Module) else []
    for number in (0.5, poison):
        q, k, v = (x.clone() for x in inputs)
        q[0, 2, 1] = number
        for x in (q, k, v):
            x.requires_grad_()
        output = attend(q, k, v, causal=causal)
        total = output[:, [0, 1, 3, 4, 5]].square().sum()
        found = torch.autograd.grad(
            total, (q, k, v, *learned), allow_unused=True
        )
        grads.append([x for x in found if x is not None])
    if name == "luong" and poison == INF:  # by its matrix, W k
        before = attend.keys(k)[0, : 3 if causal else 6, 1]
        sees = (before > 0).any()  # else all scores are minus infinity
        assert output[0, 2].isnan().any() if sees else output[0, 2].eq(0).all()
    elif name != "bahdanau":  # whose tanh makes 1 of infinity
        assert output[0, 2].isnan().any()
    for found, wanted in zip(*grads, strict=True):
        assert_close(found, wanted)


def test_a_spoilt_query_leaves_a_learned_bias_sound():
    """Of which every query has a row, or all have one together."""
    q, k, v = torch.randn(3, 2, 6, 4)
    grads = []
    for number in (0.5, math.nan):
        q[0, 2, 1] = number
        bias = torch.zeros(6, requires_grad=True)
        output = attention(q, k, v, bias=bias)
        total = output[:, [0, 1, 3, 4, 5]].square().sum()
        grads.append(*torch.autograd.grad(total, bias))
    assert_close(*grads)


def test_a_spoilt_query_leaves_what_tells_distances_sound():
    attend = TransformerXLAttention(2, 4)
    q, k, v = torch.randn(3, 2, 6, 4)
    grads = []
    for number in (0.5, math.nan):
        q[0, 2, 1] = number
        output = attend(q, k, v)
        total = output[:, [0, 1, 3, 4, 5]].square().sum()
        grads.append(torch.autograd.grad(total, [*attend.parameters()]))
    for found, wanted in zip(*grads, strict=True):
        assert_close(found, wanted)


ALL_SEE_ALL = {
    "attention": attention,
    "fused": fused_attention,
    "flash": flash_attention,
    "tiles": partial(flash_attention, block_q=3, block_k=4),
    "swin": partial(swin_attention, grid=(2, 3), window=(2, 3)),
    "window": partial(sliding_window_attention, window=6),
    "longformer": partial(longformer_attention, window=6),
    "strided": partial(strided_attention, stride=6),
    "fixed": partial(fixed_attention, stride=6),
    "lsh": partial(lsh_attention, n_buckets=1),
    "linformer": LinformerAttention(nn.Identity()),
}
BIASED = {"attention", "fused", "flash", "tiles"}
each_of_all = pytest.mark.parametrize("name", ALL_SEE_ALL)


def passed_back(attend, inputs, rows, **options):
    """The output, and what these of its rows pass back to all inputs."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    output = attend(*inputs, **options)
    total = output[..., rows, :].double().square().sum()
    return output.detach(), *torch.autograd.grad(total, inputs)


@each_of_all
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("bad", [[1], [0, 1, 2, 3]])
def test_a_key_that_weighs_nothing_passes_nothing_back(
    name, causal, autocast, bad
):
    """Its scores are minus infinity: the output was right; but the gradient
    of all queries was NaN where all see all, and elsewhere that of those who
    see it was zero, whatever else they see.
    """
    if causal and name == "linformer":
        return
    inputs = torch.rand(3, 2, 6, 4) + 0.1
    inputs[1, :, 2, bad] = -INF
    without = torch.arange(6) != 2
    given = inputs.double()
    given[1, :, 2] = 0
    wanted = passed_back(
        attention, given, slice(None), mask=without, causal=causal
    )
    room = 5e-2 if autocast else 1e-5
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        found = passed_back(
            ALL_SEE_ALL[name], inputs, slice(None), causal=causal
        )
    for x, y in zip(found, wanted, strict=True):
        assert_close(x.double(), y, atol=room, rtol=room)


@each_of_all
def test_who_has_an_infinite_score_leaves_the_others_what_they_had(name):
    """Of a key that weighs nothing for the one, and all for the other."""
    inputs = torch.rand(3, 2, 6, 4) + 0.1
    inputs[0, 0, 4, 1], inputs[1, 0, 2, 1] = -0.5, -INF
    rows = [0, 1, 2, 3, 5]
    output, *found = passed_back(ALL_SEE_ALL[name], inputs, rows)
    wanted = passed_back(attention, inputs.double(), rows)
    assert output[0, 4].isnan().all()
    for x, y in zip(found, wanted[1:], strict=True):
        assert y.any()
        assert_close(x.double(), y, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("of", ["v", "for_values"])
@pytest.mark.parametrize("poison", [math.nan, INF])
def test_who_sees_nan_passes_nothing_back_by_the_distance_either(of, poison):
    """The average of the values passed nothing back, as that of `attention`,
    but the one of what distances add to them did.
    """
    layer = ShawAttention(4, max_distance=1)
    q, k, v = (torch.randn(5, 4, requires_grad=True) for _ in range(3))
    given = [q, k, v, *layer.parameters()]
    mask = torch.ones(5, 5).tril(1).bool()  # each sees one key ahead
    by_a_value, ahead = (v[4], [3, 4]), (layer.for_values[2], [0, 1, 2, 3])
    spoilt, rows = by_a_value if of == "v" else ahead
    others = [row for row in range(5) if row not in rows]

    def back(rows):
        output = layer(q, k, v, mask=mask)[rows]
        return output, torch.autograd.grad(output.sum(), given)

    _, wanted = back(others)
    with torch.no_grad():
        spoilt[1] = poison
    output, found = back(rows)
    assert not output.isfinite().all(dim=-1).any()
    assert not any(x.any() for x in found)
    output, found = back(others)
    assert output.isfinite().all()
    assert_close(found, wanted)


@each_of_all
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_who_has_a_score_that_overflows_passes_nothing_back(name, dtype):
    """All weights of one query were NaN; and with it, times zero, what the
    others passed back to keys and queries.
    """
    most = torch.finfo(dtype).max
    inputs = torch.rand(3, 2, 6, 4).to(dtype)
    inputs[0, 0, 4], inputs[1, 0, 2] = most**0.45, 0.5
    inputs[1, 0, 2, 0] = most**0.48
    inputs[0, 0, 4, 0] = most**0.6
    rows = [0, 1, 2, 3, 5]
    output, *found = passed_back(ALL_SEE_ALL[name], inputs, rows)
    assert output[0, 4].isnan().all()
    assert output[0, rows].isfinite().all()
    assert all(x.isfinite().all() for x in found)
    assert all(x[1].any() for x in found)  # the other sequence's


@pytest.mark.parametrize(
    "attend",
    [
        fused_attention,
        flash_attention,
        partial(sliding_window_attention, window=6),
    ],
)
def test_a_large_key_is_sound_though_a_query_is_none(attend):
    """For a query of NaN a key of 1e20 was taken for spoilt, and who saw it
    passed nothing back.
    """
    given = torch.rand(3, 6, 4) + 0.1
    given[0, :, 0], given[1, 1, 0] = 1e-20, 1e20
    wanted = passed_back(attention, given.double(), [3, 4], causal=True)
    given[1, 5], given[0, 2, 1] = math.nan, math.nan  # nobody's concern
    found = passed_back(attend, given, [3, 4], causal=True)
    assert_close(found[0][3:5].double(), wanted[0][3:5])
    for x, y in zip(found[1:], wanted[1:], strict=True):
        assert_close(x.double(), y, rtol=1e-4, atol=1e-5)


WITH_A_BIAS = ["attention", "fused", "flash", "tiles"]


@pytest.mark.parametrize("name", WITH_A_BIAS)
@pytest.mark.parametrize("spoilt", [INF, math.nan])
@pytest.mark.parametrize("of", ["bias", "k", "v"])
def test_what_one_query_sees_is_nothing_to_the_others(name, spoilt, of):
    """Of that query nobody asked; and the gradients of all were NaN."""
    given = dict(zip("qkv", torch.rand(3, 6, 4) + 0.1, strict=True))
    bias, mask = torch.zeros(6, 6), torch.ones(6, 6, dtype=torch.bool)
    mask[torch.arange(6) != 4, 2] = False
    bias[1, 3] = -INF
    tables = {"mask": mask, "bias": bias}
    others = [0, 1, 2, 3, 5]
    wanted = passed_back(attention, given.values(), others, **tables)
    {**given, "bias": bias}[of][(4, 2) if of == "bias" else 2] = spoilt
    attend = ALL_SEE_ALL[name]
    output, *found = passed_back(attend, given.values(), others, **tables)
    assert not output[4].isfinite().any()
    for x, y in zip([output[others], *found], wanted, strict=True):
        y = y[others] if x.shape != y.shape else y
        assert_close(x, y, atol=1e-6, rtol=1e-5)


SUMS = {
    "linear": linear_attention,
    "features": partial(linear_attention, feature_map=torch.sigmoid),
    "performer": partial(performer_attention, n_features=16),
}


@pytest.mark.parametrize("name", [*ALL_SEE_ALL, *SUMS])
@pytest.mark.parametrize("spoilt", ["q", "k", "v"])
@pytest.mark.parametrize("poison", [math.nan, INF])
def test_a_spoilt_sequence_is_not_felt_by_what_another_shares(
    name, spoilt, poison
):
    """Of sums over all keys, it was: a layer's matrices, and keys that all
    sequences have, got gradients of NaN from a loss of the others.
    """
    attend, grads = {**ALL_SEE_ALL, **SUMS}[name], []
    inputs = torch.randn(3, 2, 6, 4)
    for number in (0.5, poison):
        given = [x.clone().requires_grad_() for x in inputs]
        shared = [torch.zeros(6, 4, requires_grad=True) for _ in given]
        q, k, v = (x + y for x, y in zip(given, shared, strict=True))
        put = torch.zeros(2, 6, 4)
        put[0, 2, 1] = number
        tokens = {"q": q, "k": k, "v": v}
        tokens[spoilt] = tokens[spoilt] + put
        total = attend(**tokens)[1].square().sum()
        grads.append(torch.autograd.grad(total, shared))
    for found, wanted in zip(*grads, strict=True):
        assert_close(found, wanted)


@pytest.mark.parametrize("name", [*ALL_SEE_ALL, *SUMS])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d_v", [0, 4])
def test_what_nobody_asks_for_passes_nothing_back(name, causal, d_v):
    """Without a query, or a number in a value, NaN came back to the keys of
    sums: the output shows none of it.
    """
    if name in ("swin", "linformer") and (causal or d_v):
        return
    attend = {**ALL_SEE_ALL, **SUMS}[name]
    n_q = 6 if d_v == 0 else 0
    q, k, v = torch.randn(n_q, 4), torch.randn(6, 4), torch.randn(6, d_v)
    k[2, 1] = math.nan
    v[3:4] = INF
    inputs = [x.requires_grad_() for x in (q, k, v)]
    total = attend(*inputs, causal=causal).sum()
    for x in torch.autograd.grad(total, inputs):
        assert x.eq(0).all()


@each_of_all
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("poison", [math.nan, INF, -INF])
def test_a_value_that_weighs_nothing_is_not_felt_by_who_learns_nothing(
    name, causal, learns, poison
):
    """Where all see all, it was NaN, but only without a gradient."""
    if causal and name == "linformer":
        return
    q, k, v = torch.rand(3, 6, 4)
    k[2], v[2, 1] = -600.0, poison  # its weight rounds to zero
    inputs = [x.requires_grad_(learns) for x in (q, k, v)]
    without = torch.arange(6) != 2
    wanted = attention(q, k, v.nan_to_num(), mask=without, causal=causal)
    found = ALL_SEE_ALL[name](*inputs, causal=causal)
    rows = [0, 1, 3, 4, 5] if causal else [*range(6)]
    assert_close(found[rows], wanted[rows])


@each_of_all
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("table", [None, torch.float16, torch.float32])
def test_a_key_that_weighs_nothing_is_far_from_short_queries_in_halves(
    name, causal, table
):
    """In float16, none is far enough from a query of a thousandth: the key
    that stood for one at minus infinity had a weight, and 65504 times that
    was what the query got for its gradient.
    """
    if (causal and name == "linformer") or (table and name not in BIASED):
        return
    inputs = torch.rand(3, 6, 4) * 1e-3
    inputs[1:] *= 1e3
    inputs = inputs.half()
    inputs[1, 2, 0] = -INF
    given = inputs.double()
    given[1, 2] = 0
    without = torch.arange(6) != 2
    rows = [0, 1, 3, 4, 5] if causal else slice(None)
    wanted = passed_back(attention, given, rows, mask=without, causal=causal)
    options = {"bias": torch.zeros(6, 6, dtype=table)} if table else {}
    attend = partial(ALL_SEE_ALL[name], **options)
    found = passed_back(attend, inputs, rows, causal=causal)
    for x, y in zip(found[1:], wanted[1:], strict=True):
        assert_close(x.double(), y, atol=4e-3, rtol=4e-3)


def bounded():
    """Layers that make a number of infinity."""
    for activation in (relu, torch.tanh, torch.sigmoid):
        network = FeedForward(4, 3, activation=activation)
        with torch.no_grad():
            network.W_in.weight[:, 0] = -1.0  # relu bounds minus infinity
        yield network
    layer = MultiHeadAttention(4, 2)
    for name in ("W_q", "W_k", "W_v"):
        setattr(layer, name, nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
    yield layer
    layer = MultiHeadAttention(4, 2)
    for part in (layer.W_q, layer.W_k, layer.W_v):
        part.register_forward_hook(lambda _, x, made: made.tanh())
    yield layer


@pytest.mark.parametrize("layer", [*bounded()])
def test_an_infinite_token_of_which_a_number_is_made_passes_nothing_back(
    layer,
):
    """The output did not show it, and the first weights got 0 · ∞."""
    grads = []
    for number in (1e4, INF):
        x = torch.ones(2, 3, 4)
        x[0, 1, 0] = number
        made = layer(x)
        assert made.isfinite().all()
        total = made[1].square().sum()
        grads.append(torch.autograd.grad(total, [*layer.parameters()]))
    assert_close(*grads)


@pytest.mark.parametrize("name", [n for n in RESTRICTED if n != "lsh"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_hidden_token_that_is_large_in_key_and_value_is_not_felt(
    name, causal, dtype
):
    """Who did not see the value was given another output; but the first one,
    in which a score overflowed and was hidden, passed back 0 · NaN all the
    same.
    """
    attend, published = RESTRICTED[name]
    size = {torch.float32: 1e38, torch.float64: 1e307}[dtype]
    for seed in range(12):
        torch.manual_seed(seed)
        q, k, v, wave = torch.randn(4, 1, N, 2, dtype=dtype)
        mask = published(q, k) if published else torch.rand(N, N) < 0.5
        told = {} if published else {"mask": mask}
        seen = (mask & causal_mask(N, N) if causal else mask)[..., seed % N]
        wave[:, seen.expand(N)] = 0
        grads = []
        for by in (1.0, size):
            given = q.clone(), k.clone(), v.clone()
            for x in given[1:]:
                x[:, seed % N] *= by
            inputs = [x.requires_grad_() for x in given]
            output = attend(*inputs, causal=causal, **told)
            grads.append(torch.autograd.grad(output, inputs, wave))
        assert_close(*grads)


# Beside a NaN


@pytest.mark.parametrize("large", [1e21, 1e25, 1e38])
@pytest.mark.parametrize("order", [(4, 5), (5, 4)])
def test_what_is_large_is_seen_beside_a_nan(large, order):
    """No number is above a NaN: nothing seemed large beside one, and the
    gradient of all keys was NaN where nobody asked those who see either.
    """
    q, k, v, g = (torch.randn(6, 2) for _ in range(4))
    g[4:] = 0
    wanted = [x.clone().requires_grad_() for x in (q, k, v)]
    performer_attention(*wanted, causal=True, n_features=5).backward(g)
    v[order[0]], v[order[1]] = large, torch.nan
    found = [x.clone().requires_grad_() for x in (q, k, v)]
    performer_attention(*found, causal=True, n_features=5).backward(g)
    for one, other in zip(found, wanted, strict=True):
        assert_close(one.grad, other.grad)


def test_a_large_token_beside_a_nan_passes_nothing_back():
    """So it was in norms: the large token's gradient was NaN."""
    x = torch.randn(1, 5, 4)
    x[0, 3], x[0, 4] = 3e38, torch.nan
    x.requires_grad_()
    AddNorm(4, pre=True, norm=nn.RMSNorm)(x, nn.Identity())[
        :, :3
    ].sum().backward()
    assert x.grad[0, 3].eq(0).all() and x.grad.isfinite().all()


@pytest.mark.parametrize("name", [*ALL_SEE_ALL, *SUMS])
@pytest.mark.parametrize("of", ["q", "k", "v"])
@pytest.mark.parametrize("learns", [False, True])
def test_what_is_spoilt_is_where_the_queries_are(name, of, learns):
    """A mark of it was made on the default device, to which a big model that
    is not yet filled may have turned.
    """
    attend = {**ALL_SEE_ALL, **SUMS}[name]
    inputs = dict(zip("qkv", torch.randn(3, 6, 4), strict=True))
    inputs[of][2, 1] = INF
    given = [x.requires_grad_(learns) for x in inputs.values()]
    wanted = attend(*given)
    with torch.device("meta"):
        found = attend(*given)
    assert_close(found, wanted, equal_nan=True)
