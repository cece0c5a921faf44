"""Parts inside sublayers that have their own norm, and their own path past."""

import inspect
from collections.abc import Callable

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds.layer.norming import is_norm
from selfattn.doctor.probes import numbers


def attentions(block: nn.Module) -> dict[str, nn.Module]:
    """The attentions further down in a block, by their names with dots.

    Who holds a norm beside an attention is the sublayer, and who lies in an
    attention is a part of it.
    """
    named = {
        name: module
        for name, module in block.named_modules()
        if called_attention(name, module)
        and not (has_norm(module) and holds_attention(module))
    }
    return {
        name: module
        for name, module in named.items()
        if not any(name.startswith(f"{other}.") for other in named)
    }


def called_attention(name: str, module: nn.Module) -> bool:
    """Whether a part with maps in it has the word, in its name or class."""
    words = f"{name.rpartition('.')[2]} {type(module).__name__}".lower()
    return "att" in words and "norm" not in words and holds_maps(module)


def has_norm(module: nn.Module) -> bool:
    """Whether a norm lies in a module itself."""
    return any(map(is_norm, module.children()))


def holds_attention(module: nn.Module) -> bool:
    """Whether some part of a module is called an attention."""
    return any(
        called_attention(name, part)
        for name, part in module.named_modules()
        if part is not module
    )


def network(
    block: nn.Module, norm: nn.Module, d_model: int
) -> Callable[[Tensor], Tensor] | None:
    """What a sublayer with this norm in it makes of each token.

    None if no module holds the norm, and maps, and no attention.
    """
    for module in block.modules():
        if norm in [*module.children()] and module is not block:
            if holds_attention(module) or not holds_maps(module):
                return None
            if not takes_one(module):
                return None  # it is the end of a sublayer, and given its x
            return bare(module, norm, keeps_path(module, norm, d_model))
    return None


def takes_one(module: nn.Module) -> bool:
    """Whether a module can be called with tokens alone."""
    try:
        inspect.signature(module.forward).bind(None)
    except TypeError:
        return False
    return True


def holds_maps(module: nn.Module) -> bool:
    """Whether there is more in a module than norms."""
    return any(x.ndim > 1 for x in module.parameters())


def bare(
    sublayer: nn.Module, norm: nn.Module, path: bool
) -> Callable[[Tensor], Tensor]:
    """A sublayer as if its norm did nothing, and without the path past it."""

    def network(x: Tensor) -> Tensor:
        hook = norm.register_forward_hook(lambda module, given, y: given[0])
        try:
            y: Tensor = sublayer(x)
        finally:
            hook.remove()
        return y - x if path else y

    return network


def keeps_path(sublayer: nn.Module, norm: nn.Module, d_model: int) -> bool:
    """Whether x is added: then it comes out, though the norm lets none by."""
    hook = norm.register_forward_hook(lambda module, given, y: 0 * y)
    try:
        with torch.no_grad():
            x, other = numbers(1, 3, d_model), numbers(1, 3, d_model, seed=1)
            moved = sublayer(x) - sublayer(other)
    finally:
        hook.remove()
    return torch.allclose(moved, x - other, atol=1e-4)
