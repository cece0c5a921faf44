"""What the attention in a block does, by the steps that it takes.

Whatever a block is made of, where there is a softmax it is seen what it is
taken of and what becomes of it: by what the products of queries and keys are
multiplied, and along which axis the weights sum to one. What is unknown on
the way, such as a norm or a learnt number, leaves that open.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations import scores
from selfattn.doctor.exercise import name_of
from selfattn.doctor.exercises.dot_product import weights as tables
from selfattn.doctor.kinds.blocks.sums import Said, Sum, below
from selfattn.doctor.patient import Facts

SOFTMAX = "_softmax"
PRODUCTS = ("bmm", "mm")
FUSED = "_scaled_dot_product"
# What chooses among numbers, or hides some, and multiplies none.
PASSES = {
    *("masked_fill", "where", "split", "split_with_sizes", "slice", "select"),
    *("unbind", "expand", "repeat", "index", "index_select", "cat", "stack"),
    *("unsafe_split", "chunk", "clone", "_to_copy", "maximum", "tril"),
}
CLOSE = 1e-3
WHATEVER_IS_MEANT = {
    name_of(tables.multiplied_by_the_root),
    name_of(scores.the_scale_is_applied_twice),
}
# Whose first weights are drawn the smaller needs no scale.
MEANT = {name_of(tables.no_scale): "scale=1.0"}
OVER_QUERIES = name_of(tables.softmax_over_queries)
OVER_HEADS = name_of(scores.softmax_over_heads)
KNOWN = (
    tables.no_scale,
    tables.divided_by_d,
    tables.multiplied_by_the_root,
    tables.scaled_by_the_number_of_keys,
    tables.softmax_over_queries,
    scores.softmax_over_heads,
    scores.scaled_by_the_width_of_the_model,
    scores.the_scale_is_applied_twice,
)


def inner(word: str, given: list[Tensor]) -> int:
    """Over how many numbers each product of an operation is a sum."""
    if word in PRODUCTS or word.startswith(FUSED):
        return given[0].shape[-1]
    return 0


def times(word: str, kwargs: Any, given: list[Tensor]) -> float:
    """What an operation multiplies its products by itself."""
    if not word.startswith(FUSED):
        return 1.0
    scale = kwargs.get("scale")
    return float(given[0].shape[-1] ** -0.5 if scale is None else scale)


def averaged(
    word: str, args: Any, sum_of: Callable[[Any], Sum]
) -> Iterator[str]:
    """How weights are used that a product averages by; "" if rightly."""
    if word not in PRODUCTS:
        return
    for table, axis in zip(args[:2], (-1, -2), strict=True):
        value = sum_of(table)
        made = [(one.word, n) for one, n in value.terms.items()]
        if made != [(SOFTMAX, 1.0)] or value.factors:
            continue
        if sums_to_one(table, axis):
            yield ""
        else:
            over = sums_to_one(table, -3 - axis)
            yield OVER_QUERIES if over else OVER_HEADS


def sums_to_one(table: Tensor, axis: int) -> bool:
    """Whether weights sum to one along an axis; so it is if some are NaN."""
    total = table.sum(axis)
    ones = torch.isclose(total, torch.ones_like(total), atol=CLOSE)
    return bool((ones | ~total.isfinite()).all())


def misscaled(output: Sum, width: int, n_keys: int, facts: Facts) -> list[str]:
    """What is wrong with the numbers that scores are multiplied by.

    Of one of which nobody said that it is so on purpose, what some mean is
    no mistake.
    """
    found: list[str] = []
    for value in below(output):
        for said in value.terms:
            name = name_for(said, width, n_keys, facts)
            found += [name] if name else []
    if "how" in facts:
        found = [name for name in found if name in WHATEVER_IS_MEANT]
    return found


def are_known(output: Sum) -> bool:
    """Whether of each softmax in a block it is known what it is taken of."""
    attends = [
        said
        for value in below(output)
        for said in value.terms
        if said.word == SOFTMAX or said.word.startswith(FUSED)
    ]
    return bool(attends) and None not in map(pieces, attends)


def name_for(said: Said, width: int, n_keys: int, facts: Facts) -> str:
    """The name of a scale that a softmax is taken by; "" if it may be."""
    known = pieces(said)
    if known is None:
        return ""
    d, each = known
    total = math.prod(each)
    told: Any = facts.get("scale")
    if d < 2 or like(total, told if told else d**-0.5):
        return ""
    twice = len([one for one in each if not like(one, 1.0)]) > 1
    by_d = scores.the_scale_is_applied_twice if twice else tables.divided_by_d
    others: dict[Any, float] = {
        tables.no_scale: 1.0,
        by_d: 1 / d,
        tables.multiplied_by_the_root: d**0.5,
        scores.scaled_by_the_width_of_the_model: width**-0.5,
        tables.scaled_by_the_number_of_keys: n_keys**-0.5,
    }
    fit = [name_of(one) for one, scale in others.items() if like(total, scale)]
    return fit[0] if fit else ""


def like(one: float, other: float) -> bool:
    """Whether two numbers are one, but for rounding."""
    return math.isclose(one, other, rel_tol=CLOSE)


def pieces(said: Said) -> tuple[int, tuple[float, ...]] | None:
    """How wide keys are, and what multiplies their products, step by step.

    None of what is no softmax of such products, or if that is unclear.
    """
    behind = 1.0
    if said.word.startswith(FUSED):
        product, behind = said, said.times
    elif said.word == SOFTMAX:
        made = sole(said.reads[0], PRODUCTS)
        if made is None:
            return None
        product, behind = made
    else:
        return None
    sides = [sole(read) for read in product.reads[:2]]
    if not product.inner or len(sides) < 2 or None in sides:
        return None
    return product.inner, (behind, *(one[1] for one in sides if one))


def sole(value: Sum, words: tuple[str, ...] = ()) -> tuple[Said, float] | None:
    """The map that numbers come from, and what multiplies them since.

    Of several, all must be multiplied alike; None if any is unknown.
    """
    found = [*origins(value, 1.0)]
    if not found or any(n is None for _, n in found):
        return None
    said, n = found[0]
    if any(one.inner != said.inner or n != m for one, m in found):
        return None
    if n is None or (words and said.word not in words):
        return None
    return said, n


def origins(value: Sum, so_far: float) -> Iterator[tuple[Said, float | None]]:
    """The maps that numbers come from, each with what multiplies them."""
    for said in value.moving:
        n = value.terms[said]
        passed = None if n is None or value.factors else n * so_far
        if said.kind == "map" and said.word != SOFTMAX:
            yield said, passed
        elif said.word in PASSES and passed is not None:
            for read in said.reads:
                yield from origins(read, passed)
        else:
            yield said, None
