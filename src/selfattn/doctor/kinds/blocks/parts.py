"""The parts of a block that somebody else wrote, found and made callable."""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from torch import Tensor, nn

from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.blocks import flat_parts, wrapped
from selfattn.doctor.kinds.blocks.recording import (
    meaning_of,
    played,
    recorded,
)
from selfattn.doctor.kinds.blocks.scaling import Scaled, scales
from selfattn.doctor.kinds.layer.norming import is_norm
from selfattn.doctor.patient import Facts

MASKS = ("mask", "attn_mask", "attention_mask", "src_mask")


NETWORKS = (
    *("feed_forward", "ff", "ffn", "mlp", "fc", "feedforward", "f", "net"),
    *("feed_forward_network", "position_wise", "pwff", "ffwd", "network"),
)

FLAT = ("norm", "ff", "mlp", "feed", "network", "linear", "drop", "embed")


def part(block: nn.Module, named: Any) -> nn.Module:
    """A part by its name, with dots for parts of parts.

    Raises:
        UnclearError: if there is none.
    """
    try:
        found: nn.Module = block.get_submodule(named)
    except AttributeError:
        raise UnclearError(f"The block has no part {named!r}.") from None
    return found


def called(block: nn.Module, named: Any) -> Callable[..., Any]:
    """What can be called by this name: a part, or a method of the block.

    Raises:
        UnclearError: if there is no such thing.
    """
    try:
        found = operator.attrgetter(named)(block)
    except AttributeError:
        found = None
    if callable(found):
        return cast(Callable[..., Any], found)
    raise UnclearError(f"The block has no {named!r} that could be called.")


class Norms(NamedTuple):
    """The norms of a block, and where they stand."""

    each: tuple[nn.Module, ...]  # one for each sublayer
    behind: tuple[nn.Module | None, ...]  # a second one, for what it says
    pre: bool  # the first before the sublayer, or behind the sum
    apart: bool = False  # the sublayers side by side


def norms(block: nn.Module, facts: Facts, n: int) -> Norms:
    """The norms of a block of n sublayers.

    Raises:
        UnclearError: if they are not told, and not as many can be found.
    """
    named, order = facts.get("norms"), facts["order"]
    found = [part(block, x) for x in named] if named else found_norms(block)
    wanted = {"sandwich": (2 * n,), "parallel": (1, n)}.get(order, (n,))
    if len(found) not in wanted:
        raise UnclearError(
            f"A block of this kind has {wanted[-1]} norms, but I find "
            f"{len(found)}. Say norms=[…], their names in the order of the "
            "sublayers, or order=…, where they stand; or formula='own', if "
            "it joins other parts, and I ask what holds of all blocks."
        )
    if order == "sandwich":
        return Norms(tuple(found[::2]), tuple(found[1::2]), True)
    each = tuple(found) if len(found) == n else (found[0],) * n
    return Norms(each, (None,) * n, order != "post", order == "parallel")


def found_norms(block: nn.Module) -> list[nn.Module]:
    """The norms of a block, but for those inside its attentions."""
    inside = tuple(f"{name}." for name in attentions(block))
    return [
        module
        for name, module in block.named_modules()
        if is_norm(module) and not name.startswith(inside)
    ]


def seen_order(block: nn.Module, n: int, orders: Sequence[str]) -> list[str]:
    """In which orders n sublayers can have as many norms as there are."""
    counts = {"parallel": 1, "sandwich": 2 * n}
    found = len(found_norms(block))
    fit = [order for order in orders if counts.get(order) == found]
    return fit or ["pre", "post"]


def finished(
    block: nn.Module,
    d_model: int,
    behind: Sequence[nn.Module | None],
    *sublayers: Callable[..., Tensor],
) -> tuple[Any, ...]:
    """Sublayers, each with what is done to what it says, if anything is.

    A norm behind it, or numbers by which it is multiplied.
    """
    known = scales(block, d_model, len(sublayers))
    return tuple(
        scaled(normed(sublayer, norm), scale)
        for sublayer, norm, scale in zip(sublayers, behind, known, strict=True)
    )


