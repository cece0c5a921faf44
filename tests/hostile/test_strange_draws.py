"""What strangers found of heads dealt out, of what is drawn, and of kernels.

As in `test_strangers`, each is a single story.
"""

import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from selfattn.devices.heads import tensor_parallel
from selfattn.devices.world import on_ranks
from selfattn.dot_product import fused_attention
from selfattn.efficient.reformer import lsh_buckets
from selfattn.efficient.sparse import fixed_attention, strided_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.layers import FeedForward, SwiGLU
from selfattn.models import LabelHead
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import Convolution
from selfattn.spoilt import drawing_once


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


# Heads that are dealt out


def of_nothing(rank, n_ranks):
    mesh = init_device_mesh("cpu", (n_ranks,))
    layer, x = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    part = tensor_parallel(layer, mesh)
    for given in (
        (x[:, :0],),
        (x[:0],),
        (x, x[:, :0]),
    ):
        for call in (part, part.heads):
            with pytest.raises(ValueError, match="at least 1 token, but it"):
                call(*given)
    with pytest.raises(ValueError, match="at least 1 token, but it was"):
        part.keys_values(x[:, :0])
    with pytest.raises(ValueError, match=r"W_q.* must be whole to be copied"):
        part.to_torch()
    theirs = nn.MultiheadAttention(8, 2)
    theirs.out_proj = part.W_o
    with pytest.raises(ValueError, match=r"out_proj.* must be whole to be"):
        MultiHeadAttention.from_torch(theirs)
    assert_close(part(x), layer(x))
    return "done"


@pytest.mark.parametrize("ranks", [1, 2])
def test_heads_that_are_dealt_out_say_what_they_cannot(ranks):
    """Errors were "integer modulo by zero", or another one on each rank; and
    "mixed torch.Tensor and DTensor".
    """
    assert on_ranks(of_nothing, ranks) == ["done"] * ranks


# What is drawn, in a text beside a spoilt one


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("learns", [False, True])
def test_dropout_of_weights_is_drawn_once(masked, learns):
    """Who is beside a spoilt text had other weights dropped, and what was
    drawn next was another number.
    """
    q, k, v = torch.randn(3, 3, 4, 8)
    mask = torch.ones(3, 1, 4, dtype=torch.bool)
    mask[1, :, 3] = not masked
    if not masked:
        mask = None
    found = []
    for number in (0.5, math.nan):
        bad = k.clone()
        bad[1, 3] = number
        q = q.detach().requires_grad_(learns)
        torch.manual_seed(0)
        output = fused_attention(q, bad, v, mask=mask, dropout_p=0.3)
        found.append([*output[[0, 2]], torch.rand(1)])
    assert_close(*found)


def test_steps_drop_what_the_kernel_dropped():
    """Where it falls short, as with large scores, they drew once more."""
    x = torch.randn(3, 4, 8, requires_grad=True)
    drawn = []
    for size in (1.0, 1e9):
        torch.manual_seed(0)
        fused_attention(size * x, size * x, x, dropout_p=0.3)
        drawn.append(torch.rand(1))
    assert_close(*drawn)


def test_who_draws_once_more_leaves_the_generator_as_it_was():
    """Also if it draws less than was drawn, or more."""
    torch.manual_seed(0)
    wanted = torch.rand(5)
    torch.manual_seed(0)
    first, again = drawing_once(wanted, torch.rand, torch.rand)
    assert first(4).equal(wanted[:4])
    for n in (1, 9):
        again(n)
    assert torch.rand(1).equal(wanted[4:])


class Noisy(nn.Linear):
    """As an adapter with dropout of its own, in the place of a matrix."""

    def forward(self, x):
        return nn.functional.dropout(super().forward(x))


def noisy_heads():
    layer = MultiHeadAttention(8, 2)
    layer.W_k, layer.W_o = Noisy(8, 8), Noisy(8, 8)
    return layer


def noisy_gates():
    layer = SwiGLU(8, 16)
    layer.W_in = Noisy(8, 16)
    return layer


