"""What a function of which nothing was told plainly does on purpose.

Who has no flag for it and hides all later keys, or all that are far, built
that in; and so did who takes off the more, the farther away a key is. Then
its numbers alone are asked. What is hidden in any other way is no claim: a
mask that is one place off looks like one.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.attention import untold_facts
from selfattn.doctor.kinds.attention.untold_facts import (
    OF_SIGHT,
    N,
    is_causal,
    of_axes,
    of_sight,
    sight,
)
from selfattn.doctor.patient import Facts

LAYOUTS = ("BHND", "BNHD", "BND")
NEAR = 1e-4
Bias = Callable[[int, int, int], Tensor]


def claims(thing: Any, facts: Facts) -> Iterator[Facts]:
    """What it may claim, in each layout in which a token sees others."""
    if any(facts.get(name) is not None for name in (*OF_SIGHT, "kernel")):
        return
    if (scale := scale_held(thing, facts)) is not None:
        yield {"scale": scale}
    for layout in dict.fromkeys((*LAYOUTS, facts.get("layout", "any"))):
        known = {**facts, "layout": layout}
        if (cap := untold_facts.cap_of(thing, known)) is not None:
            yield {"cap": cap, "layout": layout}
        seen = sight(thing, known)
        if seen is None or not (seen & ~torch.eye(N).bool()).any():
            continue
        for more in (*of_sight(thing, known), *of_slopes(thing, known)):
            yield {**more, "layout": layout}


def scale_held(thing: Any, facts: Facts) -> float | None:
    """Its scale, if that is a number that it holds, or one over such."""
    if not isinstance(thing, nn.Module) or facts.get("scale") is not None:
        return None
    held = [x for x in vars(thing).values() if isinstance(x, float)]
    for layout in dict.fromkeys((facts.get("layout", "any"), *LAYOUTS)):
        seen = untold_facts.scale_of(thing, {**facts, "layout": layout})
        for x in (y for one in held if one for y in (one, 1 / one)):
            if seen is not None and math.isclose(seen, x, rel_tol=NEAR):
                return x
    return None


def perhaps(thing: Any, facts: Facts) -> Iterator[Facts]:
    """What may be meant of it, if one fact was left out."""
    yield from untold_facts.perhaps(thing, facts)
    yield from of_slopes(thing, facts)


def of_slopes(thing: Any, facts: Facts) -> Iterator[Facts]:
    """What it takes off by the distance, if it does, and whom it sees."""
    if facts.get("bias") is not None:
        return
    bias = bias_of(thing, facts)
    if bias is None:
        return
    seen = sight(thing, facts)
    flag = "causal" in (facts.get("names") or {})
    told = facts.get("causal") or flag
    always = seen is not None and is_causal(seen) and not told
    yield {"bias": bias, **({"causal": True} if always else {})}


def bias_of(thing: Any, facts: Facts) -> Bias | None:
    """Minus a slope for each head times the distance, if that is added.

    Seen by the weights of queries and keys that are zero.
    """

    def slopes(heads: int) -> Tensor | None:
        for call, *_ in of_axes(thing, facts, 3):
            exact = slopes_of(call, heads, torch.float64)
            return slopes_of(call, heads) if exact is None else exact
        return None

    if (few := slopes(3)) is None or bool((few.abs() < NEAR).all()):
        return None

    def bias(n_heads: int, n_q: int, n_k: int) -> Tensor:
        made = slopes(n_heads)
        found = torch.zeros(n_heads) if made is None else made
        i = torch.arange(n_k - n_q, n_k)[:, None]
        far = (i - torch.arange(n_k)).abs()
        return -found[:, None, None] * far

    return bias


def slopes_of(
    call: Callable[..., Any], heads: int, dtype: torch.dtype = torch.float32
) -> Tensor | None:
    """What each head takes off for a step, if it is so for all steps."""
    zeros = torch.zeros(1, heads, N, N, dtype=dtype)
    said = trial_calls.outcome(call, zeros, zeros, zeros + torch.eye(N))
    if not isinstance(said, Tensor) or said.shape != zeros.shape:
        return None
    last = said[0, :, -1].double().log()  # of the last query, who sees all
    steps = last.diff(dim=-1)
    even = torch.allclose(steps, steps[:, :1].expand_as(steps), atol=NEAR)
    grows = bool(steps.isfinite().all() and (steps > -NEAR).all())
    return steps.mean(dim=-1) if even and grows else None
