"""How functions of attention are called: by whatever names, in any layout."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts, parameters

WORDS = {  # what others call the arguments, the most common first
    "mask": ("mask", "attn_mask", "attention_mask", "key_mask", "att_mask"),
    "causal": ("causal", "is_causal"),
}


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
