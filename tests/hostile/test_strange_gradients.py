"""What strangers found, of gradients and of who is seen: single stories."""

import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.autograd.functional import jacobian
from torch.testing import assert_close

from hostile.test_strangers import CAUSAL, MASKED
from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.swin import swin_attention, swin_bias
from selfattn.masks import causal_mask
from selfattn.multihead import MultiHeadAttention

BIASED = ["fused", "flash", "tiles"]
# PyTorch's own formulas for derivatives that are carried along forwards.
formulas = pytest.mark.filterwarnings("ignore:.torch.jit.script")
# It has no rule for many attentions at once, and takes one by one.
slowly = pytest.mark.filterwarnings("ignore:There is a performance drop")
BY_HAND = {n: MASKED[n] for n in ("flash", "tiles")} | CAUSAL


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


def made_up_for(dtype, size):
    """A key whose score makes up for a bias as low: all weigh alike."""
    q, k, v = torch.zeros(3, 1, 4, 4)
    q[..., 0], k[:, 1, 0] = 2.0, size
    bias = torch.zeros(4, 4)
    bias[:, 1] = -size
    v[:] = torch.arange(16).view(1, 4, 4)
    return [x.to(dtype) for x in (q, k, v, bias)]


LOW = [(torch.float16, 32.0, 300.0), (torch.float32, 128.0, 1e20)]


@pytest.mark.parametrize("name", BIASED)
@pytest.mark.parametrize(("dtype", "size", "large"), LOW)
def test_what_a_low_bias_leaves_is_felt(name, dtype, size, large):
    """Who sees a large value was asked of keys that are all alike: of their
    weights a bias of -32 left nothing in float16, and the value was lost.
    """
    q, k, v, bias = made_up_for(dtype, size)
    v[:, 1] = large
    wanted = attention(*(x.double() for x in (q, k, v)), bias=bias.double())
    for x in (q, k, v):
        x.requires_grad_()
    output = MASKED[name](q, k, v, bias=bias)
    assert_close(output, wanted.to(dtype))
    hidden = bias.clone()
    hidden[:2, 1] = -math.inf
    without = MASKED[name](q, k, v, bias=hidden)
    assert_close(without[:, 2:], wanted[:, 2:].to(dtype))
    assert without[:, :2].max() < 16


@pytest.mark.parametrize("name", BIASED)
@pytest.mark.parametrize(("dtype", "size", "large"), LOW)
def test_nan_behind_a_low_bias_is_felt(name, dtype, size, large):
    q, k, v, bias = made_up_for(dtype, size)
    v[:, 1] = math.nan
    assert MASKED[name](q, k, v, bias=bias).isnan().all()
    bias[:2, 1] = -math.inf
    output = MASKED[name](q, k, v, bias=bias)
    assert output[:, :2].isfinite().all() and output[:, 2:].isnan().all()


def test_what_a_low_bias_of_a_window_leaves_is_felt():
    q, k, v = torch.zeros(3, 1, 2, 4)
    q[..., 0], k[:, 1, 0], v[:, 1] = 2.0, 32.0, 300.0
    low = torch.tensor([[-32.0, 0.0, 0.0]])  # of keys to the right
    bias = swin_bias(low, (1, 2))
    wanted = attention(q.double(), k.double(), v.double(), bias=bias.double())
    q, k, v = (x.half().requires_grad_() for x in (q, k, v))
    output = swin_attention(
        q, k, v, grid=(1, 2), window=(1, 2), relative_bias=low.half()
    )
    assert_close(output, wanted.half())


def test_dropout_does_not_ask_twice_who_sees_a_large_value():
    """It was dropped once more when one asked who sees it: of four times one
    was left, at the weight for two.
    """
    q = torch.zeros(4000, 3, 4, dtype=torch.float16, requires_grad=True)
    v = torch.zeros_like(q)
    v[:, 1] = 600.0
    output = fused_attention(q, q, v, causal=True, dropout_p=0.5)
    means = output.detach().float().mean(dim=(0, 2))
    assert_close(means, torch.tensor([0.0, 300.0, 200.0]), atol=30, rtol=0)


@pytest.mark.parametrize("attend", BY_HAND.values(), ids=BY_HAND)
def test_several_gradients_at_once_are_refused_in_words(attend):
    """PyTorch said: no batching rule for aten::alias."""
    q, k, v = torch.randn(3, 2, 5, 4)
    with pytest.raises(ValueError, match="but several were passed"):
        jacobian(lambda q: attend(q, k, v), q, vectorize=True)


def test_several_gradients_of_windows_at_once_are_refused_in_words():
    q, k, v = torch.randn(3, 2, 6, 4)
    attend = partial(swin_attention, grid=(2, 3), window=(2, 2))
    with pytest.raises(ValueError, match="but several were passed"):
        jacobian(lambda q: attend(q, k, v), q, vectorize=True)


