"""What single heads do: found, recorded, switched off, patched.

A head's name is "layer.head", both from 1, in the order in which a model
lists its layers of attention. As long as one looks inside, what was compiled
around a model runs as it is written; and so does the rest of a function that
is compiled and itself looks inside.
"""

import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import (
    _global_forward_hooks_with_kwargs,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from selfattn.checks import check_number, check_places, check_tensor
from selfattn.multihead import MultiHeadAttention
from selfattn.signatures import checked, shown
from selfattn.spoilt import as_given, can_look, of_this_rank
from selfattn.transforms import depth, in_no_graph, outside, uncompiled
from selfattn.wrapped import P, R

NOT_WHOLE = (
    "one who looks inside has the model run as it is written, which is in no "
    "graph; without fullgraph=True, it does"
)


@checked
@in_no_graph(NOT_WHOLE)
@contextmanager
def record_weights(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the weights of every `MultiHeadAttention` that runs inside.

    Args:
        model: a layer, or anything that contains some.

    Yields:
        A list that fills as the layers run: one (batch, n_heads, n_q, n_k)
        for each time one of them does, before dropout, without gradients.
        The weights are computed once more for it, so recording takes time;
        what a projection draws at random, on a processor, it draws again.
        Other threads are heard only if this one does not run the model.

    Raises:
        ValueError: when a layer runs whose mechanism has no weights; or if
            the model is compiled, in which hooks hung later do not run.

    >>> layer = MultiHeadAttention(8, 2)
    >>> with record_weights(layer) as weights:
    ...     _ = layer(torch.zeros(1, 3, 8))
    >>> weights[0].shape
    torch.Size([1, 2, 3, 3])
    """
    check_hooks_run(model)
    weights: list[Tensor] = []
    owners, running, asked = names_of(model), Running(), Asked()
    level = depth()

    def note(layer, args):
        if sign_of(layer) in owners:
            asked.begins(weights)
            running.layers.append((layer, torch.get_rng_state()))

    def record(layer, args, kwargs, output):
        begun = [
            at for at, (of, _) in enumerate(running.layers) if of is layer
        ]
        if not begun:  # nor is what began before all this
            return
        _, drawn = running.layers[begun[-1]]
        del running.layers[begun[-1] :]  # and what failed within it
        if not asked.hears():
            return
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.set_rng_state(drawn)
            weights.append(outside(layer.weights(*args, **kwargs), level))

    with (
        uncompiled(),
        register_module_forward_pre_hook(as_hook(note)),
        told_all(record),
    ):
        yield weights


@contextmanager
def told_all(hook: Callable[..., None]) -> Iterator[None]:
    """Call this after every module, and hand it what that was given by name.

    PyTorch keeps a note that a hook wants that; its handle leaves it there,
    and whatever is compiled later is told of hooks at each call. Another
    thread may have gathered its hooks before the note goes, and ask for it
    afterwards: what is not told what was given by name is not called.
    """

    def told(layer: nn.Module, args: Any, *rest: Any) -> None:
        if len(rest) == 2:
            hook(layer, args, *rest)

    handle = register_module_forward_hook(as_hook(told), with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()
        _global_forward_hooks_with_kwargs.pop(handle.id, None)


@checked
def heads_of(model: nn.Module) -> dict[str, tuple[MultiHeadAttention, slice]]:
    """Each head's layer, and which features of what `W_o` reads are its own.

    >>> [*heads_of(nn.Sequential(MultiHeadAttention(8, 2)))]
    ['1.1', '1.2']
    """
    layers = (m for m in model.modules() if isinstance(m, MultiHeadAttention))
    return {
        f"{i}.{h + 1}": (
            layer,
            slice(h * layer.d_head, (h + 1) * layer.d_head),
        )
        for i, layer in enumerate(layers, 1)
        for h in range(layer.n_heads)
    }


@checked
@in_no_graph(NOT_WHOLE)
@contextmanager
def record_heads(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect what every head brings back, before `W_o` puts it together.

    Of a tensor-parallel layer these are the rank's own heads.

    Yields:
        A dictionary that fills as the model runs: (batch, n, d_head) of each
        head by its name. A layer that runs twice leaves what came last.
        Other threads are heard only if this one does not run the model.

    Raises:
        ValueError: if the model is compiled.

    >>> layer = MultiHeadAttention(8, 2)
    >>> with record_heads(layer) as heads:
    ...     _ = layer(torch.zeros(1, 3, 8))
    >>> heads["1.2"].shape
    torch.Size([1, 3, 4])
    """
    brought: dict[str, Tensor] = {}
    asked, level = Asked(), depth()

    def begins(names):
        asked.begins(brought)
        for name in names if asked.hears() else ():
            brought.pop(name, None)

    def record(names, given):
        # A layer projects twice where a token is spoilt: the first is it.
        if names.keys() <= brought.keys() or not asked.hears():
            return
        x = of_this_rank(given)
        # Copies: what W_o was given is kept for the way back.
        copies = {n: x[..., s].clone() for n, s in names.items()}
        brought.update({n: outside(x, level) for n, x in copies.items()})

    with before_w_o(model, record, begins):
        yield brought


@checked
@in_no_graph(NOT_WHOLE)
@contextmanager
def change_heads(
    model: nn.Module, instead: Mapping[str, Tensor | float]
) -> Iterator[None]:
    """Put something else in place of what some heads bring back.

    Zero switches a head off; what `record_heads` collected from another text
    *patches* it. Everything after the head is computed anew, in whatever
    thread the model runs meanwhile. A checkpointed layer is computed again on
    the way back, as it is then: so go back within the ``with``, too.

    Args:
        model: a layer, or anything that contains some.
        instead: by the head's name, what broadcasts to (batch, n, d_head).

    Raises:
        TypeError: if what is put there is neither a number nor a tensor.
        ValueError: if the model has no such head, or if it does not fit, or
            holds a finite number too large for its type; or if the model is
            compiled.

    >>> layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    >>> with change_heads(layer, {"1.1": 0.0, "1.2": 0.0}):
    ...     layer(x).abs().max()
    tensor(0., grad_fn=<MaxBackward1>)
    """
    instead = dict(instead)  # what becomes of the caller's is not heard
    for name, value in instead.items():
        check_head(name, value, [*heads_of(model)])

    def change(names, given):
        x = of_this_rank(given)
        for name in names.keys() & instead.keys():
            own = names[name]
            check_instead(name, instead[name], x[..., own])
            x = with_features(x, own, instead[name])
        return (as_given(x, given),)

    with before_w_o(model, change):
        yield


def check_head(name: object, value: object, heads: list[str]) -> None:
    """Raise unless a model has this head, and this can stand in its place."""
    if name not in heads:
        raise ValueError(
            f"the heads of this model are {', '.join(heads) or 'none'}, but "
            f"{shown(name)} is none of them"
        )
    if isinstance(value, Tensor):
        check_tensor(f"instead[{name!r}]", value)
    else:
        check_number(f"instead[{name!r}]", value, finite=False)


def check_instead(name: str, value: Tensor | float, x: Tensor) -> None:
    """Raise unless this broadcasts to what a head brings back, whose type has
    all the numbers in it.
    """
    most = torch.finfo(x.dtype).max
    if not isinstance(value, Tensor):
        far = most < abs(value) < math.inf
    else:
        check_fits_head(name, value, x)
        far = can_look(value) and overflows_in(x.dtype, value)
    if far:
        raise ValueError(
            f"instead[{name!r}] must be of numbers that {x.dtype} has, at "
            f"most {most:.4g} from 0, but it is {shown(value)}"
        )


def overflows_in(dtype: torch.dtype, x: Tensor) -> bool:
    """Whether a number of x becomes infinite in another type."""
    return bool((x.to(dtype).isinf() & x.double().isfinite()).any())


def check_fits_head(name: str, value: Tensor, x: Tensor) -> None:
    """Raise unless these are numbers that can stand where a head's do."""
    check_places(**{"what the head brings back": x, "instead": value})
    sizes = zip(reversed(value.shape), reversed(x.shape), strict=False)
    fits = value.ndim <= x.ndim and all(a in (1, b) for a, b in sizes)
    none = value.is_complex() or value.is_quantized
    if not fits or none or value.dtype == torch.bool:
        raise ValueError(
            f"instead[{name!r}] must be real and broadcast to (batch, n, "
            f"d_head) = {tuple(x.shape)}, but it is {shown(value)}"
        )


def with_features(x: Tensor, own: slice, value: Tensor | float) -> Tensor:
    """Some features of x replaced, in its type. They are not written into it:
    `torch.func.vmap` may map what is put there, and not x.

    >>> with_features(torch.zeros(1, 4), slice(1, 3), 2.0)
    tensor([[0., 2., 2., 0.]])
    """
    d = x.shape[-1]
    if isinstance(value, Tensor):
        new = value.to(x.dtype).expand(x[..., own].shape)
    else:  # of whole numbers, PyTorch takes none of more than 64 bits
        new = torch.full_like(x[..., own], float(value))
    at = torch.arange(d, device=x.device)
    there = F.pad(new, (own.start, d - own.stop))
    return torch.where((own.start <= at) & (at < own.stop), there, x)


def check_hooks_run(model: nn.Module) -> None:
    """Raise if a model is compiled: of hooks hung after that it knows none."""
    for part in model.modules():
        call = getattr(part, "_compiled_call_impl", None)
        if call is not None or hasattr(part, "_orig_mod"):
            raise ValueError(
                "model must not be compiled, for hooks that are hung in it "
                "afterwards do not run: give and run what was compiled"
            )


def as_hook(hook: Callable[P, R]) -> Callable[P, R]:
    """A hook that is not compiled, in which it would know no module again.

    None is where the compiler is at hand. Where it is not yet, somebody may
    compile for the first time while the hook hangs.
    """
    at_hand = "torch._dynamo" in sys.modules
    return hook if at_hand else in_no_graph(NOT_WHOLE)(hook)


def sign_of(module: nn.Module) -> int:
    """What tells a module from all others, but for its replicas on other GPUs
    and shallow copies: they share with it what hangs in it.
    """
    return id(module._forward_pre_hooks)


def names_of(model: nn.Module) -> dict[int, dict[str, slice]]:
    """The heads of each layer, by what tells it from others."""
    owners: dict[int, dict[str, slice]] = {}
    for name, (layer, own) in heads_of(model).items():
        owners.setdefault(sign_of(layer), {})[name] = own
    return owners


class Running(threading.local):
    """The layers that are at work in a thread, the innermost last; each with
    what is to be known of it.
    """

    def __init__(self) -> None:
        """None is, at first."""
        self.layers: list[Any] = []


class Here(threading.local):
    """Whether it was in this thread that somebody asked for a record."""

    asked = False


class Asked:
    """The thread that asked for a record. Others are heard until it runs the
    model itself: a model on several GPUs has replicas, each in a thread.
    """

    def __init__(self) -> None:
        """It is this one, and runs nothing yet."""
        self.here, self.runs = Here(), False
        self.here.asked = True

    def begins(self, recorded: list[Tensor] | dict[str, Tensor]) -> None:
        """Note that the model begins; what others left, if it is here."""
        if self.here.asked and not self.runs:
            self.runs = True
            recorded.clear()

    def hears(self) -> bool:
        """Whether what runs in the present thread counts."""
        return self.here.asked or not self.runs


@contextmanager
def before_w_o(
    model: nn.Module,
    act: Callable[[dict[str, slice], Any], tuple[Any, ...] | None],
    begins: Callable[[dict[str, slice]], object] = len,
) -> Iterator[None]:
    """Act on what each layer hands its `W_o`, and say when a layer begins.

    A `W_o` that several layers share acts for the one that is at work, and
    none for nobody: with its names and slices, and what it is given.
    """
    check_hooks_run(model)
    owners, running = names_of(model), Running()

    def enters(module, given):
        names = owners.get(sign_of(module))
        if names is not None:
            running.layers.append(module)
            begins(names)
        elif running.layers and module is running.layers[-1].W_o:
            return act(owners[sign_of(running.layers[-1])], given[0])
        return None

    def leaves(module, given, output):
        if running.layers and module is running.layers[-1]:
            running.layers.pop()

    # For all modules: none hangs in the model, of which copies may be made.
    with (
        uncompiled(),
        register_module_forward_pre_hook(as_hook(enters)),
        register_module_forward_hook(as_hook(leaves), always_call=True),
    ):
        yield
