"""What strangers found of copies: a layer made of another one, of PyTorch's.

It computes the same, or there is none.
"""

import pytest
import torch
from torch import nn
from torch.ao.nn.quantizable import MultiheadAttention as Quantizable
from torch.nn.utils import parametrizations, prune, spectral_norm
from torch.testing import assert_close

from selfattn.multihead import MultiHeadAttention

X = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("names", ["W_o", "W_q", "W_k", "W_v", "W_k W_o"])
@pytest.mark.parametrize("projection_bias", [False, True])
def test_a_bias_that_one_projection_has_is_copied(names, projection_bias):
    """W_q was asked for all four: what it had not, was dropped in silence."""
    layer = MultiHeadAttention(8, 2, projection_bias=projection_bias)
    for name in names.split():
        own = nn.Linear(8, 8, bias=not projection_bias)
        setattr(layer, name, own)
    copied = layer.to_torch()
    assert_close(copied(X, X, X)[0], layer(X))
    assert_close(MultiHeadAttention.from_torch(copied)(X), layer(X))


@pytest.mark.parametrize("inward", [False, True])
def test_a_bias_that_pytorchs_layer_has_is_copied(inward):
    """Of the bias on the way in alone, or of that on the way out."""
    theirs = nn.MultiheadAttention(8, 2, bias=inward, batch_first=True)
    if inward:
        nn.init.normal_(theirs.in_proj_bias)
        theirs.out_proj.bias = None
    else:
        theirs.out_proj.bias = nn.Parameter(torch.randn(8))
    ours = MultiHeadAttention.from_torch(theirs)
    assert_close(ours(X), theirs(X, X, X)[0])


class Adapted(nn.Linear):
    """Beside its weight it has another one, as fine-tuning adds."""

    def forward(self, x):
        return super().forward(x) + x


def adapted(layer):
    layer.W_q = Adapted(8, 8)


def pruned(layer):
    """The weight that counts is made anew in the call."""
    prune.random_unstructured(layer.W_k, "weight", 0.5)


def pruned_bias(layer):
    """So it is with a bias, which was copied as it was before."""
    prune.random_unstructured(layer.W_k, "bias", 0.5)


def nowhere(layer):
    """What has no numbers, PyTorch had no words of its own for."""
    layer.W_k.to("meta")


def normed(layer):
    """So it is with this, the old one of two in PyTorch."""
    spectral_norm(layer.W_v)


def widened(layer):
    layer.W_o.double()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (adapted, "W_q"),
        (pruned, "W_k"),
        (normed, "W_v"),
        (widened, "W_o"),
        (pruned_bias, "W_k"),
        (nowhere, "W_k"),
    ],
)
def test_a_projection_that_is_more_than_its_weight_is_not_copied(change, name):
    layer = MultiHeadAttention(8, 2, projection_bias=True)
    change(layer)
    with pytest.raises(ValueError, match=rf"{name} (is|are|must have)"):
        layer.to_torch()


def test_a_weight_that_is_computed_is_copied_as_it_is():
    layer = MultiHeadAttention(8, 2)
    parametrizations.weight_norm(layer.W_q)
    layer.W_o = nn.MultiheadAttention(8, 2).out_proj  # a class of PyTorch's
    nn.init.normal_(layer.W_o.bias)
    assert_close(layer.to_torch()(X, X, X)[0], layer(X))


def quantizable():
    """It computes by other weights than those that it inherits."""
    return Quantizable(8, 2, batch_first=True)


def pruned_of_pytorch():
    """What was pruned is of before the last step."""
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    prune.random_unstructured(layer, "in_proj_weight", 0.5)
    with torch.no_grad():
        layer.in_proj_weight_orig.mul_(2)
    return layer


def pruned_behind():
    """In the last of its projections, which is a layer by itself."""
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    prune.random_unstructured(layer.out_proj, "weight", 0.5)
    with torch.no_grad():
        layer.out_proj.weight_orig.mul_(2)
    return layer


def half_widened():
    """Its numbers of float64 were rounded, and nothing said."""
    layer = nn.MultiheadAttention(8, 2, batch_first=True).double()
    layer.out_proj.float()
    return layer


