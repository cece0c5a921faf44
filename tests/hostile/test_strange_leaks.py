"""What strangers found of what gets out: a type, a NaN, and what is written
in place.

As in `test_strangers`, each is a single story.
"""

import math
from functools import partial

import pytest
import torch
from torch import nn

from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.flash import (
    flash_attention,
    flash_attention_with_logsumexp,
)
from selfattn.efficient.linear import Memory, linear_attention_step
from selfattn.efficient.linformer import (
    LearnedProjection,
    LinformerAttention,
    MeanPooling,
)
from selfattn.efficient.reformer import lsh_attention, lsh_buckets, lsh_mask
from selfattn.efficient.swin import swin_attention, swin_mask
from selfattn.efficient.window import sliding_window_attention
from selfattn.layers import FeedForward, SwiGLU
from selfattn.models.embedding import Embedding
from selfattn.models.heads import WordHead
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import (
    AdditiveAttention,
    Convolution,
    MultiplicativeAttention,
)


@pytest.fixture(autouse=True)
def by_strangers(unchecked):
    """Without jaxtyping, which checks every call in the tests, and first."""


HALVES = [torch.bfloat16, torch.float16]
ALL_SEEN = {
    "attention": attention,
    "fused": fused_attention,
    "flash": flash_attention,
    "swin": partial(swin_attention, grid=(2, 3), window=(2, 3)),
    "window": partial(sliding_window_attention, window=6),
    "lsh": partial(lsh_attention, n_buckets=1),
    "linformer": LinformerAttention(nn.Identity()),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("hidden", [True, False])
def test_an_infinite_key_does_not_change_the_type(dtype, hidden):
    """Where gradients were asked for, outputs in float16 became float32: the
    key is looked at in float32 there, and what comes with sums kept that.
    """
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 4, 2).to(dtype)
    k[1] = math.inf
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    seen = torch.tensor([True, not hidden, True, True])
    output, sums = flash_attention_with_logsumexp(q, k, v, mask=seen)
    assert output.dtype == flash_attention(q, k, v, mask=seen).dtype == dtype
    assert sums.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALVES])
@pytest.mark.parametrize("name", ALL_SEEN)
def test_an_infinite_query_that_weighs_nothing_passes_nothing_back(
    name, dtype
):
    """All of its scores are minus infinity, so it gets zeros: its output is a
    number. What it passed back to all keys was 0 · ∞.
    """
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 6, 2).to(dtype)
    k = k.abs()
    q[1] = -math.inf
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    output = ALL_SEEN[name](q, k, v)
    assert not output[1].any()
    grads = torch.autograd.grad(output.sum(), (q, k, v))
    rest = [x.detach().requires_grad_() for x in (q[[0, 2, 3, 4, 5]], k, v)]
    wanted = torch.autograd.grad(attention(*rest).sum(), rest)
    near = {"atol": 1e-5} if dtype.itemsize > 2 else {"atol": 0.05}
    for found, right in zip(grads[1:], wanted[1:], strict=True):
        torch.testing.assert_close(found, right, rtol=0.02, **near)


@pytest.mark.parametrize("learns", [True, False])
@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("d", "kernel", "n"), [(1, 1, 40), (3, 2, 40), (4, 3, 17), (8, 5, 40)]
)
def test_a_convolution_in_half_precision_hears_no_farther(
    d, kernel, n, causal, poison, learns
):
    """In bfloat16, PyTorch's spoilt the token before all that it reached:
    a causal one heard the future.
    """
    torch.manual_seed(0)
    layer = Convolution(d, kernel=kernel, n_layers=1, causal=causal)
    layer = layer.bfloat16().requires_grad_(learns)
    before = kernel - 1 if causal else kernel // 2
    after = kernel - 1 - before
    for at in range(n):
        x = torch.randn(2, n, d).bfloat16()
        sound = layer(x)
        x[0, at] = poison
        made = layer(x)
        felt = torch.zeros(2, n, dtype=torch.bool)
        felt[0, max(0, at - after) : at + before + 1] = True
        assert torch.equal(made[~felt], sound[~felt])
        assert not made[0, at].isfinite().any()


X = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))


class Bent(nn.Linear):
    """A map that bends its input first, and writes over it."""

    def forward(self, x):
        """The map of what is bent."""
        return super().forward(x.relu_())


