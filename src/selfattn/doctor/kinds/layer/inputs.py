"""Which argument is x, and which the context, where no name tells."""

import inspect
from collections.abc import Iterator
from itertools import product

from torch import Tensor, nn

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.layer.calling import NAMES
from selfattn.doctor.kinds.layer.constructing import is_rest
from selfattn.doctor.kinds.layer.parts import affines
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

BATCH, N_Q, N_K = 2, 5, 3  # no two alike: the output is as long as x


def inputs_of(module: nn.Module, told: Facts) -> dict[str, str]:
    """The names of x and of the context, if the output tells which is which.

    Empty, if the second of two arguments has a name for a context: so it is
    usual; or if no call of it comes out as long as one of its inputs.
    """
    names = dict(told.get("names") or {})
    needed = [
        name
        for name, one in inspect.signature(module.forward).parameters.items()
        if one.default is one.empty
        and not is_rest(one)
        and name not in (told.get("call") or {})
        and name not in names.values()
    ]
    if len(needed) != 2 or {"x", "context", "qkv"} & names.keys():
        return {}
    first, second = needed
    if second in NAMES["context"] and first not in NAMES["context"]:
        return {}
    layout = told.get("layout")
    given = dict(told.get("call") or {})
    called = trial_calls.alone(module)
    for x, context in pairs(called, layout):
        for pair in ((first, second), (second, first)):
            named = dict(zip(pair, (x, context), strict=True))
            output = trial_calls.outcome(called, **named, **given)
            if comes_from(output, x):
                return dict(zip(("x", "context"), pair, strict=True))
    return {}


def pairs(
    module: nn.Module, layout: str | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of an x and a context, of the widths that its maps take."""
    widths = dict.fromkeys(one.W.shape[0] for _, one in affines(module))
    both = list(product(list(widths)[:4], repeat=2))
    for turned in (False, True):
        if layout == ("BND" if turned else "NBD"):
            continue
        for d_x, d_context in both:
            x = numbers(BATCH, N_Q, d_x, seed=1)
            context = numbers(BATCH, N_K, d_context, seed=2)
            if turned:
                x, context = x.transpose(0, 1), context.transpose(0, 1)
            yield x, context


def comes_from(output: object, x: Tensor) -> bool:
    """Whether an output has x's axes, but for the width."""
    if isinstance(output, tuple) and output:
        output = output[0]
    return isinstance(output, Tensor) and output.shape[:-1] == x.shape[:-1]
