"""How makers of padding masks are called, and what their masks say."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds.mask_meanings import OF_A_MAKER, as_ours
from selfattn.doctor.patient import Facts, parameters

PAD = 0


FACTS = {
    "mask": Fact("what the mask says", OF_A_MAKER),
    "axes": Fact(
        "the axes of the mask",
        {
            "B11N": "batch, heads, queries, keys",
            "B1N": "batch, queries, keys",
            "BN": "batch, keys",
        },
    ),
    "of": Fact(
        "what it is made of",
        {"lengths": "lengths and n", "tokens": "tokens, and the padding"},
    ),
    "pad": Fact(
        "the number that stands for padding; 0 when not said",
        saying=sayings.WHOLE,
    ),
    "arguments": Fact(
        "how many arguments it takes, 1 or 2", saying=sayings.ONE_OR_TWO
    ),
}


def read(thing: Any, told: Facts) -> Reading:
    """Whether it takes tokens or lengths, by the name of its first."""
    names = parameters(thing)
    if not names:
        return Reading()
    seen: dict[str, Any] = {"arguments": len(names)}
    words = ("tok", "seq", "ids", "src", "text", "input", "x", "batch")
    if any(names[0].lower().startswith(word) for word in words):
        seen["of"] = "tokens"
    if "len" in names[0].lower():
        seen["of"] = "lengths"
    return Reading(seen)


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with lengths or tokens; give its mask our axes and meaning."""

    def padding(lengths: Tensor, n: int) -> object:
        given: tuple[Any, ...] = (lengths, n)
        if facts["of"] == "tokens":
            pad = PAD if facts.get("pad") is None else facts["pad"]
            real = torch.arange(n) < lengths[:, None]
            tokens = torch.arange(n) % 5 + pad + 1
            given = (tokens.where(real, torch.tensor(pad)), pad)
        mask = thing(*given[: facts.get("arguments", 2)])
        if isinstance(mask, Tensor):
            if facts["axes"] == "BN" and mask.ndim == 2:
                mask = mask[:, None, None]
            if facts["axes"] == "B1N" and mask.ndim == 3:
                mask = mask[:, None]
        return as_ours(mask, facts["mask"])

    return padding
