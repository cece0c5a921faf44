"""Mechanisms that save work, by the mask or the kernel that they claim."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from torch import Tensor

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Examples, Fact, Kind
from selfattn.doctor.kinds.attention import calling as calls
from selfattn.doctor.kinds.attention import kind as attention
from selfattn.doctor.kinds.efficient import probes as efficient_probes
from selfattn.doctor.kinds.efficient import properties as efficient_properties
from selfattn.doctor.kinds.efficient.mistakes.kernels import KERNELS
from selfattn.doctor.kinds.efficient.mistakes.tables import TABLES
from selfattn.doctor.kinds.efficient.mistakes.tiles import TILES
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts, parameters
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import elu_plus_one, linear_attention
from selfattn.efficient.performer import performer_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.masks import window_mask

PADDING = ("key_padding_mask", "padding_mask", "kv_mask", "key_mask")
FACTS = {
    "layout": attention.FACTS["layout"],
    "formula": Fact(
        "what it computes",
        {
            "claimed": "softmax, or under the mask or with the kernel claimed",
            "own": "weights of its own, of which only properties are asked",
        },
        tried=False,
    ),
    "causal": Fact(
        "whether, with a formula of its own, it is causal without a flag",
        {False: "it needs the flag", True: "it hides later keys anyway"},
        tried=False,
    ),
    "padding": Fact(
        "what a mask for padding, (batch, n_k), says",
        {"keep": "True allows", "block": "True forbids"},
        of="padding",
    ),
    "window": Fact("how many keys to each side it sees, its own counted"),
    "table": Fact("the mask it claims: table(n_q, n_k), True where it looks"),
    "kernel": Fact("the feature map it claims, with a kernel for softmax"),
    "square": Fact("whether it needs as many queries as keys"),
    "names": attention.FACTS["names"],
    "call": Fact("what else it is to be called with, as a dict"),
    "alignment": attention.FACTS["alignment"],
}


def look(thing: Any, said: Facts) -> dict[str, Any]:
    """The names of its arguments, and whether it can be causal."""
    seen = attention.look(thing, said)
    names = seen["names"]
    told = [name for name in PADDING if name in parameters(thing)]
    names.setdefault("padding", told[0] if told else None)
    lacks = {n: why for n, why in seen["lacks"].items() if n == "causal"}
    if said.get("square"):
        lacks["length"] = "it needs as many"
    fixed = {"mask": "keep", "mask_axes": "any"}
    if names["padding"] is None or said.get("formula") != "own":
        lacks["padding"] = "it has no argument for it"
        fixed["padding"] = "keep"
    if said.get("causal"):
        lacks["causal"] = "it is causal anyway"
    has = [n for n in ("causal", "padding") if n not in lacks]
    return {**seen, **fixed, "lacks": lacks, "has": has}


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it as an attention function, with its own options."""

    def mechanism(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        causal: bool = False,
        padding: Tensor | None = None,
    ) -> object:
        options = dict(facts.get("call") or {})
        if padding is not None:
            if facts["layout"] == "BND":  # heads are a part of the batch
                padding = padding.repeat_interleave(q[0, ..., 0, 0].numel(), 0)
            meant = as_meant(padding, facts["padding"], q.dtype)
            options[facts["names"]["padding"]] = meant

        def with_options(*arguments: Tensor, **named: Any) -> object:
            return thing(*arguments, **options, **named)

        return calls.adapt(with_options, facts)(q, k, v, causal=causal)

    return mechanism


def exercise(thing: Any, facts: Facts) -> Exercise:
    """The reference for what it claims, and the mistakes that are near."""
    if facts.get("formula") == "own":
        return efficient_properties.exercise(bool(facts.get("causal")))
    window, table = facts.get("window"), facts.get("table")
    if facts.get("kernel") is not None:
        return efficient_probes.claimed(KERNELS, facts["kernel"])
    if window is not None:
        return efficient_probes.claimed(TABLES, window_of(window))
    return efficient_probes.claimed(TABLES if table else TILES, table)


@lru_cache(maxsize=32)  # one object, so that its reference is one, too
def window_of(window: int) -> Callable[[int, int], Tensor]:
    """The table of a window."""
    return lambda n_q, n_k: window_mask(n_q, n_k, window)


def examples() -> Examples:
    """Healthy mechanisms, one for each sort of claim."""
    window = partial(sliding_window_attention, window=7)
    return {
        "exact": (flash_attention, {}),
        "under a mask": (window, {"window": 7}),
        "with a kernel": (linear_attention, {"kernel": elu_plus_one}),
        "of its own": (performer_attention, {"formula": "own"}),
        "of its own, causal": (
            partial(performer_attention, causal=True),
            {"formula": "own", "causal": True},
        ),
    }


KIND = Kind(
    "efficient",
    asks="attention that saves work: exact, under a mask, or with a kernel",
    exercise=exercise,
    facts=FACTS,
    look=look,
    adapt=adapt,
    examples=examples,
)
