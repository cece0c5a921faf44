"""The parts of a block that lie in its forward, found as it is followed."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.kind import Inner, UnclearError
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import (
    calling,
    in_passing,
    passing_layers,
)
from selfattn.doctor.kinds.blocks.flow import followed
from selfattn.doctor.kinds.blocks.in_passing import Seen
from selfattn.doctor.kinds.blocks.passing_layers import with_context
from selfattn.doctor.patient import Facts

Adapt = Callable[..., Callable[..., Any]]
Widths = tuple[int, int | None]


def seen(block: nn.Module, call: Callable[..., Any], wide: Widths) -> Any:
    """The sublayers of a block of these widths; None if that is unclear."""
    texts = [d for d in wide if d is not None]
    flow = trial_calls.outcome(followed, block, call, *texts)
    return None if flow is None else in_passing.found(flow)


def of_block(
    block: nn.Module, call: Callable[..., Any], wide: Widths
) -> dict[str, Callable[..., Tensor]]:
    """What each of its sublayers says, by what it does.

    Raises:
        UnclearError: unless they are its attentions and one network.
    """
    wanted = ["own", "network"] if wide[1] is None else [*ROLES]
    listed = seen(block, call, wide) or []
    roles = [role(one) for one in listed]
    if sorted(roles) != sorted(wanted):
        raise UnclearError(
            "I cannot tell its sublayers from one another. Say which its "
            "parts are; or formula='own', and I ask what holds of all blocks."
        )
    return {
        name: partial(said, block, call, one, wide[1])
        for name, one in zip(roles, listed, strict=True)
    }


ROLES = ("own", "across", "network")


def role(one: Seen) -> str:
    """What a sublayer does."""
    if not one.attends:
        return "network"
    return "across" if one.across else "own"


def said(
    block: nn.Module,
    call: Callable[..., Any],
    one: Seen,
    d_context: int | None,
    x: Tensor,
    context: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """What a sublayer says of x, perhaps of a context, and of a mask.

    What hides later tokens in a decoder is in the block.
    """
    given = (x,) if context is None else (x, context)
    texts = with_context(d_context, *given)
    masks = {} if mask is None or not takes(one, d_context) else {"mask": mask}
    return in_passing.ran(block, call, one, texts, **masks)


def takes(one: Seen, d_context: int | None) -> bool:
    """Whether the block's mask is this sublayer's."""
    return one.attends and (one.across or d_context is None)


def attentions(
    block: nn.Module, facts: Facts, adapt: Adapt, wide: Widths
) -> Inner:
    """Those that lie in its forward, each as a layer and its kind."""
    call = partial(called, adapt, facts)
    return {
        f"its attention to {'the context' if one.across else 'itself'}": (
            layer_of(block, call, one, wide[1], handed(one, facts, wide)),
            "cross-attention" if one.across else "self-attention",
            told_of(one, facts, wide),
        )
        for one in attending(block, adapt(block, facts), wide)
    }


def called(adapt: Adapt, facts: Facts, block: nn.Module) -> Any:
    """What calls a block with x."""
    return adapt(block, facts)


def attending(
    block: nn.Module, call: Callable[..., Any], wide: Widths
) -> Iterator[Seen]:
    """The sublayers that attend: to itself, and to a context if it has one."""
    found = [one for one in seen(block, call, wide) or [] if one.attends]
    wanted = [False] if wide[1] is None else [False, True]
    if sorted(one.across for one in found) == wanted:
        yield from found


def told_of(one: Seen, facts: Facts, wide: Widths) -> Facts:
    """What is known of a sublayer that attends."""
    told = {**calling.of_attention(facts), "layout": "BND"}
    told["d_model"] = wide[0]
    mask = handed(one, facts, wide)
    if mask:
        told["mask_axes"] = "BN" if mask == "padding" else "NN"
        told |= {"mask": "keep", "names": {"mask": "mask", "padding": None}}
    else:
        told["takes"] = ()
    return told if one.across else {**told, **hides(facts, wide)}


def handed(one: Seen, facts: Facts, wide: Widths) -> str:
    """Which mask a block takes that is one of this sublayer's; or ""."""
    if not (takes(one, wide[1]) and facts.get("mask_name")):
        return ""
    return "padding" if facts.get("padding") else "mask"


def hides(facts: Facts, wide: Widths) -> Facts:
    """Whether it hides later tokens: who reads a context does."""
    causal = calling.hides_by_itself(facts)
    causal = True if causal is None and wide[1] is not None else causal
    return {} if causal is None else {"causal": causal}


LAYERS = {
    (False, False): passing_layers.Passing,
    (False, True): passing_layers.Masked,
    (True, False): passing_layers.Across,
    (True, True): passing_layers.AcrossMasked,
}


def layer_of(
    block: nn.Module, call: Any, one: Seen, d_context: int | None, mask: str
) -> nn.Module:
    """A sublayer as a layer."""
    made = LAYERS[one.across, bool(mask)]
    return made(block, call, one, d_context, mask)


def in_their_place(
    found: Inner,
    block: nn.Module,
    facts: Facts,
    adapt: Adapt,
    wide: Widths,
) -> Inner:
    """The attentions of a block, but for those that no layer is called like.

    These are asked as they lie in its forward, where they can be.
    """
    odd = [n for n, (part, kind, _) in found.items() if is_odd(part, kind)]
    if not odd:
        return found
    lying = {
        kind: (layer, kind, without_causal(told))
        for layer, kind, told in attentions(block, facts, adapt, wide).values()
    }
    return {
        name: lying.get(one[1], one) if name in odd else one
        for name, one in found.items()
    }


def that_is(
    one: tuple[Any, str, Facts], ready: nn.Module, parts: Inner
) -> str:
    """The name of the part of a block which a sublayer is; "" if it is none.

    It has learnt nothing but what that part has.
    """
    layer, kind, _ = one
    own = {id(weights) for weights in layer.seen.own}
    for name, (_, of, _) in parts.items():
        held = {id(x) for x in ready.get_submodule(name).parameters()}
        if of == kind and own and own <= held:
            return name
    return ""


def without_causal(told: Facts) -> Facts:
    """What is known of one that is handed what it hides: not what that is."""
    return {name: fact for name, fact in told.items() if name != "causal"}


def is_odd(part: nn.Module, kind: str) -> bool:
    """Whether it must be given more than tokens, and perhaps a context."""
    if isinstance(part, nn.MultiheadAttention):
        return False
    needed = [
        one.name
        for one in trial_calls.listed(part)
        if one.default is one.empty and "mask" not in one.name
    ]
    if "".join(name[:1] for name in needed[:3]) == "qkv":
        return False
    return len(needed) > 1 + (kind == "cross-attention")