@pytest.mark.parametrize(
    "make",
    [
        lambda: FeedForward(8, 16, dropout=0.5),
        lambda: nn.Sequential(LabelHead(8, 3, dropout=0.5)),
        noisy_heads,
        noisy_gates,
    ],
    ids=["dropout", "head", "matrix", "gate"],
)
def test_a_spoilt_token_does_not_change_what_is_drawn(make):
    """The layer was called again, and drew anew: with a gradient, the other
    text had another dropout, and the next layer another one still.
    """
    layer, x = make(), torch.randn(2, 5, 8)
    x[0, 0] = torch.nan

    def drawn():
        torch.manual_seed(1)
        return layer(x)[1], torch.rand(3)

    made, after = drawn()
    with torch.no_grad():
        wanted, then = drawn()
    assert_close(made, wanted)
    assert_close(after, then)
    made.sum().backward()
    assert all(w.grad.isfinite().all() for w in layer.parameters())


# What kernels, hashes and convolutions take


@pytest.mark.parametrize(
    "attend",
    [fused_attention, partial(sliding_window_attention, window=3)],
    ids=["fused", "window"],
)
@pytest.mark.parametrize("mask", [False, True])
def test_padding_of_nan_is_hidden_within_the_one_kernel_asked_for(
    attend, mask
):
    """No kernel was available: it was asked with one feature who sees what."""
    q, k, v = torch.randn(3, 2, 12, 8)
    k, v = k.clone(), v.clone()
    k[:, -1], v[0, -1] = torch.nan, torch.inf
    told = {"causal": True}
    if mask and attend is fused_attention:
        told = {"mask": torch.arange(12) < 11}
    q.requires_grad_()
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        found = attend(q, k, v, **told)
        [grad] = torch.autograd.grad(found[:, :-1].sum(), q)
    wanted = attend(q, k, v, **told)
    assert_close(found, wanted, equal_nan=True)
    assert found[:, :-1].isfinite().all()
    assert grad.isfinite().all()


def test_how_long_a_vector_is_does_not_move_it_to_another_bucket():
    """Products overflowed, and infinity was as near as infinity."""
    x = torch.randn(500, 16, generator=torch.Generator().manual_seed(0))
    options = {"n_buckets": 8, "n_rounds": 8}
    wanted = lsh_buckets(x, **options)
    assert lsh_buckets(x * 3e37, **options).equal(wanted)
    assert lsh_buckets(x * 1e20, **options).equal(wanted)
    assert lsh_buckets(x.double() * 1e290, **options).equal(wanted)


@pytest.mark.parametrize("size", [1e-20, 1e-38, 1e-42, 1e-44])
def test_a_bucket_does_not_depend_on_how_short_a_vector_is(size):
    """Of numbers without all their digits, products had none left."""
    torch.manual_seed(0)
    x = torch.randn(500, 8) * size
    x[:3] = 0
    options = {"n_buckets": 16, "n_rounds": 4}
    wanted = lsh_buckets(x.double() * 2.0**140, **options)
    assert lsh_buckets(x, **options).equal(wanted)
    tiny = x.double() * 2.0**-920  # some of which float64 has no digits for
    larger = lsh_buckets(tiny * 2.0**1000, **options)
    assert lsh_buckets(tiny, **options).equal(larger)


def test_a_layer_of_more_reach_than_64_bits_meets_one_tap():
    """It was "Overflow when unpacking long long", from the 42nd layer on."""
    layer = Convolution(2, kernel=3, n_layers=45, dilated=True)
    x = torch.randn(1, 4, 2)
    made = layer(x)
    for at, one in enumerate(layer.layers):
        if at < 2:  # whose taps reach a neighbour, at 1 and 3 tokens
            x = x + Alone(one)(x)
        else:
            x = x + (x @ one.weight[..., 1].mT + one.bias).relu()
    assert_close(made, x)


class Alone(nn.Module):
    """One of those layers, with padding of PyTorch's."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        far = self.layer.dilation[0]
        return nn.functional.conv1d(
            x.mT,
            self.layer.weight,
            self.layer.bias,
            padding=far,
            dilation=far,
        ).mT.relu()


@pytest.mark.parametrize("attend", [strided_attention, fixed_attention])
def test_what_cannot_be_differentiated_twice_says_its_own_name(attend):
    """Both were called "attention in pieces"."""
    x = torch.randn(1, 6, 4, requires_grad=True)
    out = attend(x, x, x, stride=2).sum()
    with pytest.raises(RuntimeError, match=f"^{attend.__name__} can be"):
        torch.autograd.grad(out, x, create_graph=True)
    several = torch.ones(2)
    with pytest.raises(ValueError, match=f"^{attend.__name__} takes back"):
        torch.autograd.grad(
            attend(x, x, x, stride=2).sum(), x, several, is_grads_batched=True
        )
