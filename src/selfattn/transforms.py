"""Transforms: whether PyTorch asks for more than a result and its gradient."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import TransformType
from torch.autograd import forward_ad

from selfattn.wrapped import P, R, stands_for

# Instead of those whose way back is by hand, what all transforms can take.
TABLES = {
    "linear_attention": "`linear_weights(q, k) @ v`",
    "performer_attention": "`performer_weights(q, k) @ v`",
}
BY_TABLE = "`attention`, with the same mask,"
# They write into memory at hand, in which an exported graph has no gradient.
IN_PLACE = {
    *("flash_attention", "strided_attention", "fixed_attention"),
    *TABLES,
}


def is_transformed() -> bool:
    """Whether `torch.func` is at work: vmap, grad, jvp and the like."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def depth() -> int:
    """How many transforms of `torch.func` are at work, one in the other."""
    if torch.compiler.is_compiling() or not is_transformed():
        return 0
    return torch._C._functorch.peek_interpreter_stack().level()


def outside(x: Tensor, level: int) -> Tensor:
    """A tensor as it is where so many transforms are at work, and those that
    began later are over: what vmap mapped is an axis in front, the outermost
    first. Within vmap it has none, and outside of it nobody can use it.

    >>> kept = []
    >>> def double(x):
    ...     kept.append(outside(2 * x, 0))
    ...     return x
    >>> _ = torch.func.vmap(double, in_dims=1)(torch.ones(3, 5))
    >>> kept[0].shape
    torch.Size([5, 3])
    """
    if torch.compiler.is_compiling():
        return x
    of = torch._C._functorch
    rows: list[int] = []  # where they are, of the innermost first
    while of.maybe_get_level(x) > level:
        row, x = of.maybe_get_bdim(x), of.get_unwrapped(x)
        if row >= 0:
            rows = [*(at + (at >= row) for at in rows), row]
    return x.movedim(rows[::-1], tuple(range(len(rows)))) if rows else x


def is_traced() -> bool:
    """Whether PyTorch writes down what is called, by `torch.fx` or
    `torch.jit`: there are numbers then, but of this one call.
    """
    if torch.compiler.is_compiling():  # which cannot ask
        return False
    by_fx = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY)
    return by_fx is not None or torch.jit.is_tracing()


def is_fake() -> bool:
    """Whether PyTorch works out shapes alone, in its fake mode: there, what
    is made has no numbers, though it be made of some.
    """
    if torch.compiler.is_compiling():  # which cannot ask
        return False
    key = torch._C._TorchDispatchModeKey.FAKE
    return torch._C._get_dispatch_mode(key) is not None


def is_of_own_ways(x: Tensor) -> bool:
    """Whether a tensor is of somebody's own class, which itself does what
    PyTorch asks of it: its numbers may be anywhere.
    """
    return type(x).__torch_dispatch__ is not Tensor.__torch_dispatch__


def is_traced_size(x: Any) -> bool:
    """Whether this is a length in a trace by `torch.jit`: a number in a
    tensor.
    """
    sizes = torch.jit.is_tracing() and isinstance(x, Tensor) and x.ndim == 0
    return sizes and x.dtype == torch.int64


def is_square(q: Tensor, k: Tensor) -> bool:
    """Whether there are as many queries as keys; in a graph for any number
    of each, whether there are as many whatever they are.
    """
    n_q, n_k = q.shape[-2], k.shape[-2]
    if torch.compiler.is_exporting():
        # Here, as it takes a second: it imports an algebra system.
        from torch.fx.experimental.symbolic_shapes import statically_known_true

        return statically_known_true(n_q == n_k)
    # A trace by `torch.jit` knows of this one call alone. Of what is compiled
    # the answer is a symbol, until one has asked if it is so.
    return not (torch.jit.is_tracing() or n_q != n_k)


def settled(*sizes: Any) -> tuple[Any, ...]:
    """The sizes, as whole numbers: one read off a shape while `torch.jit`
    traces is a tensor, which no backward pass written by hand can take. A
    trace holds for the lengths it was made with.

    >>> settled(3, torch.tensor(4))
    (3, 4)
    """
    return tuple(int(n) if isinstance(n, Tensor) else n for n in sizes)