def masked_words():
    return WordHead(Embedding(9, 4))


@pytest.mark.parametrize(
    ("make", "parts", "n_given"),
    [
        (lambda: MultiHeadAttention(4, 2), ["W_q", "W_k", "W_v"], 1),
        (lambda: FeedForward(4, 4), ["W_in"], 1),
        (lambda: SwiGLU(4, 4), ["W_gate", "W_in"], 1),
        (lambda: AdditiveAttention(4, 4, 4), ["W_q", "W_k"], 3),
        (lambda: MultiplicativeAttention(4, 4), ["W"], 3),
        (masked_words, ["dense"], 1),
    ],
    ids=[
        "multihead",
        "feed-forward",
        "swiglu",
        "additive",
        "general",
        "words",
    ],
)
def test_a_map_that_works_in_place_leaves_the_callers_tokens(
    make, parts, n_given
):
    """They were bent behind the caller's back; and of three maps that read
    the same tokens, the second read what the first had left of them.
    """
    layer = make()
    for part in parts:
        old = getattr(layer, part)
        setattr(layer, part, Bent(old.in_features, old.out_features))
    x = X.clone()
    made = layer(*[x] * n_given)
    assert torch.equal(x, X)
    for part in parts:  # the same maps, which write over nothing
        bent = getattr(layer, part)
        plain = nn.Sequential(nn.ReLU(), nn.Linear(4, bent.out_features))
        plain[1].weight, plain[1].bias = bent.weight, bent.bias
        plain.in_features, plain.out_features = 4, bent.out_features
        setattr(layer, part, plain)
    assert torch.equal(layer(*[x] * n_given), made)


@pytest.mark.parametrize("apart", [True, False])
def test_a_projection_that_works_in_place_leaves_keys_and_values(apart):
    """Both were the caller's; and where they are one, values were bent twice.
    A feature map may do so long since.
    """
    bend = nn.ReLU(inplace=True)
    attend = LinformerAttention(bend, torch.relu_ if apart else None)
    x = X.clone()
    made = attend(x, x, x)
    assert torch.equal(x, X)
    assert torch.equal(made, LinformerAttention(nn.ReLU())(x, x, x))
    attend(x, x.clone().requires_grad_(), x)  # a leaf, once an error


@pytest.mark.parametrize("ours", [LearnedProjection(5, 2), MeanPooling(2)])
def test_what_is_known_to_leave_them_gets_no_copy(ours, monkeypatch):
    def refuse(x):
        raise AssertionError("copied")

    monkeypatch.setattr(torch.Tensor, "clone", refuse)
    LinformerAttention(ours)(X, X, X)


@pytest.mark.parametrize("n_buckets", [2**24 + 2, 2**62])
def test_no_more_buckets_than_can_be_told_apart(n_buckets):
    """Float32 counts to 2²⁴: above it two buckets had one number, and a
    storage size overflowed in the words of PyTorch.
    """
    x = torch.ones(2, 1)
    for call in (lsh_mask, lambda *x, **how: lsh_attention(*x, x[0], **how)):
        with pytest.raises(ValueError, match=rf"16777216, but .*{n_buckets}"):
            call(x, x, n_buckets=n_buckets)


def test_as_many_buckets_as_float32_counts_are_told_apart():
    x = torch.tensor([[1.0], [-1.0]])
    a, opposite = lsh_buckets(x, n_buckets=2**24, n_rounds=1)[0]
    assert (opposite - a) % 2**24 == 2**23


@pytest.mark.parametrize("large", [2**63, -(2**70)])
def test_a_pair_with_a_number_too_large_is_told_so(large):
    """It must be a tuple of whole numbers, they said of whole numbers."""
    for where in ("grid", "window", "shift"):
        how = {"grid": (2, 3), "window": (2, 3), "shift": (0, 0)}
        how[where] = (1, large)
        with pytest.raises(ValueError, match=f"{where} must .*64 bits"):
            swin_mask(**how)


def test_a_memory_elsewhere_is_called_by_its_name():
    """It said that pairs must be on cpu, which is no argument's name."""
    q = torch.ones(4)
    _, memory = linear_attention_step(q, q, q)
    away = Memory(*(x.to("meta") for x in memory))
    with pytest.raises(ValueError, match=r"^memory\.pairs must be where q is"):
        linear_attention_step(q, q, q, away)
