"""What strangers found of what is the caller's, and of what fits nothing."""

import math
from functools import partial

import pytest
import torch
from torch import nn
from torch._dynamo.exc import Unsupported
from torch.nn.functional import scaled_dot_product_attention as by_torch

from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import (
    linear_attention,
    linear_attention_step,
    linear_weights,
)
from selfattn.efficient.performer import (
    performer_attention,
    performer_weights,
)
from selfattn.efficient.reformer import lsh_attention, lsh_mask
from selfattn.efficient.sparse import strided_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import alibi_bias, alibi_slopes, rope, rope_halves
from selfattn.positions import sinusoidal as waves
from selfattn.positions.relative import TransformerXLAttention


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


@pytest.mark.parametrize("base", [math.inf, math.nan, 0, -1.0])
def test_a_base_is_a_positive_number(base):
    """With infinity each pair but the first stood still, and nothing said."""
    x = torch.ones(3, 4)
    for turn in (rope, rope_halves, lambda x, base: waves(3, 4, base=base)):
        with pytest.raises(ValueError, match="base must be"):
            turn(x, base=base)


@pytest.mark.parametrize("n_heads", [2**16 + 1, 2**62])
def test_more_heads_than_can_be_listed_are_refused(n_heads):
    """The slopes of 2⁶² heads were listed until memory was full."""
    for make in (alibi_slopes, lambda n: alibi_bias(n, 1, 1)):
        with pytest.raises(ValueError, match="at most 65,536 heads"):
            make(n_heads)


@pytest.mark.parametrize("attend", [linear_attention, linear_weights, "step"])
def test_a_feature_map_in_place_leaves_the_caller_s_own(attend):
    """What was asked and what was found were overwritten by features."""
    q, k, v = torch.randn(3, 5, 4)
    before = q.clone(), k.clone()
    rest = () if attend is linear_weights else (v,)
    if attend == "step":
        attend = linear_attention_step
    attend(q, k, *rest, feature_map=torch.Tensor.sigmoid_)
    assert torch.equal(q, before[0])
    assert torch.equal(k, before[1])


@pytest.mark.parametrize("bias", [True, False])
def test_a_copy_of_a_layer_draws_no_numbers(bias):
    """Weights were drawn, only to be overwritten: what came next changed."""
    theirs = nn.MultiheadAttention(8, 2, bias=bias, batch_first=True)
    before = torch.random.get_rng_state()
    ours, x = MultiHeadAttention.from_torch(theirs), torch.ones(1, 3, 8)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.testing.assert_close(ours(x), theirs(x, x, x)[0])


def test_buckets_are_of_queries_and_keys_that_fit():
    """Of other features, there were buckets that have nothing in common."""
    with pytest.raises(ValueError, match="agree in the axis d"):
        lsh_mask(torch.randn(5, 4), torch.randn(6, 3))
    with pytest.raises(ValueError, match="must broadcast together"):
        lsh_mask(torch.randn(2, 5, 4), torch.randn(3, 6, 4))


def test_a_whole_graph_is_refused_by_its_own_name():
    """It was said that torch.func was at work, which it was not."""
    q = torch.randn(3, 4)
    graph = torch.compile(linear_attention, backend="eager", fullgraph=True)
    with pytest.raises(Unsupported, match="whole graph") as refused:
        graph(q, q, q)
    assert "torch.func cannot" not in str(refused.value)


@pytest.mark.parametrize(
    ("attend", "instead", "table"),
    [
        (linear_attention, "`linear_weights", linear_weights),
        (performer_attention, "`performer_weights", performer_weights),
        (flash_attention, "`attention`", None),
    ],
)
def test_what_can_be_transformed_instead_gives_the_same(
    attend, instead, table
):
    """Of linear attention, that of softmax was said to be the same."""
    q, k, v = torch.randn(3, 2, 5, 4)
    with pytest.raises(ValueError, match=instead):
        torch.func.vmap(attend)(q, k, v)
    x = q.clone().requires_grad_()
    with pytest.raises(RuntimeError, match=f"{instead}.* can be, as often"):
        torch.autograd.grad(attend(x, k, v).sum(), x, create_graph=True)
    if table is not None:
        same = torch.func.vmap(lambda q, k, v: table(q, k) @ v)
        torch.testing.assert_close(same(q, k, v), attend(q, k, v))


def test_tokens_of_a_step_fit_together():
    """PyTorch said which sizes differ, and not whose."""
    with pytest.raises(ValueError, match="must broadcast together, but q"):
        linear_attention_step(*(torch.randn(n, 4) for n in (2, 3, 3)))


MECHANISMS = {
    "fused": fused_attention,
    "flash": flash_attention,
    "strided": partial(strided_attention, stride=4),
    "window": partial(sliding_window_attention, window=9),
}


@pytest.mark.parametrize("large", ["v", "qk"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_largest_numbers_after_a_query_do_not_reach_it(name, large):
    """Who sees them overflows; and who does not, came out NaN as soon as a
    gradient was asked for, or had it passed back to the keys.
    """

    def asked(number):
        x = dict(zip("qkvg", torch.randn(4, 16, 4).unbind(), strict=True))
        for which in large:
            x[which][13:] = number
        x["g"][13:] = 0
        given = [x[which].requires_grad_() for which in "qkv"]
        y = MECHANISMS[name](*given, causal=True)
        grads = torch.autograd.grad(y, given, x["g"])
        return [part[:13] for part in (y, *grads)]

    for seed in range(3):
        torch.manual_seed(seed)
        wanted = asked(1.0)
        torch.manual_seed(seed)
        found = asked(torch.finfo(torch.float32).max)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_rounds_no_scores_of_the_definition(dtype):
    """Its gradients were off by almost four times what PyTorch's own are."""
    torch.manual_seed(0)
    q, k, v, passed = torch.randn(4, 2, 32, 16)
    given = 5 * q, 5 * k, v

    def off(attend, exact):
        x = [part.clone().requires_grad_() for part in given]
        with torch.autocast("cpu", dtype=dtype):
            y = attend(*x)
        grads = torch.autograd.grad(y, x, passed.to(y.dtype))
        pairs = zip((y, *grads), exact, strict=True)
        return [float((a - b).detach().abs().max()) for a, b in pairs]

    exact = [part.double().requires_grad_() for part in given]
    y = by_torch(*exact)
    exact = [y, *torch.autograd.grad(y, exact, passed.double())]
    both = off(attention, exact), off(by_torch, exact)
    assert all(100 * a < b for a, b in zip(*both, strict=True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_leaves_the_distances_of_transformer_xl_as_they_are(dtype):
    """One of two factors was in half: "the weights must fit each other"."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, 7, 4, generator=generator)
    layer = TransformerXLAttention(3, 4)
    wanted = layer(q, k, v)
    with torch.autocast("cpu", dtype=dtype):
        torch.testing.assert_close(layer(q, k, v), wanted, atol=0, rtol=0)


def test_who_compiles_buckets_hears_what_to_do_instead():
    """It was said that the model was being exported, which it was not."""
    q, k, v = torch.randn(3, 20, 4)
    with pytest.raises(
        ValueError, match=r"compiled; .*torch\.compiler\.disable"
    ):
        torch.compile(lsh_attention, backend="eager")(q, k, v)
    apart = torch.compiler.disable(lsh_attention)
    found = torch.compile(lambda *x: 2 * apart(*x), backend="eager")(q, k, v)
    torch.testing.assert_close(found, 2 * lsh_attention(q, k, v))
