"""What single heads do: found, recorded, switched off, patched.

A head's name is "layer.head", both from 1, in the order in which a model
lists its layers of attention.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.checks import check_number, check_places, check_tensor
from selfattn.multihead import MultiHeadAttention
from selfattn.signatures import checked, shown


@checked
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
    drawn: list[Tensor] = []  # PyTorch's generator, before each layer runs

    def note(layer, args):
        drawn.append(torch.get_rng_state())

    def record(layer, args, kwargs, output):
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.set_rng_state(drawn.pop())
            weights.append(layer.weights(*args, **kwargs))

    layers = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    with meanwhile() as hang:
        for layer in layers:
            hang(layer.register_forward_pre_hook, note)
            hang(layer.register_forward_hook, record, with_kwargs=True)
        yield weights


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
@contextmanager
def record_heads(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect what every head brings back, before `W_o` puts it together.

    Of a tensor-parallel layer these are the rank's own heads.

    Yields:
        A dictionary that fills as the model runs: (batch, n, d_head) of each
        head by its name. A layer that runs twice leaves what came last.

    Raises:
        ValueError: if the model is compiled.

    >>> layer = MultiHeadAttention(8, 2)
    >>> with record_heads(layer) as heads:
    ...     _ = layer(torch.zeros(1, 3, 8))
    >>> heads["1.2"].shape
    torch.Size([1, 3, 4])
    """
    brought: dict[str, Tensor] = {}

    owners = heads_of(model)

    def begins(layer, given):
        for name, (other, _) in owners.items():
            if other is layer:
                brought.pop(name, None)

    def record(names):
        def hook(_, given):
            # A layer projects twice where a token is spoilt: the first is it.
            if names.keys() <= brought.keys():
                return
            x = of_this_rank(given[0])
            # Copies: what W_o was given is kept for the way back.
            brought.update({n: x[..., s].clone() for n, s in names.items()})

        return hook

    with meanwhile() as hang, before_w_o(model, record):
        for layer in {layer for layer, _ in owners.values()}:
            hang(layer.register_forward_pre_hook, begins)
        yield brought


@checked
@contextmanager
def change_heads(
    model: nn.Module, instead: Mapping[str, Tensor | float]
) -> Iterator[None]:
    """Put something else in place of what some heads bring back.

    Zero switches a head off; what `record_heads` collected from another text
    *patches* it. Everything after the head is computed anew.

    Args:
        model: a layer, or anything that contains some.
        instead: by the head's name, what broadcasts to (batch, n, d_head).

    Raises:
        TypeError: if what is put there is neither a number nor a tensor.
        ValueError: if the model has no such head, or if it does not fit, or
            is a finite number too large for its type; or if the model is
            compiled.

    >>> layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    >>> with change_heads(layer, {"1.1": 0.0, "1.2": 0.0}):
    ...     layer(x).abs().max()
    tensor(0., grad_fn=<MaxBackward1>)
    """
    instead = dict(instead)  # what becomes of the caller's is not heard
    for name, value in instead.items():
        check_head(name, value, [*heads_of(model)])

    def change(names):
        def hook(_, given):
            x = of_this_rank(given[0]).clone()
            for name in names.keys() & instead.keys():
                check_instead(name, instead[name], x[..., names[name]])
                x[..., names[name]] = as_float(instead[name])
            return (as_given(x, given[0]),)

        return hook

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
    """Raise unless this broadcasts to what a head brings back, and its type
    has all the numbers in it.
    """
    if not isinstance(value, Tensor):
        most = torch.finfo(x.dtype).max
        if most < abs(value) < math.inf:
            raise ValueError(
                f"instead[{name!r}] must be a number that {x.dtype} has, at "
                f"most {most:.4g} from 0, but it is {shown(value)}"
            )
        return
    check_places(**{"what the head brings back": x, "instead": value})
    sizes = zip(reversed(value.shape), reversed(x.shape), strict=False)
    fits = value.ndim <= x.ndim and all(a in (1, b) for a, b in sizes)
    if not fits or value.is_complex() or value.dtype == torch.bool:
        raise ValueError(
            f"instead[{name!r}] must be real and broadcast to (batch, n, "
            f"d_head) = {tuple(x.shape)}, but it is {shown(value)}"
        )


def as_float(value: Tensor | float) -> Tensor | float:
    """What is put in a head's place; PyTorch puts no whole number of more than
    64 bits there.
    """
    return value if isinstance(value, Tensor) else float(value)


def check_hooks_run(model: nn.Module) -> None:
    """Raise if a model is compiled: of hooks hung after that it knows none."""
    for part in model.modules():
        call = getattr(part, "_compiled_call_impl", None)
        if call is not None or hasattr(part, "_orig_mod"):
            raise ValueError(
                "model must not be compiled, for hooks that are hung in it "
                "afterwards do not run: give and run what was compiled"
            )


def of_this_rank(x: Any) -> Tensor:
    """The features that are here, of what several ranks share out."""
    return x.to_local() if hasattr(x, "to_local") else x


def as_given(x: Tensor, given: Any) -> Tensor:
    """Features of this rank's heads, as they were handed over."""
    if not hasattr(given, "to_local"):
        return x
    from torch.distributed.tensor import DTensor

    return DTensor.from_local(x, given.device_mesh, given.placements)


@contextmanager
def before_w_o(model: nn.Module, make) -> Iterator[None]:
    """Hang a hook before each `W_o`, made of its heads' names and slices."""
    check_hooks_run(model)
    layers: dict[MultiHeadAttention, dict[str, slice]] = {}
    for name, (layer, own) in heads_of(model).items():
        layers.setdefault(layer, {})[name] = own
    with meanwhile() as hang:
        for layer, names in layers.items():
            hang(layer.W_o.register_forward_pre_hook, make(names))
        yield


@contextmanager
def meanwhile() -> Iterator[Callable[..., None]]:
    """Hang hooks that are taken away at the end, and that do nothing after:
    a copy of the model that is made meanwhile has them for good.
    """
    handles: list[Any] = []

    def hang(register, hook, **options):
        def while_it_lasts(*given):
            return hook(*given) if handles else None

        handles.append(register(while_it_lasts, **options))

    try:
        yield hang
    finally:
        for handle in handles:
            handle.remove()
        handles.clear()