def with_a_tangent(x):
    return forward_ad.make_dual(x, torch.ones_like(x))


@formulas
def test_a_tangent_of_what_is_no_query_nor_key_is_refused_in_words():
    """Of a bias, which may be learned."""
    q, k, v = torch.randn(3, 2, 6, 4)
    windows = {"grid": (2, 3), "window": (2, 2)}
    with forward_ad.dual_level():
        bias = with_a_tangent(torch.zeros(6, 6))
        offsets = with_a_tangent(torch.zeros(3, 3))
        for ask in (
            lambda: flash_attention(q, k, v, bias=bias),
            lambda: swin_attention(q, k, v, relative_bias=offsets, **windows),
        ):
            with pytest.raises(ValueError, match="forward_ad cannot"):
                ask()


class Named(torch.Tensor):
    """A tensor of somebody's own class, which has a name."""


@pytest.mark.parametrize("attend", MASKED.values(), ids=MASKED)
@pytest.mark.parametrize("part", [1, 2])
def test_what_is_hidden_is_not_felt_by_a_class_of_tensors(attend, part):
    """Nobody looked, as if their numbers were not at hand."""
    inputs = torch.randn(3, 2, 5, 4)
    inputs[part, :, -1] = math.nan
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[:, -1] = False
    named = (x.as_subclass(Named) for x in inputs)
    output = attend(*named, mask=mask).as_subclass(torch.Tensor)
    assert_close(output, attend(*inputs, mask=mask))
    assert output.isfinite().all()


def test_weights_that_cannot_be_called_are_no_table():
    """A mechanism may call a parameter so."""

    class Weighed(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.Parameter(torch.ones(4))

        def forward(self, q, k, v, **options):
            return attention(q, k, v, **options) * self.weights

    layer, x = MultiHeadAttention(8, 2, attend=Weighed()), torch.ones(1, 3, 8)
    assert layer(x).shape == x.shape
    with pytest.raises(ValueError, match="only a mechanism with a table"):
        layer.weights(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("how", ["all", "causal", "mask", "bias"])
@formulas
def test_fused_attention_has_all_derivatives_that_torch_func_takes(how, dtype):
    """Where values are as wide as keys, PyTorch takes a kernel that has the
    first alone, and not forwards; it wanted to be told about it.
    """
    q, k, v = torch.randn(3, 2, 5, 4, dtype=dtype)
    options = {
        "all": {},
        "causal": {"causal": True},
        "mask": {"mask": torch.ones(5, 5).tril(1).bool()},
        "bias": {"bias": torch.randn(5, 5, dtype=dtype)},
    }[how]

    def total(attend, q):
        return attend(q, k, v, **options).square().sum()

    for take in (
        torch.func.hessian,
        lambda f: torch.func.grad(lambda q: torch.func.grad(f)(q).sum()),
        lambda f: lambda q: torch.func.jvp(f, (q,), (k,))[1],
        lambda f: lambda q: tangent_of(f, q, k),
    ):
        found = take(partial(total, fused_attention))(q)
        assert_close(found, take(partial(total, attention))(q))


def tangent_of(f, x, along):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(
            f(forward_ad.make_dual(x, along))
        ).tangent


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("size", [1e291, 1e297, 1.7e308])
def test_the_largest_values_of_float64_have_an_average(name, size):
    """Performer's was infinite, for its features are up to e²⁰ each; and who
    does not see that value got NaN on the way back.
    """
    given = torch.randn(3, 1, 6, 4, dtype=torch.float64)
    attend = partial(BY_HAND[name], causal=True)
    grads = []
    for last in (1.0, size):
        q, k, v = (x.clone() for x in given)
        v[:, -1] = last
        inputs = [x.requires_grad_() for x in (q, k, v)]
        output = attend(*inputs)
        grads.append(torch.autograd.grad(output[:, :-1].sum(), inputs))
    assert output.isfinite().all()
    assert_close(*grads)


@slowly
@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_a_bias_of_each_may_be_learned_by_vmap(around, masked):
    """As `torch.func`'s ensembles learn theirs: in there a bias does not say
    that a gradient is asked of it, and PyTorch chose a kernel that has none.
    """
    q, biases = torch.randn(2, 5, 4), torch.randn(3, 5, 5)
    mask = causal_mask(5, 5) if masked else None

    def total(attend, biases):
        one = partial(attend, q, q, q, mask=mask)
        made = torch.func.vmap(lambda bias: one(bias=bias))(biases)
        return made.square().sum()

    grads = []
    for attend in (attention, fused_attention):
        if around:
            grad = torch.func.grad(partial(total, attend))(biases)
        else:
            learned = biases.clone().requires_grad_()
            grad = torch.autograd.grad(total(attend, learned), learned)[0]
        grads.append(grad)
    assert_close(*grads)
