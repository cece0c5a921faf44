"""Mechanisms that save work, by the mask or the kernel that they claim."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from torch import Tensor

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Fact, Kind
from selfattn.doctor.kinds import attention, efficient_probes
from selfattn.doctor.kinds.efficient_kernels import KERNELS
from selfattn.doctor.kinds.efficient_tables import TABLES
from selfattn.doctor.kinds.efficient_tiles import TILES
from selfattn.doctor.patient import Facts
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import elu_plus_one, linear_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.masks import window_mask

FACTS = {
    "layout": attention.FACTS["layout"],
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
    lacks = {n: why for n, why in seen["lacks"].items() if n == "causal"}
    if said.get("square"):
        lacks["length"] = "it needs as many"
    has = [need for need in seen["has"] if need == "causal"]
    fixed = {"mask": "keep", "mask_axes": "any"}
    return {**seen, **fixed, "lacks": lacks, "has": has}


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it as an attention function, with its own options."""
    options = dict(facts.get("call") or {})

    def with_options(*arguments: Tensor, **named: Any) -> object:
        return thing(*arguments, **options, **named)

    return attention.adapt(with_options, facts)


def exercise(thing: Any, facts: Facts) -> Exercise:
    """The reference for what it claims, and the mistakes that are near."""
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


def examples() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Healthy mechanisms, one for each sort of claim."""
    window = partial(sliding_window_attention, window=7)
    return {
        "exact": (flash_attention, {}),
        "under a mask": (window, {"window": 7}),
        "with a kernel": (linear_attention, {"kernel": elu_plus_one}),
    }


KIND = Kind(
    "efficient",
    asks="attention that saves work: exact, under a mask, or with a kernel",
    exercise=exercise,
    facts=FACTS,
    look=look,
    adapt=adapt,
)