@contextmanager
def untraced() -> Iterator[None]:
    """Nothing is written down by `torch.jit` of what is called in here, if it
    traces; what comes of it is a constant.
    """
    state = torch._C._get_tracing_state()
    if state is None:
        yield
        return
    torch._C._set_tracing_state(None)
    try:
        yield
    finally:
        torch._C._set_tracing_state(state)


STANCES: list[Any] = []  # the one of all who are in `uncompiled`, for each
TAKEN = threading.Lock()


@contextmanager
def uncompiled() -> Iterator[None]:
    """What was compiled runs as it is written, as long as one is in here:
    compiled, it runs none of the hooks that were hung later.

    PyTorch has one stance for all threads. Who enters first takes it, and who
    leaves last gives it back: others would give back what is not theirs.
    Within a function that is compiled, this thread compiles nothing more
    until that returns: PyTorch would, of all that it calls, else.
    """
    if "torch._dynamo" not in sys.modules:  # nothing was: it takes seconds
        yield
        return
    # Here and not in a function, which PyTorch would compile: generators it
    # leaves as they are. Not undone, as one may leave after all has returned.
    torch._C._dynamo.eval_frame.set_eval_frame(None)
    with TAKEN:
        STANCES.append(STANCES[0] if STANCES else eagerly())
    try:
        yield
    finally:
        with TAKEN:
            stance = STANCES.pop()
            if not STANCES:
                stance.__exit__(None, None, None)


def eagerly() -> Any:
    """PyTorch's stance in which nothing is compiled, taken."""
    return torch.compiler.set_stance("force_eager")


def in_no_graph(why: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that `torch.compile` calls and does not look into; asked for
    a whole graph, it says why it has none.
    """

    def around(function: Callable[P, R]) -> Callable[P, R]:
        @stands_for(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            if torch.compiler.is_dynamo_compiling():
                torch._dynamo.graph_break(msg=why)
                return torch.compiler.disable(function)(*args, **kwargs)
            return function(*args, **kwargs)

        return called

    return around


def is_beyond_fused_kernels() -> bool:
    """Whether a derivative is asked for that PyTorch's fused kernels have not:
    one carried along forwards, or by `torch.func` one of another.
    """
    ahead = forward_ad._current_level >= 0
    if not (ahead or is_transformed()) or torch.compiler.is_compiling():
        return False
    if ahead:
        return True
    of = [x.key() for x in torch._C._functorch.get_interpreter_stack()]
    return TransformType.Jvp in of or of.count(TransformType.Grad) > 1


def is_learned_around(x: Tensor | None) -> bool:
    """Whether a gradient is asked of what `torch.func` has in hand, from
    around it: within vmap a tensor does not say so, and PyTorch chooses a
    kernel that has none for it.
    """
    if x is None or torch.compiler.is_compiling():
        return False
    while torch._C._functorch.is_functorch_wrapped_tensor(x):
        x = torch._C._functorch.get_unwrapped(x)
        if x.requires_grad:
            return True
    return False


def has_tangent(x: Tensor) -> bool:
    """Whether a derivative is carried along forwards, as PyTorch's
    `torch.autograd.forward_ad` does.
    """
    level = forward_ad._current_level
    return level >= 0 and forward_ad.unpack_dual(x).tangent is not None


def check_transforms(name: str, *tensors: Tensor) -> None:
    """Raise where a backward pass written by hand is to be transformed.

    Raises:
        ValueError: within `torch.func`, for a tensor with a tangent, or where
            PyTorch traces the call into one whole graph; or while it exports
            one that would ask for a gradient, and end in PyTorch's words.
    """
    if (
        torch.compiler.is_exporting()
        and name in IN_PLACE
        and torch.is_grad_enabled()
        and any(x.requires_grad for x in tensors)
    ):
        raise ValueError(
            f"{name} must be exported and run without gradients, as within "
            "torch.no_grad(), or after requires_grad_(False), for its way "
            f"back is written by hand; {TABLES.get(name, BY_TABLE)} has one "
            "in an exported graph"
        )
    if is_transformed() or any(map(has_tangent, tensors)):
        by = "torch.func" if is_transformed() else "torch.autograd.forward_ad"
        # Of torch.compile or torch.export, where all looks transformed.
        by = "a whole graph" if torch.compiler.is_compiling() else by
        raise ValueError(
            f"{by} cannot transform {name} of q, k and v: its way back is "
            f"written by hand; {TABLES.get(name, BY_TABLE)} it can"
        )
