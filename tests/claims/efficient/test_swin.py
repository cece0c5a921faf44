"""Claims of the sources on Swin: what is so."""

import pytest
import torch

from selfattn import swin_attention

settles = pytest.mark.settles


def heard(shift, layers):
    """How many of 64 tokens the first output of a stack depends on."""
    x = torch.randn(64, 4, dtype=torch.float64, requires_grad=True)
    y, where = x, {"grid": (8, 8), "window": (4, 4)}
    for layer in range(layers):
        a = shift if layer % 2 else 0
        y = swin_attention(y, y, y, shift=(a, a), **where)
    [slope] = torch.autograd.grad(y[27].sum(), x)
    return int((slope != 0).any(dim=-1).sum())


@settles("002-102", "holds-with-caveat")
def test_windows_alone_are_not_swin():
    assert heard(0, 1) == heard(0, 6) == 16
    assert heard(2, 2) == 64
