"""Layers whose weights are made anew at each call are layers none the less.

Around sound projections, weight norm was asked why it computes in float32,
spectral norm was called cut off from its inputs, and the older functions of
the same names were wrong on all probes, or could not be copied.
"""

import functools
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, prune

from selfattn.doctor import examine
from selfattn.doctor.plain_weights import with_plain_weights

here = functools.partial(
    examine, kind="self-attention", time_limit=None, n_heads=3, causal=False
)


def older_weight_norm(part):
    """That function of PyTorch's which its parametrisation replaces."""
    with pytest.warns(FutureWarning, match="is deprecated in favor of"):
        return nn.utils.weight_norm(part)


def pruned(part):
    """The smaller third of its weights are zeros, and then some more are."""
    prune.l1_unstructured(part, "weight", 0.3)
    if part.bias is not None:
        prune.random_unstructured(part, "bias", 0.5)
    return prune.random_structured(part, "weight", 0.2, dim=0)


def pruned_once(part):
    """A few of its weights are zeros, and it was changed since."""
    prune.l1_unstructured(part, "weight", 0.3)
    with torch.no_grad():
        part.weight_orig.neg_()
    return part


WAYS = [
    parametrizations.weight_norm,
    parametrizations.spectral_norm,
    parametrizations.orthogonal,
    older_weight_norm,
    nn.utils.spectral_norm,
    pruned,
    pruned_once,
]


class Layer(nn.Module):
    """Three heads, whose projections are wrapped; the merge may be wrong."""

    def __init__(self, wrap, merged=(1, 2)):
        super().__init__()
        self.merged = merged
        self.q, self.k, self.v, self.o = (
            wrap(nn.Linear(12, 12, bias=name == "o")) for name in "qkvo"
        )

    def forward(self, x):
        q, k, v = (
            to(x).unflatten(-1, (3, -1)).transpose(1, 2)
            for to in (self.q, self.k, self.v)
        )
        heads = F.scaled_dot_product_attention(q, k, v)
        heads = heads.transpose(*self.merged)
        return self.o(heads.reshape(x.shape))


@pytest.mark.parametrize("wrap", WAYS, ids=range(len(WAYS)))
def test_a_layer_is_judged_by_what_its_weights_come_out_as(wrap):
    torch.manual_seed(0)
    layer = Layer(wrap)
    before = {name: x.clone() for name, x in layer.state_dict().items()}
    report = here(layer)
    assert report.passed, report
    after = layer.state_dict()
    assert before.keys() == after.keys()
    assert all(x.equal(after[name]) for name, x in before.items())
    assert not here(Layer(wrap, merged=(1, 1))).passed


@pytest.mark.parametrize("wrap", WAYS, ids=range(len(WAYS)))
def test_the_copy_computes_the_same(wrap):
    torch.manual_seed(0)
    layer, x = Layer(wrap).eval(), torch.randn(2, 5, 12)
    plain = with_plain_weights(layer)
    assert plain is not layer and with_plain_weights(plain) is plain
    torch.testing.assert_close(plain(x), layer(x))
    assert sorted(dict(plain.named_parameters())) == [
        *("k.weight", "o.bias", "o.weight", "q.weight", "v.weight")
    ]


@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16])
def test_maps_in_eight_bits_are_maps(dtype):
    """Computed in half precision, it was said, and another time detached."""
    torch.manual_seed(0)
    reports = []
    for merged in ((1, 2), (1, 1)):
        layer = Layer(lambda part: part, merged).eval()
        with warnings.catch_warnings(action="ignore"):  # it shall move
            packed = torch.ao.quantization.quantize_dynamic(
                layer, {nn.Linear}, dtype
            )
        reports.append(here(packed))
        plain = with_plain_weights(packed)
        assert plain.q.bias is None
        assert plain.o.weight.dtype == torch.float32
        torch.testing.assert_close(
            plain.o.weight, layer.o.weight, atol=1e-2, rtol=0
        )
        torch.testing.assert_close(plain.o.bias, layer.o.bias)
        assert type(packed.o) is not nn.Linear
    assert reports[0].passed, reports[0]
    assert reports[1].exit_code == 1, reports[1]


def test_what_is_plain_is_not_copied():
    layer = Layer(lambda part: part)
    assert with_plain_weights(layer) is layer
    assert with_plain_weights(len) is len
