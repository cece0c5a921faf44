"""What strangers found at the ends of a number type, and where it is lost."""

from functools import partial

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close

from hostile.test_strangers import D
from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.longformer import longformer_attention
from selfattn.efficient.performer import performer_attention
from selfattn.efficient.swin import swin_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.masks import causal_mask
from selfattn.positions import TransformerXLAttention
from selfattn.probing import Probe


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_probe_reads_the_largest_numbers_of_a_type(dtype):
    """In half precision the distance from the mean was infinite, and every
    class was read as the first.
    """
    size = torch.finfo(dtype).max
    labels = torch.tensor([0, 1] * 6 + [1])
    x = torch.where(labels == 0, -size, size)[:, None].to(dtype)
    assert Probe(x, labels).right(x, labels) == 1.0
    assert torch.equal(Probe(x, labels).read(x), labels)


def test_a_probe_of_bfloat16_has_the_mean_of_its_numbers():
    """Rounded, it was as far off as the classes are apart."""
    labels = torch.arange(30) % 2
    x = (256.0 + 2 * labels[:, None]).bfloat16()
    probe = Probe(x, labels)
    assert probe.mean.item() == 257.0
    assert probe.right(x, labels) == 1.0


@pytest.mark.parametrize("causal", [False, True])
def test_long_queries_are_no_nan_to_performer(causal):
    """A sum of products with random directions was infinite."""
    q, k, v = torch.randn(3, 2, 7, D)
    q = q.sign() * 3e38
    k.requires_grad_()
    attend = partial(performer_attention, causal=causal, n_features=16)
    found = attend(q, k, v)
    wanted = attend(q.double(), k.double(), v.double())
    assert_close(found, wanted.float())
    (grad,) = torch.autograd.grad(found.sum(), k)
    assert grad.isfinite().all()


def by_pairs(layer, q, k):
    """Scores of Transformer-XL, pair by pair."""
    n, d = q.shape[-2:]
    scores = torch.empty(n, n, dtype=q.dtype)
    rate = 10_000.0 ** (-torch.arange(0, d, 2, dtype=q.dtype) / d)
    for i in range(n):
        for j in range(n):
            angle = (i - j) * rate
            r = torch.stack((angle.sin(), angle.cos()), -1).flatten()[:d]
            by_content = (q[i] + layer.u[0, 0]) @ k[j]
            by_distance = (q[i] + layer.w[0, 0]) @ (layer.W_r[0] @ r)
            scores[i, j] = (by_content + by_distance) / d**0.5
    return scores


@pytest.mark.parametrize("d", [3, 4])
def test_distances_have_the_digits_of_float64(d):
    """The table of sines was of float32 in a model of float64."""
    layer = TransformerXLAttention(1, d).double()
    torch.nn.init.normal_(layer.w)
    q, k = torch.randn(2, 1, 9, d).double()
    scores = by_pairs(layer, q[0], k[0])
    for causal in (False, True):
        seen = causal_mask(9, 9) if causal else torch.ones(9, 9).bool()
        wanted = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        found = layer.weights(q, k, causal=causal)[0]
        assert_close(found, wanted, atol=1e-13, rtol=0.0)


TRACED = {
    "attention": lambda q, k, v: attention(q, k, v),
    "fused": lambda q, k, v: fused_attention(q, k, v),
    "causal": lambda q, k, v: fused_attention(q, k, v, causal=True),
    "window": lambda q, k, v: sliding_window_attention(q, k, v, window=2),
    "swin": lambda q, k, v: swin_attention(
        q, k, v, grid=(1, 7), window=(1, 3)
    ),
}


@pytest.mark.parametrize("name", TRACED)
def test_a_trace_of_numbers_is_taken(name):
    """`make_fx` has numbers, but shows them to nobody, and raised an error."""
    q, k, v = torch.randn(3, 2, 7, D)
    traced = make_fx(TRACED[name])(q, k, v)
    others = torch.randn(3, 2, 7, D)
    assert_close(traced(*others), TRACED[name](*others))


@pytest.mark.parametrize("n", [5, 13])
@pytest.mark.parametrize("size", [1e4, 1e6, 1e8])
def test_alike_keys_of_a_window_get_alike_gradients(size, n):
    """Of scaled queries each score was rounded by itself: they were off by
    half a per cent at 1e4, and said nothing at 1e6.
    """
    q, k = torch.ones(n, 33), torch.full((n, 33), size)
    v, grad = torch.randn(n, D, requires_grad=True), torch.randn(n, D)
    for attend in (sliding_window_attention, longformer_attention):
        output = attend(q, k, v, window=n)
        (found,) = torch.autograd.grad(output, v, grad)
        assert_close(found, grad.mean(0).expand(n, D))
