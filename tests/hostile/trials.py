"""How a trial is put together: a call, what it must equal, its gradients."""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from hostile.definitions import definition_of
from hostile.feeding import Call, Sizes
from hostile.recipes import MEASURES
from hostile.verdicts import Anything, Trial, leaves

Make = Callable[[Sizes], Call]


class Case(NamedTuple):
    """A callable with plain arguments, and how to make others for it."""

    call: Call  # plainly laid out, in float64
    make: Make  # of other sizes
    sizes: Sizes
    rng: Random

    def trial(
        self,
        kind: str,
        detail: str,
        call: Call,
        expected: Callable[[], Any] | None,
        *,
        run: Callable[[], Any] | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> Trial:
        """A trial of this call, whose arguments must stay as they are."""
        if expected is not None and call.target.name in MEASURES:
            expected = nothing_to_compare
        return Trial(
            kind,
            f"{call.target.name}: {detail}",
            call.run if run is None else run,
            expected,
            tuple(call.tensors().values()),
            dtype,
            (*call.target.parameters, *parts_of(call.module)),
        )

    def nonsense(self, kind: str, detail: str, /, **changed: Any) -> Trial:
        """A trial with arguments that must be refused."""
        return self.trial(kind, detail, self.call.having(**changed), None)

    @property
    def is_mechanism(self) -> bool:
        """Whether it is called as `attention` is."""
        return {"q", "k", "causal"} <= {*self.call.target.parameters}


def parts_of(module: nn.Module | None) -> list[str]:
    """What an error of a method may name besides: its layer's parts."""
    return [] if module is None else [n for n, _ in module.named_children()]


def plain(call: Call) -> Any:
    """What a call must give: the definition, or itself, in float64."""
    call = in_float64(call)
    definition = definition_of(call.target.name)
    if definition is None:
        return call.run()
    first = () if call.module is None else (call.module,)
    return definition(*first, **call.given)


def in_float64(call: Call) -> Call:
    """The same numbers in float64, plainly laid out."""
    given = {n: convert(x, torch.float64) for n, x in call.given.items()}
    given |= {n: x.double().contiguous() for n, x in call.floats().items()}
    module = call.module
    if module is not None:
        module = cast(module, torch.float64)
    return call.having(**given)._replace(module=module)


def cast(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A copy of a module in another type."""
    import copy

    return copy.deepcopy(module).to(dtype)


def in_dtype(call: Call, dtype: torch.dtype) -> Call:
    """Floating-point arguments and the module in another type."""
    given = {n: convert(x, dtype) for n, x in call.given.items()}
    module = None if call.module is None else cast(call.module, dtype)
    return call._replace(given=given, module=module)


def convert(x: Any, dtype: torch.dtype) -> Any:
    """Floating-point tensors of any depth in another type."""
    from torch.utils._pytree import tree_map

    def one(leaf: Any) -> Any:
        floats = isinstance(leaf, Tensor) and leaf.is_floating_point()
        return leaf.to(dtype) if floats else leaf

    return x if isinstance(x, nn.Module) else tree_map(one, x)


def with_gradients(
    call: Call, run: Callable[[Call], Any] = Call.run
) -> list[Any]:
    """The results of a call, and what they pass back to its arguments."""
    floats = {n: x.detach().requires_grad_() for n, x in call.floats().items()}
    outputs = leaves(run(call.having(**floats)))
    total = weighed(outputs)
    if total is None or not floats:
        return outputs
    grads = torch.autograd.grad(total, [*floats.values()], allow_unused=True)
    filled = [
        torch.zeros_like(x) if g is None else g
        for x, g in zip(floats.values(), grads, strict=True)
    ]
    return [*outputs, *filled]


def weighed(outputs: list[Any]) -> Tensor | None:
    """One number made of all that can be differentiated."""
    total = None
    for x in outputs:
        if isinstance(x, Tensor) and x.requires_grad:
            here = (x.double() * weights_like(x)).nan_to_num(0.0, 0.0, 0.0)
            total = here.sum() if total is None else total + here.sum()
    return total


def weights_like(x: Tensor) -> Tensor:
    """Fixed numbers, no two alike, in the shape of x."""
    n = torch.arange(x.numel(), dtype=torch.float64, device=x.device)
    return (1 + 0.7 * n).cos().view(x.shape)


def nothing_to_compare() -> Any:
    """What every result meets."""
    return Anything()


def poisons(rng: Random) -> Iterator[float]:
    """What may not be felt."""
    yield from rng.sample([math.nan, math.inf, -math.inf, 1e30, -1e30], 3)
