"""What strangers found at the edges: of numbers, of layers, of files."""

from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from selfattn.devices.heads import tensor_parallel
from selfattn.devices.ring import ring_attention
from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.swin import swin_attention
from selfattn.layers import AddNorm, LayerNorm, RMSNorm
from selfattn.looking_inside import spread, weight_on
from selfattn.multihead import MultiHeadAttention


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


@pytest.fixture
def alone():
    """A world of one rank."""
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


# The largest numbers


@pytest.mark.parametrize("seed", [2, 3, 6, 7])
def test_a_window_does_not_feel_a_query_that_overflows(seed):
    """Its scores were numbers on the way there, and none on the way back,
    where they were added up in another order: 0 · NaN for the whole window.
    """
    torch.manual_seed(seed)
    q, k, v, g = torch.randn(4, 2, 1, 40, 5)
    q[0, 0, 39] = torch.finfo(torch.float32).max
    g[0, 0, 39] = 0
    inputs = [x.requires_grad_() for x in (q, k, v)]
    output = swin_attention(*inputs, grid=(5, 8), window=(3, 4), shift=(1, 2))
    for grad in torch.autograd.grad(output, inputs, g):
        assert grad.isfinite().all()


@pytest.mark.usefixtures("alone")
def test_a_ring_adds_up_no_more_than_a_mean():
    """A mean times the sum of its weights was infinite, if that was rounded
    up, and divided by that sum only then.
    """
    most = torch.finfo(torch.float32).max
    for n in range(1, 60):
        q, k, v = torch.zeros(1, 1), torch.zeros(n, 1), torch.zeros(n, 1)
        v[0] = most
        wanted = torch.tensor([[most]]).div(n)
        torch.testing.assert_close(ring_attention(q, k, v), wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kept", [False, True])
def test_a_layer_does_not_feel_the_largest_numbers_in_padding(dtype, kept):
    """Neither in a cache: of parameters, too, all gradients are finite."""
    layer = MultiHeadAttention(8, 2).to(dtype)
    numbers, g = torch.randn(2, 2, 6, 8).to(dtype)
    g[1, 4:] = 0
    mask = torch.ones(2, 1, 1, 6, dtype=torch.bool)
    mask[1, ..., 4:] = False
    both = []
    for number in (1.0, torch.finfo(dtype).max):
        x = numbers.clone()
        x[1, 4:] = number
        x.requires_grad_()
        context = layer.keys_values(x) if kept else None
        output = layer(x, context, mask=mask)
        passed = torch.autograd.grad(output, (x, *layer.parameters()), g)
        own = g != 0
        both.append([output[own], passed[0][own], *passed[1:]])
    near = 1e-5 if dtype == torch.float32 else 0.05
    torch.testing.assert_close(*both, atol=near, rtol=near)


# Norms


@pytest.mark.parametrize("d", [8, 768])
@pytest.mark.parametrize(("mean", "apart"), [(1e4, 1.0), (1e3, 0.01)])
def test_features_that_are_nearly_alike_are_told_apart(d, mean, apart):
    """Of a mean of 10,000 its rounding, a thousandth, was left in each."""
    torch.manual_seed(0)
    x = (mean + apart * torch.randn(100, d)).requires_grad_()
    g = torch.randn(100, d)
    wide = x.detach().double().requires_grad_()
    exact = torch.nn.functional.layer_norm(wide, (d,))
    exact = [exact, *torch.autograd.grad(exact, wide, g.double())]
    found = LayerNorm(d)(x)
    found = [found, *torch.autograd.grad(found, x, g)]
    for ours, wanted in zip(found, exact, strict=True):
        off = (ours.double() - wanted).abs().max()
        assert off < 1e-6 * wanted.abs().max()


@pytest.mark.parametrize("size", [1e-20, 1e-4, 1e4, 1e20])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float64]
)
@pytest.mark.parametrize("eps", [0.0, 1e-6])
def test_a_root_mean_square_is_as_good_as_its_type(size, dtype, eps):
    """PyTorch's own makes zeros of what is as large as 1e20."""
    torch.manual_seed(0)
    x = (size * torch.randn(100, 16)).to(dtype)
    wide = x.double()
    exact = wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt()
    found = RMSNorm(16, eps=eps).to(dtype)(x).double()
    off = (found - exact).abs() / exact.abs()
    assert off.max() <= 2 * torch.finfo(dtype).eps


# What the caller owns


class Doubling(nn.Module):
    """A norm that works in place."""

    def forward(self, x):
        return x.mul_(2.0)


@pytest.mark.parametrize("pre", [True, False])
@pytest.mark.parametrize(
    ("norm", "times"),
    [(nn.Identity, 1.0), (Doubling, 2.0), (LayerNorm, None)],
)
@pytest.mark.parametrize("learned", [True, False])
def test_a_sublayer_in_place_changes_neither_x_nor_the_path(
    pre, norm, times, learned
):
    """It worked on the very x that was added to what it made."""
    make = norm if times is None else lambda d: norm()
    path = AddNorm(4, pre=pre, norm=make)
    x = torch.randn(2, 3, 4)
    before = x.clone()
    x.requires_grad_(learned)
    found = path(x, torch.Tensor.relu_)
    assert torch.equal(x, before)
    assert torch.equal(found, path(x, torch.relu))
    if times is not None:
        inside = times if pre else 1.0
        added = before + (inside * before).relu()
        assert torch.equal(found, added if pre else times * added)