def normed(
    sublayer: Callable[..., Tensor], norm: nn.Module | None
) -> Callable[..., Tensor]:
    """A sublayer, and a norm of what it says if there is one."""
    if norm is None:
        return sublayer
    return lambda *given, **named: norm(sublayer(*given, **named))


def scaled(sublayer: Callable[..., Tensor], scale: Any) -> Any:
    """A sublayer, and what multiplies what it says if there is anything."""
    return sublayer if scale is None else Scaled(sublayer, scale)


def network(
    block: nn.Module,
    facts: Facts,
    d_model: int,
    norm: nn.Module,
    call: Callable[..., object],
    n: int,
) -> Callable[[Tensor], Tensor]:
    """The feed-forward network of a block, whose norm may stand in it.

    Args:
        block: in which it is.
        facts: what was told.
        d_model: how wide the block is.
        norm: that of the network.
        call: calls the block, with n texts.
        n: how many it takes: x, and perhaps a context.

    Raises:
        UnclearError: if it is not told and cannot be found.
    """
    if facts.get("feed_forward"):
        return first_of(called(block, facts["feed_forward"]))
    called_so = None if facts.get("flat_feed_forward") else by_name(block)
    if called_so is not None:
        return first_of(called_so)
    lying = flat_parts.network(block, facts, d_model, call, n)
    if lying is not None:
        return lying
    inside = wrapped.network(block, norm, d_model)
    if inside is not None:
        return inside
    raise UnclearError(
        "I cannot find the feed-forward network. Say feed_forward=…, its "
        "name in the block, or flat_feed_forward=(first, bend, last), or "
        "formula='own', if it has none, and I ask what holds of all blocks."
    )


def first_of(network: Callable[..., Any]) -> Callable[[Tensor], Tensor]:
    """The same, and of several things that it gives the first alone."""

    def first(x: Tensor) -> Tensor:
        made = network(x)
        return made[0] if isinstance(made, tuple) and made else made

    return first


def by_name(block: nn.Module) -> Callable[[Tensor], Tensor] | None:
    """The network, if it is called so; or two maps named as PyTorch's are.

    These count with the bend that PyTorch's layers hold beside them: without
    it, nothing in their names says how they are bent.
    """
    children = dict(block.named_children())
    for name, child in children.items():
        if name.lower() in NETWORKS:
            return child
    bend = getattr(block, "activation", None)
    if callable(bend) and {"linear1", "linear2"} <= children.keys():
        first, last = children["linear1"], children["linear2"]
        return lambda x: last(bend(first(x)))
    return None


def attentions(block: nn.Module) -> dict[str, nn.Module]:
    """The attentions of a block by their names.

    If none is called so, they are what is neither norm nor network; and if
    there is no such part, they lie further down.
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
    named = named or {n: x for n, x in large.items() if may_attend(n, x)}
    return named or wrapped.attentions(block)


def may_attend(name: str, child: nn.Module) -> bool:
    """Whether a part is no network by its name, and more than a chain."""
    own = not type(child).__module__.startswith("torch.nn")
    words = f"{name} {type(child).__name__}".lower()
    inner = " ".join(n for n, _ in child.named_modules()).lower()
    return (
        own and "att" not in inner and not any(word in words for word in FLAT)
    )


def width(norm: nn.Module, block: nn.Module) -> int:
    """How many features a norm of a block takes.

    Of one that has learnt a single number, it is as many as the first map.
    """
    for one in (norm, block):
        for parameter in one.parameters():
            if parameter.numel() > 1:
                return parameter.shape[-1]
    raise UnclearError("I cannot see how wide the block is.")


def callable_attention(
    module: nn.Module,
    call: Callable[..., object],
    facts: Facts,
    d_model: int,
    d_context: int | None = None,
) -> Callable[..., Tensor]:
    """An attention as a function of x, a context and a mask of ours.

    It is called as the block calls it, if that can be seen. PyTorch's own is
    called as everybody knows.
    """
    if isinstance(module, nn.MultiheadAttention):
        return partial(of_torch, module)
    across = d_context is not None
    seen = recorded(module, call, d_model, across, d_context)
    meaning = meaning_of(module, seen, facts["mask"], d_model, across)
    return played(module, seen, meaning)


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
