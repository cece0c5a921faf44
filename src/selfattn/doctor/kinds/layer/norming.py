"""Which modules are norms: by the name of their class, or by what they do."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from selfattn.doctor.probes import numbers

LOUDER = 8.0  # as many times as large, which no norm lets through


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a norm, and holds no other.

    So says the name of its class; or that it has a gain and perhaps a shift,
    and gives the same of an input that is many times as large.
    """
    if [*module.children()]:
        return False
    if "norm" in type(module).__name__.lower():
        return True
    own = [x.shape for x in module.parameters()]
    if not 1 <= len(own) <= 2 or len(own[0]) != 1 or len({*own}) > 1:
        return False
    return is_deaf_to_size(module, own[0][0])


def is_deaf_to_size(call: Callable[[Tensor], Tensor], d: int) -> bool:
    """Whether something hears which way tokens point, and not how far."""
    x, other = numbers(1, 3, d, seed=1), numbers(1, 3, d, seed=2)
    try:
        with torch.no_grad():
            one, loud, another = (call(y) for y in (x, LOUDER * x, other))
    except Exception:
        return False  # it is called otherwise, so it is another thing
    if not (isinstance(one, Tensor) and one.shape == x.shape):
        return False
    same = torch.allclose(one, loud, rtol=1e-2, atol=1e-3)
    return same and not torch.allclose(one, another, rtol=1e-2, atol=1e-3)
