"""What strangers found of values so large that sums of them overflow.

An average is never larger than the largest value. But most mechanisms add up
values times weights first, and divide by the sum of weights afterwards.
"""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from selfattn.dot_product import attention, fused_attention
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linformer import LinformerAttention, MeanPooling
from selfattn.efficient.longformer import longformer_attention
from selfattn.efficient.reformer import lsh_attention
from selfattn.efficient.sparse import fixed_attention, strided_attention
from selfattn.efficient.swin import swin_attention
from selfattn.efficient.window import sliding_window_attention

N = 12
# Each by options with which all see all.
ALL = {
    "attention": attention,
    "fused": fused_attention,
    "flash": flash_attention,
    "tiles": partial(flash_attention, block_q=4, block_k=5),
    "window": partial(sliding_window_attention, window=N),
    "strided": partial(strided_attention, stride=3),
    "fixed": partial(fixed_attention, stride=N),
    "longformer": partial(longformer_attention, window=N),
    "swin": partial(swin_attention, grid=(3, 4), window=(3, 4)),
    "lsh": partial(lsh_attention, n_buckets=1),
    "linformer": LinformerAttention(nn.Identity()),
}
WHOLE = sorted({*ALL} - {"strided", "linformer"})
DTYPES = [torch.float32, torch.float64, torch.bfloat16]


def given(dtype: torch.dtype) -> list[Tensor]:
    """Short queries and keys, and values next to the largest number."""
    torch.manual_seed(0)
    q, k, v = torch.rand(3, 2, N, 4).to(dtype)
    most = torch.finfo(dtype).max
    return [q, k, (0.5 + v / 4) * most]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("causal", [False, True])
def test_an_average_of_large_values_is_a_number(name, dtype, causal):
    """It was infinite, and nothing was passed back."""
    q, k, v = (x.requires_grad_() for x in given(dtype))
    small = [x.detach().double().requires_grad_() for x in (q, k, v)]
    by = 2.0 ** (1023 if dtype == torch.float64 else 127)
    small[2] = (v.detach() / by).double().requires_grad_()
    output = ALL[name](q, k, v, causal=causal)
    wanted = attention(*small, causal=causal)
    room = {"atol": 1e-2, "rtol": 1e-2}
    assert_close((output.detach() / by).double(), wanted.detach(), **room)
    grad = torch.rand_like(q)
    found = torch.autograd.grad(output, (q, k, v), grad / by)
    expected = torch.autograd.grad(wanted, small, grad.double())
    for x, y, size in zip(found, expected, (1, 1, by), strict=True):
        assert y.any()
        assert_close((x * size).double(), y, **room)


@pytest.mark.parametrize("name", sorted({*ALL} - {"strided"}))
def test_nobody_needs_a_gradient_for_it(name):
    """Where all see all, and nothing is passed back, nobody looked."""
    q, k, v = given(torch.float32)
    assert ALL[name](q, k, v).isfinite().all()


@pytest.mark.parametrize("name", WHOLE[1:])
def test_what_is_hidden_besides_is_not_felt(name):
    """NaN behind the last query, and an infinite value that one sees."""
    q, k, v = given(torch.float32)
    wanted = ALL[name](q, k, v, causal=True)
    k[:, -1] = torch.nan
    v[0, -1], v[1, -2, 0] = torch.nan, torch.inf
    found = ALL[name](q, k, v, causal=True)
    assert_close(found[:, :-2], wanted[:, :-2])
    assert found[1, -2, 0] == torch.inf
    assert found[0, -1].isnan().all()


def test_the_mean_of_large_tokens_is_a_number():
    """Tokens were added up, and then divided by their number."""
    x = torch.full((1, 7, 3), 3e38, requires_grad=True)
    for m in (1, 2, 7):
        means = MeanPooling(m)(x)
        assert_close(means, torch.full((1, m, 3), 3e38))
        [grad] = torch.autograd.grad(means.sum(), x)
        assert_close(grad.sum(), torch.tensor(3.0 * m))