# Layers that were changed


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        *(("W_q", (5, 8)), ("W_q", (8, 16)), ("W_k", (5, 4)), ("W_k", (8, 8))),
        *(("W_v", (5, 4)), ("W_v", (8, 8)), ("W_o", (4, 8)), ("W_o", (8, 5))),
    ],
)
@pytest.mark.parametrize("kept", [True, False])
def test_a_matrix_of_another_size_is_named(name, sizes, kept):
    """It was said of x or the context that they do not fit; and a last one
    that makes other features said nothing.
    """
    layer, x = MultiHeadAttention(8, 4, n_kv_heads=2), torch.randn(2, 3, 8)
    context = layer.keys_values(x) if kept else None
    setattr(layer, name, nn.Linear(*sizes))
    told = rf"{name} must be given .*in_features={sizes[0]}, out_features"
    with pytest.raises(ValueError, match=told):
        layer(x, context)
    if name in ("W_k", "W_v"):
        with pytest.raises(ValueError, match=told):
            layer.keys_values(x)


def test_values_of_another_type_are_named():
    """PyTorch said that float is not double."""
    layer = MultiHeadAttention(8, 4)
    layer.W_v.double()
    with pytest.raises(ValueError, match=r"W_v must be given .*float64"):
        layer(torch.randn(2, 3, 8))


@pytest.mark.usefixtures("alone")
def test_heads_are_dealt_out_once():
    """Dealt out again, PyTorch spoke of placements, the layer half changed."""
    mesh = init_device_mesh("cpu", (1,))
    layer, x = MultiHeadAttention(8, 4), torch.randn(2, 3, 8)
    dealt = tensor_parallel(layer, mesh)
    with pytest.raises(ValueError, match=r"whole .*W_q\.weight is a DTensor"):
        tensor_parallel(dealt, mesh)
    torch.testing.assert_close(dealt(x), layer(x))


# Weights that are none


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ([[3.0, 1.0]], "add up to 1 at most .* is 4;"),
        ([[0.5, 0.5000], [0.7, 0.4]], "add up to 1 at most .* is 1.1;"),
        ([[1.5, -0.5]], "must not be negative"),
    ],
)
def test_what_are_no_weights_have_no_spread_and_no_mean(weights, told):
    """Scores had a share of 3.2 of what is possible."""
    weights = torch.tensor(weights)
    with pytest.raises(ValueError, match=told):
        spread(weights)
    with pytest.raises(ValueError, match=told):
        weight_on(weights[None, None], torch.tensor([0]), torch.tensor([[1]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_mask_of_a_spread_is_that_of_the_weights(dtype):
    """Without it, or with another, more than all that is possible was said."""
    weights = torch.full((2, 4), 0.25, dtype=dtype)
    mask = torch.tensor([True, True, False, True])
    with pytest.raises(ValueError, match=r"0 where the mask .* is 0\.25"):
        spread(weights, mask)
    rounded = torch.randn(3, 1000).softmax(-1).to(dtype)
    assert spread(rounded).max() < 1
    assert spread(torch.full((1, 2), torch.nan)).isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_may_have_been_rounded_in_a_smaller_type(dtype):
    """A sum of 1 + 1e-7 was refused in float64: "the most is 1"."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(5, 3, 7, 11, generator=generator)
    weights = scores.to(dtype).softmax(dim=-1).double()
    assert weights.sum(dim=-1).amax() > 1 + 2e-8
    shares = spread(weights)
    assert torch.all((shares > 0) & (shares < 1))


# Whole graphs


class Attending(nn.Module):
    """A mechanism as a model, to be exported."""

    def __init__(self, attend):
        super().__init__()
        self.attend = attend

    def forward(self, x, mask):
        return self.attend(x, x, x, mask=mask, causal=True)


@pytest.mark.parametrize("kind", ["attention", "fused", "layer"])
def test_one_whole_graph_is_made_of_the_definition_and_of_the_layer(kind):
    """By `torch.compile(fullgraph=True)`, its way back included, and by a
    strict `torch.export`: what is looked at in the numbers is not, there.
    """
    mask = torch.ones(1, 1, 5, 5, dtype=torch.bool)
    mask[..., 2, :] = False
    x = torch.randn(2, 5, 8) if kind == "layer" else torch.randn(2, 2, 5, 4)
    mechanisms = {"attention": attention, "fused": fused_attention}
    if kind == "layer":
        attend = MultiHeadAttention(8, 2, attend=fused_attention)
        call = partial(attend, causal=True)
    else:
        attend = Attending(mechanisms[kind])
        call = attend
    x.requires_grad_()
    whole = torch.compile(call, backend="aot_eager", fullgraph=True)
    found, wanted = whole(x, mask=mask), call(x, mask=mask)
    torch.testing.assert_close(found, wanted)
    grads = (torch.autograd.grad(y.sum(), x)[0] for y in (found, wanted))
    torch.testing.assert_close(*grads)
    given = x.detach(), {"mask": mask}
    made = torch.export.export(attend, given[:1], given[1], strict=True)
    torch.testing.assert_close(
        made.module()(given[0], mask=mask), attend(given[0], mask=mask)
    )
