"""How layers of attention are called: by whatever names, in any layout."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.exercise import UnusableError
from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds import one_length
from selfattn.doctor.kinds.layer.constructing import (
    arguments,
    instance,
    is_rest,
)
from selfattn.doctor.kinds.layer.laying_out import arranged, read
from selfattn.doctor.kinds.layer.named_masks import by_what_was_told
from selfattn.doctor.kinds.layer.refilling import refilled
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.kinds.three_inputs import queries_keys_values
from selfattn.doctor.patient import Facts, handed, parameters

NAMES = {  # what others call the arguments
    "mask": (
        *("mask", "attn_mask", "attention_mask", "src_mask", "att_mask"),
        *("encoder_attention_mask", "context_mask", "memory_mask"),
        *("cross_attention_mask", "encoder_mask", "tgt_mask", "masks"),
        *("attn_bias", "visible", "allowed"),
    ),
    "padding": (
        *("key_padding_mask", "padding_mask", "src_key_padding_mask"),
        *("pad_mask", "key_mask", "keys_mask", "valid_mask"),
        "memory_key_padding_mask",
    ),
    "causal": ("causal", "use_causal", "causal_mask"),
    "context": (
        *("context", "memory", "kv", "x_kv", "y", "cross_states"),
        *("encoder_hidden_states", "key_value_states", "encoder_output"),
    ),
}
OF_PAIRS = ("attn_mask", "att_mask", "attention_mask")
HINT = "is_causal"
HIDING = ("mask", "padding")


def prepared(thing: Any, facts: Facts) -> nn.Module:
    """A copy of a module, refilled and ready for evaluation."""
    return refilled(instance(thing, facts))


def code(thing: Any, facts: Facts) -> tuple[str, ...]:
    """Code that makes it, and its name in that code at the end."""
    yours = "layer"
    if isinstance(thing, type):
        given = arguments(thing, facts).items()
        listed = ", ".join(f"{name}={value!r}" for name, value in given)
        yours = f"{thing.__name__}({listed})"
    return (
        "from selfattn.doctor import refilled",
        "# A copy, with numbers that show mistakes.",
        f"layer = refilled({yours})",
        "layer",
    )


def looked_up(
    forward: Callable[..., Any], told: Facts, found: Facts
) -> dict[str, Any]:
    """Its names for the arguments, and what else it must be given.

    Args:
        forward: what takes them.
        told: the facts that were told, with names that come before ours.
        found: names for x and the context, where a call told which they are.
    """
    listed = parameters(forward)
    names: dict[str, Any] = {
        ours: next((name for name in theirs if name in listed), None)
        for ours, theirs in NAMES.items()
    }
    names |= of_two_masks(listed)
    names["qkv"] = queries_keys_values(listed)
    names |= dict(found) | dict(told.get("names") or {})
    names |= left_for_x(forward, names, told)
    names |= as_three(names)
    if names["mask"] is None and "mask" not in (told.get("names") or {}):
        names |= by_what_was_told(forward, names, told)
    if names["causal"] is None and names["mask"] is None:
        # beside a mask it is but a hint of what that says, as in PyTorch's
        names["causal"] = HINT if HINT in listed else None
    check_rest(forward, names, told)
    return names


def as_three(names: Facts) -> dict[str, None]:
    """That queries and keys were told as x and context, which are three."""
    q, *others = names["qkv"] or (None,)
    both = names.get("x") == q and names["context"] in others
    return {"x": None, "context": None} if both else {}


def of_two_masks(listed: Sequence[str]) -> dict[str, str]:
    """Which hides keys of all, beside one that says which pairs may meet."""
    pairs = [name for name in OF_PAIRS if name in listed]
    others = [name for name in NAMES["padding"] if name in listed]
    if "mask" not in listed or not pairs or others:
        return {}
    return {"mask": pairs[0], "padding": "mask"}


def left_for_x(
    forward: Callable[..., Any], names: Facts, told: Facts
) -> dict[str, str]:
    """The name of x, if all else that it must be given was told.

    Who tells of what comes first says that x does not.
    """
    needed, known = needed_by(forward), known_by(names, told)
    left = [name for name in needed if name not in known]
    open_ = not (names.get("x") or names["qkv"])
    later = len(left) == 1 and needed[0] in known
    return {"x": left[0]} if open_ and later else {}


def needed_by(forward: Callable[..., Any]) -> list[str]:
    """The names of what must be given."""
    return [
        name
        for name, parameter in inspect.signature(forward).parameters.items()
        if parameter.default is parameter.empty and not is_rest(parameter)
    ]


def known_by(names: Facts, told: Facts) -> set[str]:
    """The names of arguments of which it is known what they are."""
    known = {*(told.get("call") or {}), *(names["qkv"] or ())}
    return known | {x for x in names.values() if isinstance(x, str)}


def check_rest(forward: Callable[..., Any], names: Facts, told: Facts) -> None:
    """Raise if an argument is needed of which nobody knows what it is."""
    known = known_by(names, told)
    for name in needed_by(forward)[0 if names["qkv"] else 1 :]:
        if name not in known:
            raise UnclearError(
                f"It needs an argument {name!r}. Say call={{{name!r}: …}} if "
                "it is always the same, or names={…: "
                f"{name!r}}} if it is a {' or '.join(NAMES)}."
            )


def adapt(
    thing: Any, facts: Facts, says: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Call a module on (batch, n, d_model), and masks that allow.

    Args:
        thing: the module.
        facts: how it is called.
        says: of the module and of what it is called with, what it should
            give: then this is called in its place.
    """
    names, by_type = facts["names"], {torch.float32: thing}
    musts = [must_be_told(thing, names[name]) for name in HIDING]

    def layer(
        x: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        padding: Tensor | None = None,
        causal: bool = False,
        whole: bool = False,
    ) -> Any:
        source = x if context is None else context
        if padding is None and musts[1]:
            padding = torch.ones(source.shape[:2]).bool()
        if mask is None and musts[0] and (padding is None or names["padding"]):
            mask = torch.ones(x.shape[-2], source.shape[-2]).bool()
        named = by_name(x, mask, padding, causal, facts)
        if x.dtype not in by_type:
            by_type[x.dtype] = copy_of(thing).to(x.dtype)
        layout = facts["layout"]
        given, more = arranged([x, context], names, layout)
        called = by_type[x.dtype]
        called = called if says is None else partial(says, called)
        output = handed(called, *given, **named, **more)
        return read(output, layout, whole, (x.shape[-2], source.shape[-2]))

    return one_length.told(layer, facts.get("length"))


