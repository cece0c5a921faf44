"""Hostile transforms: torch.func, second derivatives, checkpoints, compile."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hostile.feeding import Call
from hostile.trials import Case, in_dtype, plain, weighed, with_gradients
from hostile.verdicts import Trial, leaves


def trials(case: Case) -> Iterator[Trial]:
    """For whatever takes and gives floating-point tensors."""
    floats = case.call.floats()
    if not floats or not differentiable(case.call):
        return
    call = case.call
    for name in floats:
        yield case.trial(
            "a transform",
            f"torch.func.grad of {name}",
            call,
            partial(by_autograd, call, name),
            run=partial(by_grad, call, name),
        )
        yield case.trial(
            "a transform",
            f"torch.func.jvp along {name}",
            call,
            partial(along, call, name),
            run=partial(by_jvp, call, name),
            dtype=torch.float32,
        )
        yield case.trial(
            "a transform",
            f"torch.func.vmap over {name}",
            call,
            partial(one_by_one, call, name),
            run=partial(by_vmap, call, name),
        )
    yield case.trial(
        "a transform",
        "a checkpoint",
        call,
        partial(with_gradients, call, plain),
        run=partial(with_gradients, call, checkpointed),
    )
    yield case.trial(
        "a transform",
        "a second derivative",
        call,
        partial(twice, call, plain),
        run=partial(twice, call, Call.run),
        dtype=torch.float32,
    )


def compiled(case: Case) -> Iterator[Trial]:
    """Slow, and so only for some."""
    call = in_dtype(case.call, torch.float32)
    if not call.floats() or not differentiable(case.call):
        return
    yield case.trial(
        "compiled",
        "torch.compile",
        call,
        partial(with_gradients, call),
        run=partial(with_gradients, call, by_compile),
        dtype=torch.float32,
    )


def differentiable(call: Call) -> bool:
    """Whether a result depends on an argument, smoothly."""
    floats = {n: x.detach().requires_grad_() for n, x in call.floats().items()}
    try:
        return weighed(leaves(call.having(**floats).run())) is not None
    except Exception:
        return False


def total_of(call: Call, name: str, x: Tensor) -> Tensor:
    """One number made of the results, for another argument."""
    outputs = leaves(call.having(**{name: x}).run())
    total = sum(
        (y.double() * (1 + torch.arange(y.numel())).cos().view(y.shape)).sum()
        for y in outputs
        if isinstance(y, Tensor) and y.is_floating_point()
    )
    return torch.as_tensor(total)


def by_grad(call: Call, name: str) -> Tensor:
    """The gradient by torch.func."""
    return torch.func.grad(partial(total_of, call, name))(call.given[name])


def by_autograd(call: Call, name: str) -> Tensor:
    """The gradient as usual."""
    x = call.given[name].detach().clone().requires_grad_()
    [grad] = torch.autograd.grad(total_of(call, name, x), x, allow_unused=True)
    return torch.zeros_like(x) if grad is None else grad


def direction(x: Tensor) -> Tensor:
    """A fixed direction to go in."""
    return (2 + torch.arange(x.numel())).double().sin().view(x.shape)


def by_jvp(call: Call, name: str) -> tuple[Tensor, Tensor]:
    """The total, and its derivative along a direction, forwards."""
    x = call.given[name]
    function = partial(total_of, call, name)
    return torch.func.jvp(function, (x,), (direction(x),))


def along(call: Call, name: str) -> tuple[Tensor, Tensor]:
    """The same by the gradient."""
    x = call.given[name]
    slope = (by_autograd(call, name) * direction(x)).sum()
    return total_of(call, name, x), slope


def outputs_for(call: Call, name: str, x: Tensor) -> tuple[Tensor, ...]:
    """The tensors of a result, for another argument."""
    found = leaves(call.having(**{name: x}).run())
    return tuple(y for y in found if isinstance(y, Tensor))


def three_of(x: Tensor) -> Tensor:
    """Three arguments in place of one."""
    return torch.stack((x, 0.5 * x, x.flip(-1) if x.ndim else x))


def by_vmap(call: Call, name: str) -> Any:
    """Three at once."""
    function = partial(outputs_for, call, name)
    return torch.func.vmap(function)(three_of(call.given[name]))


def one_by_one(call: Call, name: str) -> Any:
    """Three in turn."""
    found = [outputs_for(call, name, x) for x in three_of(call.given[name])]
    return tuple(torch.stack(same) for same in zip(*found, strict=True))


def checkpointed(call: Call) -> Any:
    """Computed again on the way back."""
    return checkpoint(call.run, use_reentrant=False)


def by_compile(call: Call) -> Any:
    """Traced by dynamo, without a compiler of C++ behind it."""
    torch._dynamo.reset()
    return torch.compile(call.run, backend="aot_eager")()


def twice(call: Call, run: Any) -> list[Tensor]:
    """The gradients of the size of the gradients."""
    floats = {n: x.detach().requires_grad_() for n, x in call.floats().items()}
    total = weighed(leaves(run(call.having(**floats))))
    assert total is not None
    xs = [*floats.values()]
    first = torch.autograd.grad(
        total, xs, create_graph=True, allow_unused=True
    )
    size = sum((g.square().sum() for g in first if g is not None), total * 0)
    second = torch.autograd.grad(size, xs, allow_unused=True)
    return [
        torch.zeros_like(x) if g is None else g
        for x, g in zip(xs, second, strict=True)
    ]
