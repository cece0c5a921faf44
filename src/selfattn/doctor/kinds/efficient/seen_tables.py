"""Which keys a mechanism sees, where nobody said: read off it, as a claim.

Who saves work by hiding keys has built that in. What he hides is seen by
which value moves which output; then only numbers are left to be asked. But
what no design is, such as a text that does not see itself, is not taken for
one.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.attention import untold_facts
from selfattn.doctor.kinds.attention.calling import adapt
from selfattn.doctor.kinds.attention.layouts import TURNED
from selfattn.doctor.kinds.efficient import feature_maps
from selfattn.doctor.kinds.efficient import untold_facts as of_kernels
from selfattn.doctor.kinds.efficient.calling import CLAIMS
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

OTHERS = ("causal", "grouped")
D = 11  # features, as in what is asked
FRONTS = {
    "BHND": (2, 3),
    "BNHD": (2, 3),
    "BND": (2,),
    "BHDN": (2, 3),
    "BDN": (2,),
}
N, LONG = 13, 37  # tokens; what is so in one text is so in a longer one
Call = Callable[..., Any]


def claims(thing: Any, facts: Facts) -> Iterator[Facts]:
    """What it may claim by what it hides, in each layout in which it hides."""
    if any(facts.get(name) is not None for name in (*CLAIMS, *OTHERS)):
        return
    if "causal" in (facts.get("names") or {}):
        return  # who has a flag for it hides nothing without
    for layout in dict.fromkeys((*FRONTS, facts.get("layout", "any"))):
        call = adapt(thing, {**facts, "layout": layout})
        front = FRONTS.get(layout, (2, 3))
        seen, more = (support(call, front, n) for n in (N, LONG))
        if seen is None or more is None or not is_meant(seen, more):
            continue
        made: Facts = {"layout": layout}
        if not seen.all():
            made = {**made, "square": True}
        if untold_facts.is_causal(seen):
            made = {**made, "causal": True}
        whole = torch.ones_like(seen)
        plain = seen.equal(whole.tril() if "causal" in made else whole)
        if plain:
            maps = feature_maps.seen(call, front, N)
            yield from ({**made, **one} for one in maps)
        if plain and of_kernels.is_of_pairs(thing, {**facts, **made}):
            yield {**made, "formula": "own"}
        elif not plain and layout not in TURNED:
            yield {**made, "table": kept(call, front)}
        elif plain and "causal" in made:
            yield made


def is_meant(seen: Tensor, longer: Tensor) -> bool:
    """Whether what is seen may be a design.

    Each token sees itself and others, and tokens that come behind them change
    nothing of what the first ones see of each other.
    """
    n = len(seen)
    others = bool((seen & ~torch.eye(n).bool()).any())
    return (
        others and bool(seen.diagonal().all()) and seen.equal(longer[:n, :n])
    )


def support(call: Call, front: tuple[int, ...], n: int) -> Tensor | None:
    """Which query (a row) gets something of which value, (n, n)."""
    q, k, v = (numbers(*front, n, D, seed=seed) for seed in range(3))
    before = trial_calls.outcome(call, q, k, torch.zeros_like(v))
    if not isinstance(before, Tensor) or before.shape != v.shape:
        return None
    pieces = []
    for first in range(0, n, D):
        values = torch.zeros_like(v)
        for j in range(first, min(first + D, n)):
            values[..., j, j - first] = 1.0
        said = trial_calls.outcome(call, q, k, values)
        if not isinstance(said, Tensor):
            return None
        pieces.append(said.flatten(0, -3)[0])
    weights = torch.cat(pieces, dim=-1)[:, :n]
    return weights.isfinite() & (weights != 0)


def kept(call: Call, front: tuple[int, ...]) -> Callable[[int, int], Tensor]:
    """What it hides, as a table of as many queries as keys."""

    @lru_cache(maxsize=32)
    def table(n_q: int, n_k: int) -> Tensor:
        seen = support(call, front, n_k)
        whole = torch.ones(n_k, n_k).bool() if seen is None else seen
        return whole[n_k - n_q :]

    return table
