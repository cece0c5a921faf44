"""The parts of a block that somebody else wrote, found and made callable."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.blocks import flat
from selfattn.doctor.kinds.blocks.calling import called
from selfattn.doctor.kinds.blocks.recording import (
    meaning_of,
    played,
    recorded,
)
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts, handed, parameters
from selfattn.masks import causal_mask

MASKS = ("mask", "attn_mask", "attention_mask", "src_mask")


NETWORKS = (
    *("feed_forward", "ff", "ffn", "mlp", "fc", "feedforward", "f", "net"),
    *("feed_forward_network", "position_wise", "pwff", "ffwd", "network"),
)

FLAT = ("norm", "ff", "mlp", "feed", "network", "linear", "drop", "embed")


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
    inside = tuple(f"{name}." for name in attentions(block))
    found = [
        module
        for name, module in block.named_modules()
        if is_norm(module) and not name.startswith(inside)
    ]
    if named:
        found = [part(block, name) for name in named]
    if len(found) != n:
        raise UnclearError(
            f"A block of this kind has {n} norms, but I find {len(found)}. "
            "Say norms=[…], their names in the order of the sublayers."
        )
    return tuple(found)


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a norm, by its class, and holds no other."""
    return "norm" in type(module).__name__.lower() and not [*module.children()]


def network(
    block: nn.Module, facts: Facts, d_model: int = 0
) -> Callable[[Tensor], Tensor]:
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
    lying = flat.network(block, facts, d_model)
    if lying is not None:
        return lying
    raise UnclearError(
        "I cannot find the feed-forward network. Say feed_forward=…, its "
        "name in the block, or flat_feed_forward=(first, bend, last)."
    )


def attentions(block: nn.Module) -> dict[str, nn.Module]:
    """The attentions of a block by their names.

    If none is called so, they are what is neither norm nor network.
    """
    large = {
        name: child
        for name, child in block.named_children()
        if any(x.ndim > 1 for x in child.parameters())
    }
    named = {
        name: child
        for name, child in large.items()
        if "att" in f"{name} {type(child).__name__}".lower()
    }
    return named or {n: x for n, x in large.items() if may_attend(n, x)}


def may_attend(name: str, child: nn.Module) -> bool:
    """Whether a part is no network by its name, and more than a chain."""
    own = not type(child).__module__.startswith("torch.nn")
    words = f"{name} {type(child).__name__}".lower()
    inner = " ".join(n for n, _ in child.named_modules()).lower()
    return (
        own and "att" not in inner and not any(word in words for word in FLAT)
    )


def width(norm: nn.Module) -> int:
    """How many features a norm takes."""
    for parameter in norm.parameters():
        return parameter.numel()
    raise UnclearError("I cannot see how wide the block is.")


def callable_attention(
    block: nn.Module,
    module: nn.Module,
    facts: Facts,
    d_model: int,
    across: bool = False,
) -> Callable[..., Tensor]:
    """An attention as a function of x, a context and a mask of ours.

    It is called as the block calls it, if that can be seen. PyTorch's own is
    called as everybody knows.
    """
    if isinstance(module, nn.MultiheadAttention):
        return partial(of_torch, module)
    call = partial(called_plainly, facts=facts)
    seen = recorded(block, module, call, d_model, across)
    if seen is not None:
        told = facts["mask"]
        meaning = meaning_of(module, seen, told, d_model, across)
        return played(module, seen, meaning)

    def attend(
        x: Tensor, context: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        given: dict[str, Any] = {}
        if mask is not None:
            given = named_mask(module, mask, facts["mask"], x.dtype)
        others = () if context is None else (context,)
        output = handed(module, x, *others, **given)
        return output[0] if isinstance(output, tuple) else output

    return attend


def called_plainly(
    block: nn.Module, x: Tensor, *others: Tensor, facts: Facts
) -> object:
    """Call a block without a mask, but for one that it must be told."""
    own = facts.get("own_mask")
    past = causal_mask(x.shape[1], x.shape[1])
    given = {own: as_meant(past, facts["mask"], x.dtype)} if own else {}
    return called(block, facts, x, *others, **given)


def of_torch(
    module: nn.MultiheadAttention,
    x: Tensor,
    context: Tensor | None = None,
    mask: Tensor | None = None,
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
