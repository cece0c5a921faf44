"""A norm's eps: set, told or seen in what it does; and what it has learnt."""

import inspect
import math
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.kinds.norms.pictures import laid_out_for
from selfattn.doctor.kinds.trial_calls import outcome
from selfattn.doctor.patient import Facts, handed

EPS = ("eps", "epsilon", "variance_epsilon", "norm_eps", "layer_norm_eps")
SHIFTS = ("bias", "beta", "shift", "b_2", "b", "offset")


def own_eps(
    module: nn.Module, width: int, told: Facts, layout: str | None = None
) -> Facts:
    """The eps of who cannot be told another, if it was told or is seen.

    Of a token without a mean that is next to silent, hardly anything else
    decides how loud it comes out.
    """
    if settings(module):
        return {}
    if told.get("eps"):
        return {"fixed eps": told["eps"]}
    quiet = copy_of(module).double()
    fill(quiet, [torch.ones(width).double(), torch.zeros(width).double()])
    call = quiet if layout is None else laid_out_for(quiet, layout)
    seen = seen_eps(call, width)
    return {"fixed eps": seen} if seen else {}


def eps_by_default(function: Any) -> str:
    """The name of an eps that may be left out; "" if there is none."""
    try:
        listed = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ""
    left = (p.name for p in listed if p.default is not p.empty)
    return next((name for name in left if name in EPS), "")


def eps_in(function: Any, listed: list[str]) -> float | None:
    """The eps in the code of a function of x and what is learnt alone.

    The gain that changes nothing is one; or zero, if one is added to it.
    """
    if not 2 <= len(listed) <= 3 or {*listed} & {*EPS}:
        return None
    zeros = torch.zeros(7).double()
    for gain in (zeros + 1, zeros):
        learnt = [gain, zeros][: len(listed) - 1]
        if seen := seen_eps(function, 7, *learnt):
            return seen
    return None


def seen_eps(norm: Any, width: int, *learnt: Tensor) -> float | None:
    """The usual eps that a norm shows to have, at a token next to silent."""
    x = torch.zeros(2, width, dtype=torch.float64)
    x[:, 0], x[:, 1:2] = 1e-7, -1e-7
    output = outcome(handed, norm, x, *learnt)
    if not isinstance(output, Tensor) or output.shape != x.shape:
        return None
    square = x.square().mean()
    eps = float(square / output.double().square().mean() - square)
    usual = [10.0**-n for n in range(3, 13)]
    near = [one for one in usual if math.isclose(one, eps, rel_tol=0.01)]
    return near[0] if near else None


def set_eps(module: nn.Module, eps: float, facts: Facts) -> bool:
    """Tell a module its eps; whether it has that eps now.

    Whose eps is not what was told of it keeps its own, which shall be seen.
    """
    found = settings(module)
    for part, name in found:
        held = getattr(part, name)
        if isinstance(held, Tensor):
            part.register_buffer(name, torch.full_like(held, eps))
        elif not is_another(held, facts.get("eps")):
            setattr(part, name, eps)
    if found:
        return True
    own: float = facts.get("fixed eps") or facts.get("eps") or 1e-5
    return own == eps


def settings(module: nn.Module) -> list[tuple[nn.Module, str]]:
    """Where a norm's eps is set: in itself, or in a norm within it."""
    parts = module.modules()
    return [(p, name) for p in parts for name in EPS if hasattr(p, name)]


def is_another(own: Any, told: float | None) -> bool:
    """Whether an eps is a number, and not the one that was told.

    PyTorch's RMSNorm has None, and adds the smallest step above 1 of its type.
    """
    own = torch.finfo(torch.float32).eps if own is None else own
    if told is None or not isinstance(own, int | float):
        return False
    return not math.isclose(own, told, rel_tol=1e-3)


def fill(module: nn.Module, wanted: list[Tensor]) -> None:
    """Put gain and shift in the place of a module's parameters.

    Other tensors than its parameters would do, too; so gradients flow.
    """
    named = dict(module.named_parameters())
    shifts = [name for name in named if name.split(".")[-1] in SHIFTS]
    if len(named) == 2 and not shifts:
        shifts = [list(named)[1]]
    gains = [name for name in named if name not in shifts]
    for names, value in zip((gains, shifts), wanted, strict=False):
        for name in names:
            owner, _, last = name.rpartition(".")
            holder = module.get_submodule(owner)
            delattr(holder, last)
            setattr(holder, last, value.reshape(named[name].shape))
