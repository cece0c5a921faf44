"""How functions of attention are called: by whatever names, in any layout."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.kind import Fact, Reading, UnclearError
from selfattn.doctor.kinds.mask_meanings import MEANINGS, as_meant
from selfattn.doctor.patient import Facts, parameters

WORDS = {  # what others call the arguments, the most common first
    "mask": ("mask", "attn_mask", "attention_mask", "key_mask", "att_mask"),
    "causal": ("causal", "is_causal"),
}


FACTS = {
    "layout": Fact(
        "the axes of q, k and v",
        {
            "any": "any axes, tokens, features",
            "BHND": "batch, heads, tokens, features",
            "BNHD": "batch, tokens, heads, features",
            "BND": "batch, tokens, features",
        },
    ),
    "mask": Fact(
        "what a mask says",
        MEANINGS,
        need="mask",
    ),
    "mask_axes": Fact(
        "which axes a mask has",
        {
            "any": "any that broadcast to the scores",
            "all": "all those of the scores",
        },
        need="mask",
    ),
    "names": Fact("its names for q, k, v, mask and causal, as a dict"),
    "empty_row": Fact(
        "what a query gets that may see nothing",
        {
            "zeros": "zeros",
            "nan": "NaN",
            "average": "the average of all values",
            "everything": "what it would get without a mask",
        },
        tried=False,
    ),
    "alignment": Fact(
        "the key on which, if causal, the last or first query sits",
        {"last": "the last on the last", "first": "the first on the first"},
        tried=False,
    ),
}


def read(thing: Any, told: Facts) -> Reading:
    """The names of its arguments, and what it has none for."""
    if not callable(thing):
        raise UnclearError("A function is asked for: hand over itself.")
    names = argument_names(thing) | dict(told.get("names") or {})
    flags = {"mask", "causal"} & names.keys()
    wanted = {"mask": {"mask"}, "causal": {"causal"}}
    wanted["both"] = {"mask", "causal"}
    lacks = {
        need: "it has no argument for it"
        for need, flags_of_it in wanted.items()
        if not flags_of_it <= flags
    }
    has = tuple(need for need in ("mask", "causal") if need in names)
    seen = Reading({"names": names}, lacks=lacks, has=has)
    if "mask" in lacks:
        return seen.with_facts(mask="keep", mask_axes="any")
    return seen


def argument_names(thing: Any) -> dict[str, str | None]:
    """Ours → theirs; None for an argument that is known by its place."""
    listed = parameters(thing)
    names: dict[str, str | None] = {"q": None, "k": None, "v": None}
    first = {name.lstrip("_")[:1].lower(): name for name in listed[2::-1]}
    if sorted(first) == ["k", "q", "v"]:  # in whatever order
        names |= first
    for ours, theirs in WORDS.items():
        found = [name for name in theirs if name in listed]
        if found:
            names[ours] = found[0]
    return names


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with (…, n, d), a mask that is True where one may look."""

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
    ) -> object:
        layout, names = facts["layout"], facts["names"]
        front = q.shape[:-2]
        given = {
            n: laid_out(x, layout) for n, x in (("q", q), ("k", k), ("v", v))
        }
        if mask is not None:
            if facts["mask_axes"] == "all" or layout == "BND":
                shape = (*front, q.shape[-2], k.shape[-2])
                mask = mask.expand(shape)
            if layout == "BND" and mask.ndim != 3:
                mask = mask.reshape(-1, *mask.shape[-2:])
            given["mask"] = as_meant(mask, facts["mask"], q.dtype)
        if causal:
            given["causal"] = True
        by_name = {names[n]: x for n, x in given.items() if names[n]}
        in_order = [x for n, x in given.items() if not names[n]]
        return laid_back(thing(*in_order, **by_name), layout, front)

    return attend


def laid_out(x: Tensor, layout: str) -> Tensor:
    """A tensor (…, n, d) in another layout."""
    if layout == "any":
        return x
    if layout == "BND":
        return x.reshape(-1, *x.shape[-2:]) if x.ndim != 3 else x
    four = x[(None,) * (4 - x.ndim)]
    return four.transpose(1, 2) if layout == "BNHD" else four


def laid_back(value: Any, layout: str, front: torch.Size) -> object:
    """An output as (…, n, d) again; of an output with weights, the output."""
    if isinstance(value, tuple) and 1 < len(value) < 4:
        value = value[0]
    if layout == "any" or not isinstance(value, Tensor) or value.ndim < 3:
        return value
    if layout == "BNHD" and value.ndim == 4:
        value = value.transpose(1, 2)
    try:
        return value.reshape(*front, *value.shape[-2:])
    except RuntimeError:
        return value  # of a wrong size, which shall be seen
