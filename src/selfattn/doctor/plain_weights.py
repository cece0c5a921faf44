"""Weights that are computed anew at each call, as what they come out as.

PyTorch makes a weight of others before a module is called: of a direction and
a length (weight norm), of a matrix over its largest singular value (spectral
norm), of a matrix and which of its entries are left (pruning). Whoever fills
or replaces that weight changes nothing; and what makes it is no part of the
attention. Nor is what keeps a map's weights in eight bits: it learns nothing,
and takes float32 alone.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.prune import BasePruningMethod

from selfattn.doctor.copying import copy_of

# What the older functions hang on a module, by the name of their classes.
MADE_BEFORE_A_CALL = ("WeightNorm", "SpectralNorm")
MADE_OF = ("g", "v", "orig")  # the names of what a weight is made of, after it
PACKED = "torch.ao.nn.quantized.dynamic.modules.linear"  # where such maps are


def with_plain_weights(thing: Any) -> Any:
    """A copy of a module whose weights are numbers; the thing, if they are.

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
    >>> plain = with_plain_weights(layer)
    >>> [name for name, _ in plain.named_parameters()]
    ['bias', 'weight']
    >>> plain.weight.equal(layer.weight), with_plain_weights(plain) is plain
    (True, True)
    """
    if not isinstance(thing, nn.Module) or not any(map(made, thing.modules())):
        return thing
    thing = copy_of(thing)
    for module in list(thing.modules()):
        unpack(module)
        fix(module)
    return thing


def made(module: nn.Module) -> bool:
    """Whether a weight of a module is computed at each call, or packed."""
    if type(module).__module__ == PACKED:
        return True
    return parametrize.is_parametrized(module) or bool(makers(module))


def makers(module: nn.Module) -> dict[int, Any]:
    """What computes weights before a call, by its place among such."""
    hooks = getattr(module, "_forward_pre_hooks", {})
    return {
        place: hook
        for place, hook in hooks.items()
        if type(hook).__name__ in MADE_BEFORE_A_CALL
        or isinstance(hook, BasePruningMethod)
    }


def weight_of(maker: Any) -> str:
    """The name of the weight that it makes."""
    pruning = isinstance(maker, BasePruningMethod)
    name: str = maker._tensor_name if pruning else maker.name
    return name


def unpack(module: nn.Module) -> None:
    """Put maps in the place of those within whose weights are packed."""
    for name, part in list(module._modules.items()):
        if type(part).__module__ == PACKED:
            packed: Any = part
            plain = nn.Linear(packed.in_features, packed.out_features)
            weight, bias = packed.weight(), packed.bias()
            weight = weight.dequantize() if weight.is_quantized else weight
            plain.weight = nn.Parameter(weight.float())
            plain.bias = None if bias is None else nn.Parameter(bias.float())
            module._modules[name] = plain


def fix(module: nn.Module) -> None:
    """Put numbers where they were computed."""
    if parametrize.is_parametrized(module):
        numbers = {x: getattr(module, x) for x in module.parametrizations}
        # Not by PyTorch's function: it takes the weight from the class, which
        # is the original's, too.
        del module._modules["parametrizations"]
        module.__class__ = type(module).__bases__[0]
        for name, number in numbers.items():
            number = nn.Parameter(number.detach().clone())
            module.register_parameter(name, number)
    for place, maker in makers(module).items():
        with torch.no_grad():
            maker(module, ())
        name = weight_of(maker)
        number = getattr(module, name).clone()
        for last in MADE_OF:
            module._parameters.pop(f"{name}_{last}", None)
        delattr(module, name)
        module.register_parameter(name, nn.Parameter(number))
        del module._forward_pre_hooks[place]