def by_name(
    x: Tensor,
    mask: Tensor | None,
    padding: Tensor | None,
    causal: bool,
    facts: Facts,
) -> dict[str, Any]:
    """What else it is called with, besides what asks and what is read."""
    names, named = facts["names"], dict(facts.get("call") or {})
    if mask is not None:
        shaped = spread(mask, x.shape[0], facts["mask_axes"])
        named[names["mask"]] = as_meant(shaped, facts["mask"], x.dtype)
    if padding is not None:
        named |= as_padding(padding, x, facts, mask is not None)
    return named | ({names["causal"]: True} if causal else {})


def must_be_told(thing: nn.Module, name: str | None) -> bool:
    """Whether it cannot be called without its mask."""
    listed = inspect.signature(thing.forward).parameters
    one = listed.get(name or "")
    return one is not None and one.default is inspect.Parameter.empty


def spread(mask: Tensor, batch: int, axes: str) -> Tensor:
    """A mask (n_q, n_k), with axes in front, or one of keys alone.

    Raises:
        UnusableError: if it has no place for what is said of a query.
    """
    if axes == "NN":
        return mask
    full = mask.expand(batch, *mask.shape)
    if axes in ("BN", "B11N"):
        if not bool((full == full[:, :1]).all()):
            raise UnusableError("its mask is one for all queries")
        return full[:, 0] if axes == "BN" else full[:, None, :1]
    return full if axes == "BNN" else full[:, None]


def as_padding(
    padding: Tensor, x: Tensor, facts: Facts, masked: bool
) -> dict[str, Tensor]:
    """A padding mask (batch, n_k) as the argument that takes it.

    Raises:
        UnusableError: if it takes none, or none beside a mask.
    """
    if facts["names"]["padding"]:
        said = as_meant(padding, facts["padding"], x.dtype)
        return {facts["names"]["padding"]: said}
    if masked:
        raise UnusableError("one argument takes its mask and padding")
    axes = facts["mask_axes"]
    if axes == "NN":
        raise UnusableError("its mask is one for the whole batch")
    if axes == "BN":
        said = as_meant(padding, facts["mask"], x.dtype)
        return {facts["names"]["mask"]: said}
    row = padding[:, None, :] if axes == "BNN" else padding[:, None, None, :]
    if axes != "B11N":
        row = row.expand(*row.shape[:-2], x.shape[-2], -1)
    return {facts["names"]["mask"]: as_meant(row, facts["mask"], x.dtype)}
