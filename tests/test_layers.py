"""Layers against PyTorch's own, in value and gradient."""

import copy
import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune
from torch.testing import assert_close

from selfattn.layers import (
    AddNorm,
    FeedForward,
    LayerNorm,
    RMSNorm,
    SwiGLU,
    gelu,
    relu,
    swish,
)
from selfattn.models import LabelHead
from selfattn.multihead import MultiHeadAttention

SHAPES = [(7,), (3, 7), (2, 3, 7)]


def with_gain(norm, theirs):
    """Both with the same gain (and shift), none of them one or zero."""
    torch.nn.init.normal_(norm.gain)
    theirs.weight.data.copy_(norm.gain)
    if hasattr(norm, "shift"):
        torch.nn.init.normal_(norm.shift)
        theirs.bias.data.copy_(norm.shift)
    return norm, theirs


def both_norms(eps, dtype, device):
    """Ours beside PyTorch's."""
    to = {"dtype": dtype, "device": device}
    yield with_gain(
        LayerNorm(7, eps=eps).to(**to), nn.LayerNorm(7, eps=eps).to(**to)
    )
    yield with_gain(
        RMSNorm(7, eps=eps).to(**to), nn.RMSNorm(7, eps=eps).to(**to)
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_norms_are_those_of_torch_in_value_and_gradient(shape, eps, device):
    for ours, theirs in both_norms(eps, torch.float64, device):
        x = torch.randn(shape, dtype=torch.float64, device=device)
        x.requires_grad_()
        assert_close(ours(x), theirs(x))
        up = torch.randn_like(x)
        mine = torch.autograd.grad(ours(x), [x, *ours.parameters()], up)
        other = torch.autograd.grad(theirs(x), [x, *theirs.parameters()], up)
        for a, b in zip(mine, other, strict=True):
            assert_close(a, b)


def test_eps_stands_under_the_root():
    """A token of deviation 1e-4: (σ + ε) would make it 29 times too large.

    With ε = 1e-5, √(1e-8 + 1e-5) is 3.2e-3, but 1e-4 + 1e-5 is 1.1e-4.
    """
    x = torch.tensor([[-1e-4, 1e-4]], dtype=torch.float64)
    norm = LayerNorm(2).double()
    assert norm(x)[0, 1].item() == pytest.approx(1e-4 / 1.001e-5**0.5)
    outside = 1e-4 / (1e-4 + 1e-5)
    assert outside / norm(x)[0, 1].item() == pytest.approx(28.8, abs=0.1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_norms_in_half_precision_err_at_most_twice_as_much_as_torch(dtype):
    """Values near 1e3, whose squares float16 cannot hold."""
    for ours, theirs in both_norms(1e-5, dtype, "cpu"):
        x = (900 + 50 * torch.randn(5, 7)).to(dtype)
        exact = theirs.double()(x.double())
        room = 2 * (theirs.to(dtype)(x).double() - exact).abs().max()
        assert ours(x).dtype == dtype
        assert (ours(x).double() - exact).abs().max() <= room


@pytest.mark.parametrize("norm", [RMSNorm, LayerNorm])
def test_squares_of_small_halves_are_kept(norm):
    """Values near 3e-4, whose squares float16 has in steps of 6e-8.

    The output is rounded by 5e-4; made of such squares, it is 2e-2 off.
    """
    ours = norm(7, eps=1e-6).half()
    x = (3e-4 * torch.randn(50, 7)).half()
    exact = norm(7, eps=1e-6).double()(x.double())
    assert_close(ours(x).double(), exact, rtol=1e-3, atol=1e-6)


def test_norms_touch_one_token_at_a_time():
    for norm in (LayerNorm(7), RMSNorm(7)):
        x = torch.randn(3, 7)
        changed = x.clone()
        changed[1] += 5 * torch.randn(7)
        same = norm(x)[[0, 2]] == norm(changed)[[0, 2]]
        assert same.all()
        assert not torch.equal(norm(x)[1], norm(changed)[1])


@pytest.mark.parametrize("norm", [LayerNorm(7), RMSNorm(7)])
def test_norms_refuse_another_width(norm):
    with pytest.raises(
        ValueError, match=r"x must have 7 features, .+ it is \(3, 5\)"
    ):
        norm(torch.randn(3, 5))


@pytest.mark.parametrize(
    ("ours", "theirs"), [(relu, F.relu), (gelu, F.gelu), (swish, F.silu)]
)
def test_activations_are_those_of_torch(ours, theirs):
    x = torch.linspace(-6, 6, 101, dtype=torch.float64, requires_grad=True)
    assert_close(ours(x), theirs(x))
    mine = torch.autograd.grad(ours(x).sum(), x)[0]
    other = torch.autograd.grad(theirs(x).sum(), x)[0]
    away = x.detach().abs() > 1e-9  # relu's slope at 0 is a convention
    assert_close(mine[away], other[away])


def test_feed_forward_is_two_maps_with_a_bend():
    ours = FeedForward(5, 11, activation=gelu)
    theirs = nn.Sequential(nn.Linear(5, 11), nn.GELU(), nn.Linear(11, 5))
    theirs[0].load_state_dict(ours.W_in.state_dict())
    theirs[2].load_state_dict(ours.W_out.state_dict())
    x = torch.randn(2, 3, 5)
    assert_close(ours(x), theirs(x))
    assert FeedForward(5, 11).activation is relu
    assert (
        sum(p.numel() for p in FeedForward(5, 11, bias=False).parameters())
        == 110
    )


def test_feed_forward_works_on_each_token_alone():
    for layer in (FeedForward(5, 11), SwiGLU(5, 11)):
        x = torch.randn(2, 3, 5)
        alone = torch.stack([layer(x[:, i]) for i in range(3)], dim=1)
        assert_close(layer(x), alone)


def test_feed_forward_drops_in_training_only():
    layer = FeedForward(5, 1000, dropout=0.5)
    x = torch.randn(3, 5)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_swiglu_gates_one_map_with_another():
    layer = SwiGLU(5, 11).double()
    x = torch.randn(2, 5, dtype=torch.float64)
    gate = x @ layer.W_gate.weight.T
    inner = gate / (1 + (-gate).exp()) * (x @ layer.W_in.weight.T)
    assert_close(layer(x), inner @ layer.W_out.weight.T)
    assert sum(p.numel() for p in layer.parameters()) == 3 * 5 * 11


@pytest.mark.parametrize("norm", [nn.LayerNorm, LayerNorm, RMSNorm])
def test_add_norm_pre_and_post(norm):
    sublayer = nn.Linear(7, 7)
    x = torch.randn(2, 3, 7)
    pre = AddNorm(7, pre=True, norm=norm)
    post = AddNorm(7, pre=False, norm=norm)
    assert_close(pre(x, sublayer), x + sublayer(pre.norm(x)))
    assert_close(post(x, sublayer), post.norm(x + sublayer(x)))


def test_two_add_norms_are_a_torch_encoder_layer():
    """The sublayers are PyTorch's; the paths around them are ours."""
    for pre in (True, False):
        theirs = nn.TransformerEncoderLayer(
            12, 3, 20, batch_first=True, norm_first=pre, dropout=0.0
        )
        paths = [AddNorm(12, pre=pre) for _ in range(2)]
        for path, norm in zip(
            paths, (theirs.norm1, theirs.norm2), strict=True
        ):
            torch.nn.init.normal_(norm.weight)
            path.norm.gain.data.copy_(norm.weight)
        x = torch.randn(2, 5, 12)
        h = paths[0](x, lambda t: theirs.self_attn(t, t, t)[0])  # noqa: B023
        ours = paths[1](
            h,
            lambda t: theirs.linear2(F.relu(theirs.linear1(t))),  # noqa: B023
        )
        assert_close(ours, theirs(x))


def test_the_pre_path_carries_a_gradient_of_one_past_a_dead_sublayer():
    x = torch.randn(3, 7, requires_grad=True)
    up = torch.randn(3, 7)
    pre = AddNorm(7, pre=True)(x, torch.zeros_like)
    assert torch.equal(torch.autograd.grad(pre, x, up)[0], up)
    post = AddNorm(7, pre=False)(x, torch.zeros_like)
    assert not torch.allclose(torch.autograd.grad(post, x, up)[0], up)


def test_add_norm_drops_what_the_sublayer_made_not_the_path():
    layer = AddNorm(1000, pre=True, dropout=0.5)
    x = torch.full((1, 1000), 3.0)
    added = layer(x, torch.ones_like) - x
    assert set(added.unique().tolist()) == {0.0, 2.0}
    layer.eval()
    assert torch.equal(layer(x, torch.ones_like), x + 1)


def test_add_norm_refuses_a_sublayer_that_changes_the_shape():
    with pytest.raises(ValueError, match=r"\(3, 7\) and it made \(3, 1\)"):
        AddNorm(7, pre=True)(torch.randn(3, 7), lambda t: t[:, :1])


# Types


@pytest.mark.parametrize("norm", [LayerNorm(7), RMSNorm(7)])
@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
@pytest.mark.usefixtures("unchecked")
def test_only_floats_are_normalised(norm, dtype):
    """Whole numbers came out truncated, and complex ones of no norm."""
    with pytest.raises(ValueError, match=r"x must be .*floating-point"):
        norm(torch.ones(3, 7).to(dtype))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gelu_has_a_tail_in_half_precision(dtype):
    """At -4 it is -0.0001, and was 0: the difference of two ones."""
    x = torch.linspace(-4, 4, 81).to(dtype)
    wanted = F.gelu(x.double())
    error = (gelu(x).double() - wanted).abs()
    assert (error <= torch.finfo(dtype).eps * wanted.abs() + 1e-7).all()
    assert gelu(torch.tensor(-10.0)) < 0


def test_what_is_on_another_device_is_named():
    """PyTorch named the two devices, and neither x nor the layer."""
    x = torch.zeros(2, 8, device="meta")
    for layer in (LayerNorm(8), RMSNorm(8), FeedForward(8, 4)):
        with pytest.raises(ValueError, match="x must be where the layer is"):
            layer(x)


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("eps", [-1.0, math.inf, -1e-9])
def test_an_eps_that_is_none_is_refused(unchecked, norm, eps):
    """The root of what is negative is NaN, and over infinity all is 0."""
    with pytest.raises(ValueError, match=r"eps must be .* but it is"):
        norm(4, eps=eps)
    assert norm(4, eps=0.0)(torch.eye(4)).isfinite().all()


@pytest.mark.parametrize(
    "norm", [nn.LayerNorm(4), LayerNorm(4), lambda d: None, lambda d: d]
)
def test_a_norm_that_makes_none_is_named(norm):
    with pytest.raises(TypeError, match=r"norm must make a module.*but it"):
        AddNorm(4, pre=True, norm=norm)


@pytest.mark.parametrize("made", [None, (1, 2), [torch.ones(2, 4)], 0.5])
def test_a_sublayer_that_returns_no_tensor_is_named(unchecked, made):
    with pytest.raises(TypeError, match="what sublayer makes must be a ten"):
        AddNorm(4, pre=True)(torch.ones(2, 4), lambda x: made)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_swish_is_rounded_once(dtype):
    x = torch.linspace(-8, 20, 4001).to(dtype)
    exact = F.silu(x.double())
    off = ((swish(x).double() - exact) / exact).nan_to_num().abs().max()
    assert off <= 0.51 * torch.finfo(dtype).eps


def test_relu_is_flat_at_its_bend():
    """As PyTorch's is; that of `clamp` is 1."""
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    [slope] = torch.autograd.grad(relu(x).sum(), x)
    assert slope.tolist() == [0.0, 0.0, 1.0]


def test_an_activation_that_binds_a_parameter_trains_it():
    slope = nn.Parameter(torch.tensor([0.25]))
    network = FeedForward(4, 8, activation=partial(F.prelu, weight=slope))
    assert any(x is slope for x in network.parameters())
    network(torch.randn(2, 4)).sum().backward()
    assert slope.grad.isfinite().all()


def in_float32_and_then_in_float64(layer):
    """Pruned, of nothing; its weight is made anew in its next call."""
    prune.identity(layer, "weight")
    return layer.double()


@pytest.mark.parametrize(
    "surgery",
    [
        in_float32_and_then_in_float64,
        lambda layer: nn.utils.parametrizations.weight_norm(layer).double(),
    ],
)
@pytest.mark.parametrize(
    ("network", "part"),
    [
        (FeedForward(8, 12), "W_in"),
        (SwiGLU(8, 12), "W_in"),
        (MultiHeadAttention(8, 2), "W_q"),
        (MultiHeadAttention(8, 2), "W_k"),
        (LabelHead(8, 3), "labels"),
    ],
)
def test_a_layer_after_surgery_is_sound(network, part, surgery):
    """What it takes was read off a weight that its own hook makes anew."""
    x = torch.randn(1, 3, 8)
    wanted, operated = network(x), copy.deepcopy(network)
    operated.double()
    surgery(getattr(operated.float(), part))
    found = operated.double()(x.double())
    assert_close(found, wanted.double(), atol=1e-5, rtol=1e-5)


def test_a_norm_of_the_spectrum_is_computed_once():
    layer, calls = MultiHeadAttention(8, 2), []
    nn.utils.parametrizations.spectral_norm(layer.W_q)
    layer.W_q.parametrizations.weight[0].register_forward_hook(
        lambda *_: calls.append(1)
    )
    layer(torch.randn(1, 3, 8))
    assert len(calls) == 1


class WholeNumbers(nn.Module):
    """A linear map as a quantised one has it: its weight is a method."""

    def __init__(self, linear):
        super().__init__()
        self.in_features, self.kept = linear.in_features, [linear]

    def weight(self):
        return self.kept[0].weight

    def forward(self, x):
        return self.kept[0](x)


def test_a_layer_whose_weight_is_a_method_is_asked_for_its_width():
    """As `quantize_dynamic` makes them; a method has no shape."""
    x = torch.randn(1, 3, 8)
    for made, part in ((FeedForward(8, 12), "W_in"), (SwiGLU(8, 12), "W_in")):
        wanted = made(x)
        setattr(made, part, WholeNumbers(getattr(made, part)))
        assert torch.equal(made(x), wanted)
        with pytest.raises(ValueError, match="must have 8 features"):
            made(x[..., :7])


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
@pytest.mark.parametrize(
    ("eps", "dtype", "size"),
    [
        (0.0, torch.float32, 1),
        (1e-5, torch.float32, 1e25),
        (1e-5, torch.float64, 1),
    ],
)
def test_what_a_subclass_does_is_done_once(kind, eps, dtype, size):
    """Where the norm was made in float64, or anew without what is spoilt, it
    called its own method by name, and that was the subclass's: twice.
    """

    class Twice(kind):
        def forward(self, x):
            return 2 * super().forward(x)

    x = (size * torch.randn(3, 7)).to(dtype).requires_grad_()
    if dtype == torch.float64:
        x.data[1] = math.nan
    twice, once = Twice(7, eps=eps).to(dtype), kind(7, eps=eps).to(dtype)
    assert_close(twice(x), 2 * once(x), equal_nan=True)


@pytest.mark.parametrize(
    "kind", [LayerNorm, RMSNorm, nn.LayerNorm, nn.RMSNorm]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("eps", [0.0, 1e-5])
@pytest.mark.parametrize("size", [math.nan, math.inf, 1.0])
def test_a_spoilt_token_is_no_norms_business(kind, dtype, eps, size):
    """Zeros stood in its place, of which a norm without eps has no number;
    and of the largest numbers PyTorch's own makes zeros, and NaN backwards.
    """
    path = AddNorm(7, pre=True, norm=partial(kind, eps=eps)).to(dtype)
    x = torch.randn(3, 7).to(dtype)
    sound = x.clone().requires_grad_()
    x[1] = size * torch.linspace(-1, 1, 7) * torch.finfo(dtype).max
    x.requires_grad_()
    up, kept = torch.randn(2, 7).to(dtype), [0, 2]
    found, wanted = (
        torch.autograd.grad(
            path(y, lambda z: z)[kept], [y, *path.parameters()], up
        )
        for y in (x, sound)
    )
    assert_close(found[0][kept], wanted[0][kept])
    assert not found[0][1].any()  # nobody asked of it: not even NaN
    assert_close(found[1:], wanted[1:])
