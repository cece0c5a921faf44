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


def test_a_weight_that_is_watched_is_copied():
    layer = MultiHeadAttention(8, 2)
    layer.W_q.register_forward_hook(lambda module, given, made: None)
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
