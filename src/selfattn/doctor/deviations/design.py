"""The steps of attention, each of which can be exchanged for another."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from itertools import product as products
from typing import Any, NamedTuple

import torch
from torch import Tensor

from selfattn.doctor.exercise import Mistake, described
from selfattn.masks import causal_mask


class Width(NamedTuple):
    """What a scale may be made of, rightly or wrongly."""

    d: int  # features of a query
    d_v: int
    n_q: int
    n_k: int
    heads: int = 1
    d_model: int = 0


@dataclass(frozen=True)
class Design:
    """How each step is done; `attend` takes them in this order.

    Tensors are (…, n, features); ``allowed`` is True where one may look, and
    None where nothing is hidden.
    """

    enter: Callable[..., tuple[Tensor, Tensor, Tensor]]  # of q, k, v
    compare: Callable[[Tensor, Tensor], Tensor]  # to scores
    scale: Callable[[Width], float]
    bend: Callable[[Tensor], Tensor]  # of scaled scores
    allow: Callable[[Tensor | None], Tensor | None]  # of the mask
    past: Callable[[int, int], Tensor | None]  # for the causal mask
    always: bool  # causal without a flag
    hide: Callable[[Tensor, Tensor | None], Tensor]  # of scores
    weigh: Callable[[Tensor], Tensor]  # scores to weights
    after: Callable[[Tensor, Tensor | None], Tensor]  # of weights
    mix: Callable[[Tensor, Tensor], Tensor]  # of weights and values
    leave: Callable[[Tensor, Width], Tensor]  # of the output


def as_they_are(q: Tensor, k: Tensor, v: Tensor) -> Any:
    """Queries, keys and values."""
    return q, k, v


def product(q: Tensor, k: Tensor) -> Tensor:
    """Every query with every key."""
    return q @ k.mT


def root(width: Width) -> float:
    """One over the root of the width of a query."""
    return 1 / math.sqrt(width.d)


def unchanged(x: Any, *others: Any) -> Any:
    """What it was given, first."""
    return x


def without(fill: float = -math.inf) -> Callable[..., Tensor]:
    """Hide scores by putting a number where they are forbidden."""

    def hide(scores: Tensor, allowed: Tensor | None) -> Tensor:
        return (
            scores if allowed is None else scores.masked_fill(~allowed, fill)
        )

    return hide


def softmax(scores: Tensor) -> Tensor:
    """Shares of one among the keys; zeros where all is forbidden."""
    weights = scores.softmax(dim=-1)
    return weights.masked_fill((scores == -math.inf).all(-1, True), 0.0)


def average(weights: Tensor, v: Tensor) -> Tensor:
    """The values, by their weights."""
    return weights @ v


USUAL = Design(
    enter=as_they_are,
    compare=product,
    scale=root,
    bend=unchanged,
    allow=unchanged,
    past=causal_mask,
    always=False,
    hide=without(),
    weigh=softmax,
    after=unchanged,
    mix=average,
    leave=unchanged,
)


def attend(
    design: Design,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    heads: int = 0,
    d_model: int = 0,
) -> Tensor:
    """Attention by a design, step by step, in float32 at least."""
    own = q.dtype
    wide = torch.promote_types(own, torch.float32)
    q, k, v = design.enter(q.to(wide), k.to(wide), v.to(wide))
    width = width_of(q, k, v, heads, d_model)
    scores = design.bend(design.compare(q, k) * design.scale(width))
    allowed = None if mask is None else design.allow(mask)
    if causal or design.always:
        past = design.past(width.n_q, width.n_k)
        if past is not None:
            allowed = past if allowed is None else allowed & past
    weights = design.weigh(design.hide(scores, allowed))
    output = design.mix(design.after(weights, allowed), v)
    return design.leave(output, width).to(own)


def width_of(
    q: Tensor, k: Tensor, v: Tensor, heads: int, d_model: int
) -> Width:
    """What a scale may be made of; heads are those of q if none are told."""
    many = heads or (q.shape[-3] if q.ndim > 3 else 1)
    d, d_v = q.shape[-1], v.shape[-1]
    n_q, n_k = q.shape[-2], k.shape[-2]
    return Width(d, d_v, n_q, n_k, many, d_model or many * d)


@dataclass(frozen=True, eq=False)
class Deviation:
    """Some steps that are done otherwise, and what to call that.

    Args:
        steps: those of a design, by their names.
        known: the mistake that it is; None where it is none.
    """

    steps: dict[str, Any]
    known: Mistake | Callable[..., object] | None

    def of(self, design: Any) -> Any:
        """A design with these steps."""
        return replace(design, **self.steps)


def singles(
    deviations: Iterable[Deviation],
    answer: Callable[[Callable[[Any], Any]], Callable[..., Any]],
) -> tuple[Mistake, ...]:
    """Each deviation as a mistake.

    Args:
        deviations: which.
        answer: makes a wrong answer, of a function from design to design.
    """
    return tuple(
        replace(described(one.known), answer=answer(one.of))
        for one in deviations
        if one.known is not None
    )


def pairs(
    deviations: Iterable[Deviation],
    answer: Callable[[Callable[[Any], Any]], Callable[..., Any]],
    harmless: Iterable[Deviation] = (),
    every: bool = False,
) -> Iterator[Mistake]:
    """Two of them at once, if they are of different steps.

    First each beside what is no mistake; then two that have not one name.
    Of several that have one name, but the first, only the first: the others
    are rarer, and there are too many pairs; unless ``every`` one is asked.
    """
    listed = list(deviations)
    first = {name_of(one): one for one in reversed(listed)}
    common = [one for one in listed if every or one in first.values()]
    for one, other in (*products(listed, harmless), *combinations(common, 2)):
        if one.steps.keys() & other.steps.keys():
            continue
        made = answer(both(one, other))
        known = replace(described(one.known), answer=made)  # type: ignore
        if other.known is not None:
            known = replace(known, also=described(other.known))
        yield known


def name_of(one: Deviation) -> str:
    """What a deviation is called."""
    return described(one.known).name if one.known is not None else ""


def both(one: Deviation, other: Deviation) -> Callable[[Any], Any]:
    """A design with the steps of both."""
    return lambda design: other.of(one.of(design))
