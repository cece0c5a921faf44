"""Strictly typed, in a registry: a bias for each key, and values first."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

import torch
from torch import Tensor


class Attend(Protocol):
    """What all that is registered can be called with."""

    def __call__(
        self,
        value: Tensor,
        key: Tensor,
        query: Tensor,
        key_bias: Tensor | None = None,
    ) -> Tensor: ...


Fn = TypeVar("Fn", bound=Callable[..., Tensor])
ATTENTIONS: Final[dict[str, Attend]] = {}


def register(name: str) -> Callable[[Fn], Fn]:
    def keep(function: Fn) -> Fn:
        if name in ATTENTIONS:
            raise KeyError(f"{name} is taken")
        ATTENTIONS[name] = function
        return function

    return keep


@register("key_biased")
def key_biased(
    value: Tensor,
    key: Tensor,
    query: Tensor,
    key_bias: Tensor | None = None,
    *,
    scale: float | None = None,
    logit_cap: float | None = None,
    temperature: float = 1.0,
    training: bool = False,
    dropout_p: float = 0.0,
) -> Tensor:
    """[batch, heads, tokens, features]; the bias is [batch, keys]."""
    width: int = query.size(-1)
    factor: float = 1.0 / math.sqrt(width) if scale is None else scale
    logits: Tensor = (query * (factor / temperature)) @ key.mT
    if logit_cap is not None:
        logits = logit_cap * torch.tanh(logits / logit_cap)
    if key_bias is not None:
        logits = logits + key_bias[:, None, None, :]
    shares: Tensor = logits.softmax(dim=-1)
    shares = torch.dropout(shares, dropout_p, training)
    return shares @ value


PATIENT = ATTENTIONS["key_biased"]
FACTS = {
    "layout": "BHND",
    "causal": False,
    "mask": "add",
    "mask_axes": "BN",
    "empty_row": "nan",
    "names": {
        "q": "query",
        "k": "key",
        "v": "value",
        "mask": "key_bias",
    },
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "query": "b h n d",
    "key": "b h m d",
    "value": "b h m e",
    "key_bias?": "add b m",
}
