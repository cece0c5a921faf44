"""Whether PyTorch is seen to ask for more than a result and its gradient."""

import torch

from selfattn.transforms import is_beyond_fused_kernels, is_transformed


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
