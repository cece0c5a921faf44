"""What holds of every mechanism, and is asked of each in the same words."""

import pytest
import torch
from same import assert_same


def assert_heads_broadcast(near, oracle):
    """The leading axes of q, k and v broadcast, and gradients sum back."""
    q = torch.randn(2, 1, 70, 5).double().requires_grad_()
    k = torch.randn(3, 83, 5).double().requires_grad_()
    v = torch.randn(1, 1, 83, 7).double().requires_grad_()
    assert_same(near(q, k, v), oracle(q, k, v), (q, k, v))


def assert_nothing_of_nothing(near):
    """No queries, no rows; no keys, and every row is zero."""
    q, k, v = (
        torch.randn(2, n, d).double() for n, d in ((7, 5), (11, 5), (11, 3))
    )
    assert near(q[:, :0], k, v).shape == (2, 0, 3)
    nothing = near(q, k[:, :0], v[:, :0])
    assert torch.equal(nothing, torch.zeros(2, 7, 3).double())


def assert_differentiated_once(near):
    """The second derivative is refused: it would be wrong in silence."""
    q, k, v = torch.randn(3, 2, 7, 5).double().requires_grad_().unbind()
    with pytest.raises(RuntimeError, match="can be differentiated once"):
        torch.autograd.grad(near(q, k, v).sum(), q, create_graph=True)
