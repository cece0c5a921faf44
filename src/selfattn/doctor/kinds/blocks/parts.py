"""The parts of a block that somebody else wrote, found and made callable."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts, parameters

MASKS = ("mask", "attn_mask", "attention_mask", "src_mask")


NETWORKS = ("feed_forward", "ff", "ffn", "mlp", "fc", "feedforward")


def part(block: nn.Module, named: Any) -> nn.Module:
    """A part by its name, with dots for parts of parts."""
    found: nn.Module = block.get_submodule(named)
    return found


def norms(block: nn.Module, facts: Facts, n: int) -> tuple[nn.Module, ...]:
    """The norms of a block, one for each sublayer.

    Raises:
        UnclearError: if they are not told, and not as many can be found.
    """
    named = facts.get("norms")
    found = [
        module
        for name, module in block.named_modules()
        if "norm" in type(module).__name__.lower()
        and not [*module.children()]
        and "att" not in name.lower()
    ]
    if named:
        found = [part(block, name) for name in named]
    if len(found) != n:
        raise UnclearError(
            f"A block of this kind has {n} norms, but I find {len(found)}. "
            "Say norms=[…], their names in the order of the sublayers."
        )
    return tuple(found)


def network(block: nn.Module, facts: Facts) -> Callable[[Tensor], Tensor]:
    """The feed-forward network of a block.

    Raises:
        UnclearError: if it is not told and cannot be found.
    """
    if facts.get("feed_forward"):
        return part(block, facts["feed_forward"])
    children = dict(block.named_children())
    for name, child in children.items():
        if name.lower() in NETWORKS:
            return child
    if {"linear1", "linear2"} <= children.keys():
        bend = getattr(block, "activation", torch.relu)
        first, last = children["linear1"], children["linear2"]
        return lambda x: last(bend(first(x)))
    raise UnclearError(
        "I cannot find the feed-forward network. Say feed_forward=…, its "
        "name in the block."
    )


def attentions(block: nn.Module) -> dict[str, nn.Module]:
    """The attentions of a block by their names."""
    return {
        name: child
        for name, child in block.named_children()
        if "att" in f"{name} {type(child).__name__}".lower()
    }


def width(norm: nn.Module) -> int:
    """How many features a norm takes."""
    for parameter in norm.parameters():
        return parameter.numel()
    raise UnclearError("I cannot see how wide the block is.")


def callable_attention(
    module: nn.Module, meaning: str
) -> Callable[..., Tensor]:
    """An attention as a function of x, a context and a mask of ours."""

    def attend(
        x: Tensor, context: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        if isinstance(module, nn.MultiheadAttention):
            return of_torch(module, x, context, mask)
        given: dict[str, Any] = {}
        if mask is not None:
            given = named_mask(module, mask, meaning, x.dtype)
        others = () if context is None else (context,)
        output = module(x, *others, **given)
        return output[0] if isinstance(output, tuple) else output

    return attend


def of_torch(
    module: nn.MultiheadAttention,
    x: Tensor,
    context: Tensor | None,
    mask: Tensor | None,
) -> Tensor:
    """Call PyTorch's layer, whatever its layout, batch first."""
    context = x if context is None else context
    if not module.batch_first:
        x, context = x.transpose(0, 1), context.transpose(0, 1)
    blocked = None if mask is None else ~mask
    output = module(x, context, context, attn_mask=blocked, need_weights=False)
    return output[0] if module.batch_first else output[0].transpose(0, 1)


def named_mask(
    module: nn.Module, mask: Tensor, meaning: str, dtype: torch.dtype
) -> dict[str, Tensor]:
    """A mask of ours under a module's own name, as it means it."""
    names = [n for n in MASKS if n in parameters(module.forward)]
    if not names:
        raise UnclearError("Its attention takes no mask that I know of.")
    return {names[0]: as_meant(mask, meaning, dtype)}
