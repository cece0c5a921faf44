"""What strangers found of PyTorch's fused kernels: what they lose.

A NaN that is seen must be heard of. On a processor, PyTorch's kernel gave
zeros to a query whose scores are all NaN, of fewer than 16 keys, and in half
precision to one with an infinite score: a model trained on with numbers.
"""

import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from hostile.test_strange_gradients import formulas
from hostile.test_strangers import CAUSAL, MASKED, D
from selfattn import kernels
from selfattn.cost import peak_bytes
from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.linformer import LinformerAttention, MeanPooling
from selfattn.efficient.longformer import (
    longformer_attention,
    longformer_mask,
)
from selfattn.efficient.swin import swin_attention, swin_bias, swin_mask
from selfattn.efficient.window import sliding_window_attention
from selfattn.hidden import sees_nothing
from selfattn.kernels import in_steps
from selfattn.masks import window_mask

FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
in_each_type = pytest.mark.parametrize("dtype", FLOATS)


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


def fused(n):
    return fused_attention, attention


def hiding(n):
    mask = torch.ones(n, n, dtype=torch.bool)
    mask[: n // 2, n // 2 :] = False
    return tuple(partial(f, mask=mask) for f in (fused_attention, attention))


def window(n):
    near = partial(sliding_window_attention, window=3)
    return near, partial(attention, mask=window_mask(n, n, 3))


def longformer(n):
    near = partial(longformer_attention, window=2)
    return near, partial(attention, mask=longformer_mask(n, n, 2))


def swin(n):
    where = {"grid": (1, n), "window": (1, 5 if n < 16 else 16)}
    near = partial(swin_attention, **where)
    return near, partial(attention, mask=swin_mask(**where))


def linformer(n):
    mix = MeanPooling(4)

    def definition(q, k, v, causal):
        return attention(q, mix(k), mix(v))

    attend = LinformerAttention(mix)
    return lambda q, k, v, causal: attend(q, k, v), definition


KERNELS = [fused, hiding, window, longformer, swin, linformer]


@in_each_type
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_nan_that_is_seen_is_heard_of(kernel, causal, dtype):
    """Of a query, or of all keys; the other sequence does not feel it."""
    for n in (1, 15, 20):
        attend, definition = kernel(n)
        for spoil in ("q", "k"):
            q, k, v = torch.randn(3, 2, n, D).to(dtype)
            {"q": q[0, n // 2 :], "k": k[0]}[spoil].fill_(math.nan)
            found = attend(q, k, v, causal=causal)
            wanted = definition(q, k, v, causal=causal)
            assert found[0, -1].isnan().all()
            assert torch.equal(found.isnan(), wanted.isnan())
            room = {"atol": 4 * torch.finfo(dtype).eps, "rtol": 0.0}
            assert_close(found[1], wanted[1], **room)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("n", [16, 20, 33, 64])
def test_an_infinite_score_in_half_precision_is_heard_of(n, dtype):
    q, k, v = torch.randn(3, 2, n, D).to(dtype)
    bias = torch.zeros(n, n, dtype=dtype)
    bias[3, 5] = math.inf
    found = fused_attention(q, k, v, bias=bias)
    assert found[:, 3].isnan().all()
    assert found[:, 4:].isfinite().all()
    q[0, 2], k[0, 7] = 1.0, math.inf
    for kernel in (fused, window, longformer, swin):
        attend, definition = kernel(n)
        wanted = definition(q, k, v)
        assert torch.equal(attend(q, k, v).isnan(), wanted.isnan())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_of_many_keys_in_half_precision_the_kernel_loses_none(dtype):
    """Who calls it by itself has nobody behind him that would look."""
    q, k, v = torch.randn(3, 1, 2, 20, D).to(dtype)
    q[..., 0, 2], k[..., 0, 2] = 1, torch.inf
    found = kernels.fused(q, k, v)
    assert found.isnan().equal(in_steps(q, k, v).isnan())


def test_an_infinite_offset_in_half_precision_is_heard_of():
    q, k, v = torch.randn(3, 2, 20, D).half()
    offsets = torch.zeros(1, 33).half()
    offsets[0, 20] = math.inf
    where = {"grid": (1, 20), "window": (1, 17)}
    found = swin_attention(q, k, v, relative_bias=offsets, **where)
    bias = swin_bias(offsets, (1, 20))
    wanted = attention(q, k, v, mask=swin_mask(**where), bias=bias)
    assert wanted.isnan().any()
    assert torch.equal(found.isnan(), wanted.isnan())


@pytest.mark.parametrize("name", ["fused", "flash", "tiles"])
def test_a_nan_of_little_weight_is_heard_of(name):
    """What marked who sees it came out as zero in float16; so nobody did."""
    q, k, v = torch.randn(3, 2, 7, D).half()
    q[:], k[:, 3] = 0.0, math.nan
    bias = torch.zeros(7, 7).half()
    bias[:, 3], bias[2, 3] = -24.0, -math.inf
    found = MASKED[name](q, k, v, bias=bias)
    assert found[:, [0, 1, 3, 4, 5, 6]].isnan().all()
    assert found[:, 2].isfinite().all()


@in_each_type
def test_an_offset_that_is_nan_is_heard_of(dtype):
    q, k, v = torch.randn(3, 2, 10, D).to(dtype)
    offsets = torch.full((1, 9), math.nan, dtype=dtype)
    where = {"grid": (1, 10), "window": (1, 5)}
    found = swin_attention(q, k, v, relative_bias=offsets, **where)
    assert found.isnan().all()
    offsets[0, 1:] = 0.0  # but for the furthest key
    bias = swin_bias(offsets, (1, 10))
    found = swin_attention(q, k, v, relative_bias=offsets, **where)
    wanted = attention(q, k, v, mask=swin_mask(**where), bias=bias)
    assert torch.equal(found.isnan(), wanted.isnan())
    assert 0 < found.isnan().sum() < found.numel()


@in_each_type
@pytest.mark.parametrize("table", ["mask", "bias"])
def test_who_sees_nothing_beside_a_nan_gets_zeros(table, dtype):
    """Where the NaN was lost, all is made in steps; there, a mask is no bias,
    and gave who sees nothing the average of all.
    """
    q, k, v = torch.randn(3, 2, 7, D).to(dtype)
    q[0, 2] = math.nan
    mask = torch.ones(7, 7, dtype=torch.bool)
    mask[4] = False
    hidden = torch.zeros(7, 7, dtype=dtype).masked_fill(~mask, -math.inf)
    tables = {"mask": mask, "bias": hidden}
    found = fused_attention(q, k, v, **{table: tables[table]})
    assert not found[:, 4].any()
    assert found[0, 2].isnan().all()
    wanted, most = attention(q, k, v, mask=mask), 4 * torch.finfo(dtype).eps
    assert_close(found, wanted, atol=most, rtol=0.0, equal_nan=True)


def test_values_of_zeros_are_no_lost_nan(monkeypatch):
    """They give zeros by right, and nothing is made twice."""
    monkeypatch.setattr("selfattn.kernels.in_steps", None)
    q, k = torch.randn(2, 2, 7, D)
    assert not fused_attention(q, k, torch.zeros(2, 7, 3)).any()
    early = fused_attention(q, k[:, :3], k[:, :3], causal=True)
    assert not early[:, :4].any()


@pytest.mark.parametrize("kernel", [fused, window])
def test_to_look_for_a_lost_nan_takes_no_memory_that_grows(kernel):
    """It took half as much again as the output, in half precision."""
    beyond = set()
    for n in (2048, 4096):
        q, k, v = torch.zeros(3, 2, n, 64).half()
        attend, _ = kernel(n)
        peak = peak_bytes(lambda q=q, k=k, v=v, f=attend: f(q, k, v))
        # Of each query, the kernel keeps a float32: what its weights sum to.
        kept = 4 * 2 * n if kernel is fused else 0
        beyond.add(peak - v.nbytes - kept)
    (constant,) = beyond
    assert 0 <= constant < 2**20


@pytest.mark.parametrize("causal", [False, True])
def test_no_sequences_are_none_whoever_has_none(causal):
    """Keys of no sequence, for a query of one: PyTorch's kernel gave one, and
    in it what was in memory.
    """
    for of_q, of_k in [((2, 1), (2, 0)), ((2, 0), (2, 1)), ((3, 1, 1), (0,))]:
        q, k = torch.randn(*of_q, 5, D), torch.randn(*of_k, 5, D)
        q.requires_grad_()
        found = fused_attention(q, k, k, causal=causal)
        assert found.shape == attention(q, k, k, causal=causal).shape
        found.sum().backward()
        assert not q.grad.any()


def test_the_kernel_itself_has_no_sequences_if_its_keys_have_none():
    q, k = torch.randn(1, 1, 5, D), torch.randn(2, 0, 7, D)
    assert kernels.by_pytorch(q, k, k).shape == (2, 0, 5, D)


def test_values_of_no_features_are_marked_all_the_same():
    """Whoever sees a key beside them is not taken for one who sees none."""
    q, k = torch.randn(5, D), torch.randn(7, D)
    blind = sees_nothing(kernels.by_pytorch, q, k, k[:, :0])
    assert blind.equal(torch.zeros(5, 1, dtype=torch.bool))


@pytest.mark.parametrize("causal", [False, True])
def test_no_queries_have_the_axes_of_their_keys(causal):
    q, k = torch.randn(2, 0, D), torch.randn(3, 2, 5, D)
    found = fused_attention(q, k, k, causal=causal)
    assert found.shape == (3, 2, 0, D)
    apart = fused_attention(q[:, None], k[:2], k[:2], causal=causal)
    assert apart.shape == (2, 2, 0, D)


@formulas
@pytest.mark.parametrize("autocast", [torch.bfloat16, torch.float16])
def test_derivatives_carried_along_have_the_type_of_autocast(autocast):
    q, k, v = torch.randn(3, 2, 7, D)
    with torch.autocast("cpu", autocast):
        plain = fused_attention(q, k, v)
        found, ahead = torch.func.jvp(fused_attention, (q, k, v), (q, k, v))
    assert found.dtype == ahead.dtype == plain.dtype
    assert_close(found, plain, atol=2e-2, rtol=2e-2)


@formulas
def test_no_switch_is_turned_that_is_for_all_threads(monkeypatch):
    """Two threads with derivatives left PyTorch's kernels off for good."""

    def turn(*args):
        raise AssertionError("a switch was turned")

    monkeypatch.setattr(torch._C, "_set_sdp_use_flash", turn)
    q, k, v = torch.randn(3, 2, 7, D)
    for attend in (attention, fused_attention):
        ahead = partial(attend, causal=True)
        one, _ = torch.func.jvp(ahead, (q, k, v), (q, k, v))
        assert_close(one, attention(q, k, v, causal=True))


@pytest.mark.parametrize("autocast", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("n_k", "d_v"), [(5, 4), (0, 4), (5, 0)])
def test_what_is_empty_has_the_type_of_autocast_too(autocast, dtype, n_k, d_v):
    """With a bias, a batch without keys was of another type than others."""
    q, k = torch.randn(2, 3, 4), torch.randn(2, n_k, 4)
    v, bias = torch.randn(2, n_k, d_v), torch.randn(3, n_k)
    with torch.autocast("cpu", autocast):
        given = [x.to(dtype) for x in (q, k, v)]
        output = fused_attention(*given, bias=bias.to(dtype))
    assert output.dtype == (dtype if dtype == torch.float64 else autocast)


@pytest.mark.parametrize("autocast", [torch.bfloat16, torch.float16])
def test_a_nan_under_autocast_has_the_type_of_the_numbers(autocast):
    q, k, v = torch.randn(3, 2, 7, D)
    with torch.autocast("cpu", autocast):
        clean = fused_attention(q, k, v)
        q[0, 2] = math.nan
        found = fused_attention(q, k, v)
    assert found.dtype == clean.dtype
    assert found[0, 2].isnan().all()
    assert_close(found[1], clean[1], atol=2e-2, rtol=2e-2)


NO_FEATURES = {**MASKED, **CAUSAL}
del NO_FEATURES["shaw"]  # its values have a width of its own


@pytest.mark.parametrize("name", NO_FEATURES)
def test_values_of_no_features_beside_a_spoilt_key_are_none(name):
    """They have no mark to tell who sees it, and there was an error."""
    q, k = torch.randn(2, 2, 7, D)
    k[:, -1] = math.nan
    q.requires_grad_()
    hidden = {"causal": True}
    if name in MASKED:
        mask = torch.ones(7, dtype=torch.bool)
        mask[-1] = False
        hidden = {"mask": mask}
    assert NO_FEATURES[name](q, k, k[..., :0], **hidden).shape == (2, 7, 0)


@pytest.mark.parametrize("name", NO_FEATURES)
def test_values_of_no_features_pass_nothing_back(name):
    """No number of the output is spoilt by a score that overflows, as there is
    none; and the gradients of queries and keys were NaN in half of these.
    """
    q, k = torch.rand(2, 2, 7, D) + 3
    k[0, -1, 0] = torch.finfo(k.dtype).max  # whose sum is a number
    q, k, v = (x.requires_grad_() for x in (q, k, torch.zeros(2, 7, 0)))
    output = NO_FEATURES[name](q, k, v)
    for grad in torch.autograd.grad(output.sum(), (q, k)):
        assert not grad.any()


HIDING = {**MASKED, **{n: f for n, f in CAUSAL.items() if n != "linear"}}
del HIDING["performer"]  # an infinite key has no features


@pytest.mark.parametrize("name", HIDING)
def test_a_hidden_key_of_minus_infinity_passes_nothing_back(name):
    """All scores with it are minus infinity, and the output is sound; but
    the gradient of queries was 0 times infinity.
    """
    hidden = {"causal": True}
    if name in MASKED:
        hidden = {"mask": torch.arange(7) != 6}
    q, k, v = torch.rand(3, 2, 7, D) + 0.1
    q.requires_grad_()
    found = []
    for bad in (0.5, -math.inf):
        k[:, 6, 0] = bad
        output = HIDING[name](q, k, v, **hidden)[:, :6]
        found += torch.autograd.grad(output.sum(), q)
    assert_close(found[1][:, :6], found[0][:, :6])


@pytest.mark.parametrize("empty", ["values", "queries", "keys", "batch"])
def test_a_learned_bias_of_nothing_has_a_gradient_of_zeros(empty):
    """As with `attention`; PyTorch's kernel left it out of the graph, and
    whoever asked for its gradient got an error.
    """
    sizes = {"batch": 2, "queries": 3, "keys": 5, "values": 7, empty: 0}
    n, n_q, n_k, d_v = (
        sizes[x] for x in ("batch", "queries", "keys", "values")
    )
    bias = torch.zeros(n_q, n_k, requires_grad=True)
    given = [torch.randn(n, *x) for x in ((n_q, 4), (n_k, 4), (n_k, d_v))]
    output = fused_attention(*given, bias=bias)
    assert output.shape == (n, n_q, d_v)
    [found] = torch.autograd.grad(output.sum(), bias)
    assert torch.equal(found, torch.zeros(n_q, n_k))


def test_what_is_made_in_steps_hides_what_its_mask_hides():
    """It is asked for where numbers are NaN, which then told of no mask."""
    q, k, v = torch.randn(3, 2, 7, 5).double()
    for mask in (torch.ones(7, 7).bool().tril(), torch.rand(7, 7) < 0.6):
        mask[:, 0] = True
        assert_close(in_steps(q, k, v, mask), attention(q, k, v, mask=mask))


def gradients(attend, q, k, v, **options):
    """What comes back to the three, from an upstream of its own for each."""
    given = [x.detach().clone().requires_grad_() for x in (q, k, v)]
    output = attend(*given, **options)
    upstream = torch.linspace(-1, 1, output.numel()).to(output.dtype)
    return torch.autograd.grad(output, given, upstream.view_as(output))


@in_each_type
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", [fused, hiding, window, longformer, swin])
def test_large_scores_leave_the_way_back_its_number_of_keys(
    kernel, causal, dtype
):
    """Each of n keys alike weighed 1 on the way back, not 1/n.

    PyTorch's kernel makes weights anew from score + log n, in which nothing
    is left of log n.
    """
    for n in (5, 20, 33):
        attend, definition = kernel(n)
        size = 1e8 if dtype == torch.float64 else 200.0
        q = torch.full((2, 3, n, D), size, dtype=dtype)
        k, v = 25 * q, torch.randn(2, 3, n, D).to(dtype)
        found = gradients(attend, q, k, v, causal=causal)
        wanted = gradients(definition, q, k, v, causal=causal)
        room = 4 * n * torch.finfo(dtype).eps
        assert_close(found[2], wanted[2], atol=room, rtol=room)
        # What comes back to k is the difference of what is nearly equal,
        # times q; to q it is zero, as all keys are alike.
        assert_close(found[1] / size, wanted[1] / size, atol=room, rtol=room)


@in_each_type
@pytest.mark.parametrize("far", [3e38, -3e38, 1e9])
def test_a_bias_far_from_zero_leaves_it_too(far, dtype):
    """Minus all there is, as a mask by addition, was the same fault."""
    if dtype == torch.float16 and abs(far) > 6e4:
        far = math.copysign(6e4, far)
    if dtype == torch.float64:
        far *= 1e10
    q, k, v = torch.randn(3, 2, 3, 20, D).to(dtype)
    bias = torch.zeros(20, 20, dtype=dtype)
    bias[7], bias[9, 3] = far, -math.inf
    found = gradients(fused_attention, q, k, v, bias=bias)
    wanted = gradients(attention, q, k, v, bias=bias)
    room = 40 * torch.finfo(dtype).eps
    for x, y in zip(found, wanted, strict=True):
        assert_close(x, y, atol=room * float(y.abs().max()), rtol=room)


def test_a_large_scale_makes_large_scores():
    q, k = torch.ones(2, 1, 1, 20, D)
    v = torch.randn(1, 1, 20, D)
    found = gradients(fused_attention, q, k, v, scale=1e9)
    assert_close(found[2], gradients(attention, q, k, v, scale=1e9)[2])


def test_ordinary_scores_stay_on_the_kernel(monkeypatch):
    """The steps build the table that the kernel is there to avoid."""
    monkeypatch.setattr("selfattn.kernels.in_steps", None)
    for size in (1.0, 30.0):
        q, k, v = size * torch.randn(3, 2, 3, 64, 16)
        bias = torch.randn(64, 64)
        bias[:, :3], bias[3, 40:] = torch.finfo(torch.float32).min, -1e9
        gradients(fused_attention, q, k, v, causal=True)
        gradients(fused_attention, q, k, v, bias=bias)
    with torch.no_grad():
        fused_attention(1e6 * q, 1e6 * k, v)


@pytest.mark.parametrize("qs", [-1.0, 1.0, 1e-30])
@pytest.mark.parametrize("scale", [2.0, -2.0, 300.0])
@pytest.mark.parametrize("hidden_by", ["mask", "bias", "causal"])
def test_a_hidden_key_of_the_largest_numbers_passes_nothing_back(
    hidden_by, scale, qs
):
    """PyTorch's steps multiply it by the root of the scale: infinity, of
    which a weight of zero passed NaN back to the query, with a sound output.
    """
    seen = torch.arange(5) < 4
    hides = {
        "mask": {"mask": seen.expand(4, 5)},
        "bias": {"bias": torch.zeros(5).masked_fill(~seen, -math.inf)},
        "causal": {"causal": True},
    }[hidden_by]
    k, v = torch.randn(2, 5, 3)
    n = 5 if hidden_by == "causal" else 4
    q = torch.full((n, 3), qs)
    k[4] = torch.finfo(torch.float32).max
    made = []
    for attend in (fused_attention, attention):
        given = [x.clone().requires_grad_() for x in (q, k, v)]
        output = attend(*given, scale=scale, **hides)[:4]
        made.append(torch.autograd.grad(output.sum(), given))
    for found, wanted in zip(*made, strict=True):
        assert_close(found, wanted, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("far", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("of", ["q", "k", "bias"])
@pytest.mark.parametrize("trained", ["v", "q, k and v"])
def test_a_spoilt_sequence_leaves_another_its_number_of_keys(far, of, trained):
    """Beside one key of minus infinity nobody asked how large the others'
    scores are: each of 8 keys alike weighed 1 on the way back, not 1/8.
    """
    q, k, v = torch.ones(2, 1, 8, 4), torch.ones(2, 1, 8, 4), torch.randn(8, 4)
    q[1] = k[1] = 1e5
    bias = torch.zeros(2, 1, 8, 8)
    {"q": q, "k": k, "bias": bias}[of][0, 0, -1] = far
    told = {"bias": bias} if of == "bias" else {}
    v = v.expand(2, 1, 8, 4).clone().requires_grad_()
    if trained != "v":
        q, k = q.requires_grad_(), k.requires_grad_()
    output = fused_attention(q, k, v, **told)
    [found] = torch.autograd.grad(output[1].sum(), v)
    assert_close(found[1], torch.ones(1, 8, 4))


@pytest.mark.parametrize("d_v", [1, 8])
@pytest.mark.parametrize("size", [256.0, 4096.0, 65536.0])
def test_equal_scores_are_equal_however_large_with_a_gradient(d_v, size):
    """PyTorch's steps multiply q and k by the root of the scale, which rounds:
    what asked for a gradient got one of two values, not the average.
    """
    for seed in range(20):
        torch.manual_seed(seed)
        q, k = (size * torch.randint(-1, 2, (5, 8)).float() for _ in range(2))
        v = torch.randn(5, d_v)
        wanted = attention(*(x.double() for x in (q, k, v))).float()
        output = fused_attention(q.requires_grad_(), k, v)
        assert_close(output.detach(), wanted, atol=1e-4, rtol=1e-4)
