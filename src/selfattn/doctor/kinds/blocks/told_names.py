"""What a block calls its texts and its masks, as it says or was told."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, UnclearError
from selfattn.doctor.kinds.layer.named_masks import NO_MASK
from selfattn.doctor.patient import Facts, parameters

TEXTS, MASKS = ("x", "context"), ("mask", "padding")


def fact(*texts: str) -> Fact:
    """That one may tell the names of these texts, and of its masks."""
    ours = (*texts, *MASKS)
    meaning = f"its names for {', '.join(ours)}"
    return Fact(meaning, saying=sayings.names_for(*ours))


def of(told: Facts, *ours: str) -> dict[str, str]:
    """Its names for these, of those that were told."""
    names = told.get("names") or {}
    return {name: names[name] for name in ours if names.get(name)}


def check(forward: Callable[..., Any], told: Facts) -> None:
    """Raise if it takes nothing under a name that was told.

    Raises:
        UnclearError: which says what it takes.
    """
    listed = inspect.signature(forward).parameters
    if any(p.kind is p.VAR_KEYWORD for p in listed.values()):
        return
    for ours, theirs in of(told, *TEXTS, *MASKS).items():
        if theirs not in listed:
            raise UnclearError(
                f"names says that {ours} is its {theirs!r}, and it takes "
                f"{', '.join(listed)}. Say one of these."
            )


def by_them(
    texts: Sequence[Tensor], told: Facts
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """The texts that go by their place, and those whose names were told."""
    names = of(told, *TEXTS)
    both = dict(zip(TEXTS, texts, strict=False))
    placed = [x for ours, x in both.items() if ours not in names]
    named = {names[ours]: x for ours, x in both.items() if ours in names}
    return placed, named


def masks_of(
    thing: nn.Module, known: Sequence[str], told: Facts, n_texts: int
) -> list[str]:
    """Its arguments that are called like masks, behind so many texts.

    Of one of its own, or that was said to hide padding, any that says so is.
    """
    listed = parameters(thing.forward)
    names = [*of(told, *MASKS).values()]
    names += [n for n in known if n in listed and n not in names]
    if told.get("formula") == "own" or told.get("padding"):
        names += [n for n in listed[n_texts:] if "mask" in n or "pad" in n]
    if names or not {"mask", "padding"} & told.keys():
        return names
    besides = told.get("besides") or ()  # who tells what it says has one
    others = [n for n in listed[n_texts:] if n not in besides]
    if len(others) > 1:
        others = [n for n in others if not any(w in n for w in NO_MASK)]
    if len(others) != 1:  # what must be told may be a text, or none at all
        others = [n for n in others if not needs(thing, n)]
    return others if len(others) == 1 else []


def apart(names: Sequence[str], told: Facts) -> dict[str, str]:
    """The name of its mask; and that of another one, which is for padding.

    Of two it is the one that says so, where what either means was told; and
    if only what padding says was told, it is the one that is handed.
    """
    named = of(told, *MASKS)
    pads = [n for n in names if "pad" in n]
    pads = [named["padding"]] if "padding" in named else pads
    others = [n for n in names if n not in pads]
    if pads and others and {"mask", "padding"} <= told.keys():
        return {"mask_name": others[0], "padding_name": pads[0]}
    for_padding = pads if told.get("padding") else []
    return {"mask_name": (for_padding or names)[0]} if names else {}


def lacking(
    names: Sequence[str], told: Facts, both: bool, own_mask: bool
) -> dict[str, str]:
    """What it cannot be asked: its mask is for padding, or for all else; if
    it has not ``both``.
    """
    # What is said of a mask may be told of that for later tokens.
    heard = own_mask and "mask" in told
    if not names:
        unseen = {"mask", "padding"} & told.keys()
        why = "I do not see under which name" if unseen else "it takes none"
        return {"mask": "" if heard else why, "padding": why}
    if not told.get("padding"):
        return {"padding": "nobody said that its mask is for padding"}
    why = "" if heard else "its mask is for padding"
    return {} if both else {"mask": why}


def needs(thing: Any, name: Any) -> bool:
    """Whether an argument must be given."""
    listed = inspect.signature(thing.forward).parameters
    return name in listed and listed[name].default is inspect.Parameter.empty
