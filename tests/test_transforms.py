"""Whether PyTorch is seen to ask for more than a result and its gradient."""

import torch
from torch.autograd import forward_ad

from selfattn.transforms import (
    has_tangent,
    is_beyond_fused_kernels,
    is_transformed,
)


def seen(transform):
    """What is said within a transform of a function of one number."""
    told = []

    def asked(x):
        told.append((is_transformed(), is_beyond_fused_kernels()))
        return x.sin()

    transform(asked)(torch.tensor(1.0))
    return told[-1]


def test_what_torch_func_asks_for():
    """A kernel has a gradient; but no second one."""
    func = torch.func
    assert seen(lambda f: f) == (False, False)
    assert seen(func.grad) == (True, False)
    assert seen(lambda f: func.grad(func.grad(f))) == (True, True)
    ten = torch.ones(10)
    assert seen(lambda f: lambda x: func.vmap(f)(ten)) == (True, False)


def test_where_one_number_is_carried_along_others_need_not_be():
    x = torch.ones(2)
    with forward_ad.dual_level():
        assert is_beyond_fused_kernels() and not is_transformed()
        assert not has_tangent(x)
    assert not is_beyond_fused_kernels()