@pytest.mark.parametrize(
    "make", [quantizable, pruned_of_pytorch, pruned_behind, half_widened]
)
def test_what_pytorchs_layer_does_not_compute_by_is_not_copied(make):
    """All of these became a layer with other numbers, without a word."""
    with pytest.raises(ValueError, match="layer"):
        MultiHeadAttention.from_torch(make())


@pytest.mark.parametrize("width", [8, 6])
def test_a_normed_weight_of_pytorchs_layer_is_copied(width):
    theirs = nn.MultiheadAttention(
        8, 2, kdim=width, vdim=width, batch_first=True
    )
    name = "in_proj_weight" if width == 8 else "q_proj_weight"
    parametrizations.weight_norm(theirs, name)
    context = torch.randn(2, 4, width)
    ours = MultiHeadAttention.from_torch(theirs)
    assert_close(ours(X, context), theirs(X, context, context)[0])


# What is trained, and who is made otherwise


def trained(layer):
    return {name for name, x in layer.named_parameters() if x.requires_grad}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_what_is_frozen_stays_frozen(bias, grad):
    """All was trained again, though training mode itself was copied."""
    theirs = nn.MultiheadAttention(8, 2, bias=bias, batch_first=True)
    ours = MultiHeadAttention(8, 2, projection_bias=bias)
    names = ["W_q.", "W_k.", "W_v.", "W_o."]
    with torch.set_grad_enabled(grad):
        assert trained(MultiHeadAttention.from_torch(theirs)) == trained(ours)
        assert trained(ours.to_torch()) == trained(theirs)
        theirs.in_proj_weight.requires_grad_(False)
        kept = trained(MultiHeadAttention.from_torch(theirs))
        assert kept == trained(ours) - {f"{n}weight" for n in names[:3]}
        for layer in (ours.W_q, ours.W_v, ours.W_o):  # but not W_k
            layer.requires_grad_(False)
        kept = trained(ours.to_torch())
        outward = {"out_proj.weight", "out_proj.bias"}
        assert (
            kept == trained(nn.MultiheadAttention(8, 2, bias=bias)) - outward
        )
        for layer in (theirs, ours):
            layer.requires_grad_(False)
        assert not trained(MultiHeadAttention.from_torch(theirs))
        assert not trained(ours.to_torch())


def test_what_is_made_anew_in_each_call_is_trained_in_a_copy():
    layer = MultiHeadAttention(8, 2)
    parametrizations.weight_norm(layer.W_o)
    with torch.no_grad():
        assert "out_proj.weight" in trained(layer.to_torch())
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    parametrizations.weight_norm(theirs, "in_proj_weight")
    with torch.no_grad():
        assert "W_q.weight" in trained(MultiHeadAttention.from_torch(theirs))


def test_a_bias_that_there_was_not_is_not_trained():
    """Beside one that there was, it is zeros in the layer that is copied."""
    layer = MultiHeadAttention(8, 2)
    layer.W_o = nn.Linear(8, 8)
    theirs = layer.to_torch()
    assert not theirs.in_proj_bias.any()
    assert trained(theirs) == {
        "in_proj_weight",
        "out_proj.weight",
        "out_proj.bias",
    }
    assert trained(MultiHeadAttention.from_torch(theirs)) == {
        *("W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight"),
        "W_o.bias",
    }


class Renamed(MultiHeadAttention):
    """Made with other words."""

    def __init__(self, width, heads):
        super().__init__(width, heads)


class Longing(MultiHeadAttention):
    """Made with one more."""

    def __init__(self, d_model, n_heads, depth, **options):
        super().__init__(d_model, n_heads, **options)


class Named(MultiHeadAttention):
    """Made with a name of its own, if anybody cares."""

    def __init__(self, *sizes, name="", **options):
        super().__init__(*sizes, **options)


@pytest.mark.parametrize("kind", [Renamed, Longing])
def test_a_subclass_that_is_made_otherwise_says_what_it_should_take(kind):
    """It was told of a "keyword argument" that its caller had not written."""
    told = rf"{kind.__name__} must be made with d_model, n_heads, .*takes \("
    with pytest.raises(TypeError, match=told):
        kind.from_torch(nn.MultiheadAttention(8, 2))


def test_a_subclass_that_takes_them_is_made():
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    ours = Named.from_torch(theirs)
    assert type(ours) is Named
    assert_close(ours(X), theirs(X, X, X)[0])
