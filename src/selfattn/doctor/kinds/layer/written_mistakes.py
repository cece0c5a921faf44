"""What goes wrong with a formula that was written out, whatever it says.

It may be heard with another mask, say, or made with other weights; and one of
the steps that most formulas have may be another.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from selfattn.doctor.copying import copy_of
from selfattn.doctor.exercise import Mistake, mistake_as
from selfattn.doctor.exercises.dot_product import weights as tables
from selfattn.doctor.exercises.multihead import attention as multihead
from selfattn.doctor.kinds.layer import deviations
from selfattn.doctor.kinds.layer.affine import Affine
from selfattn.doctor.kinds.layer.mistakes import heads, masks
from selfattn.doctor.kinds.layer.parts import maps_of
from selfattn.doctor.patient import Facts

Call = Callable[..., Any]
Maps = dict[str, Affine]
SOFTMAX = {torch.softmax, torch.Tensor.softmax, nn.functional.softmax}


def of_calls(formula: Call) -> Iterator[Mistake]:
    """What is done wrong with what it is called with, or in its steps."""
    for known, change in HEARD:
        yield mistake_as(known)(heard_otherwise(formula, change))
    for known, other in OTHER_STEPS:
        yield mistake_as(known)(by_other_steps(formula, other))
    yield mistake_as(multihead.input_added)(
        lambda x, *rest, **more: x + formula(x, *rest, **more)
    )
    yield mistake_as(multihead.detached)(
        lambda x, *rest, **more: formula(x, *rest, **more).detach()
    )


def heard_otherwise(formula: Call, change: Call) -> Call:
    """The formula of something else than what it is called with."""

    def call(x: Tensor, context: Tensor | None = None, **more: Any) -> Any:
        return formula(x, context, **change(**more))

    return call


def without(name: str) -> Call:
    """That something is never heard of."""

    def change(**more: Any) -> dict[str, Any]:
        return {n: one for n, one in more.items() if n != name}

    return change


def turned(how: Call, *names: str) -> Call:
    """That some masks are other ones."""

    def change(**more: Any) -> dict[str, Any]:
        others = {n: how(more[n]) for n in names if n in more}
        return {**more, **others}

    return change


def of_the_first(padding: Tensor) -> Tensor:
    """The padding of the first text, for all."""
    return padding[:1].expand_as(padding)


HEARD = (
    (masks.mask_ignored, without("mask")),
    (masks.padding_ignored, without("padding")),
    (masks.causal_flag_ignored, without("causal")),
    (masks.mask_upside_down, turned(torch.logical_not, "mask", "padding")),
    (masks.mask_on_its_side, turned(lambda mask: mask.mT, "mask")),
    (masks.padding_of_the_first_text, turned(of_the_first, "padding")),
)


class OtherStep(TorchFunctionMode):
    """Within it, another function stands for the softmax."""

    def __init__(self, other: Call):
        """Keep what stands for it: of the numbers, and of the axis."""
        super().__init__()
        self.other = other

    def __torch_function__(
        self, function: Any, types: Any, given: Any = (), named: Any = None
    ) -> Any:
        """Call what was called, unless it is a softmax."""
        named = named or {}
        if function not in SOFTMAX:
            return function(*given, **named)
        axis = named.get("dim", given[1] if len(given) > 1 else -1)
        return self.other(given[0], axis)


def by_other_steps(formula: Call, other: Call) -> Call:
    """The formula with another softmax."""

    def call(*given: Any, **more: Any) -> Any:
        with OtherStep(other):
            return formula(*given, **more)

    return call


def over_queries(scores: Tensor, axis: int) -> Tensor:
    """The softmax over the axis before the last; a lone one has none."""
    one = scores.ndim < 2
    return scores.softmax(axis if one else -2).nan_to_num()


OTHER_STEPS = (
    (multihead.softmax_over_queries, over_queries),
    (tables.no_softmax, lambda s, axis: s.masked_fill(s == -math.inf, 0.0)),
    (tables.sigmoid_instead_of_softmax, lambda s, axis: s.sigmoid()),
)


def of_weights(
    thing: nn.Module, facts: Facts, formula_of: Call
) -> tuple[Mistake, ...]:
    """What is done wrong with the weights: the formula with other ones.

    Args:
        thing: the layer.
        facts: what is known of it.
        formula_of: makes, of a layer, the formula with its weights.
    """
    scales = louder_queries(thing, facts)
    every = (*WEIGHTS, *scales)
    made = ((known, changed(thing, facts, how)) for known, how in every)
    return tuple(
        mistake_as(known)(formula_of(other))
        for known, other in made
        if other is not None
    )


def louder_queries(
    thing: nn.Module, facts: Facts
) -> list[tuple[Mistake, Callable[[Maps], bool]]]:
    """Other scales: as many times as loud as the queries become by them."""
    names, n_heads = dict(facts.get("projections") or {}), facts.get("n_heads")
    maps = cut(maps_of(thing, names, n_heads or 0))
    if n_heads is None or "q" not in maps:
        return []
    d_model, width = maps["q"].W.shape
    d_head = width / n_heads
    scales = (
        (heads.no_scale, 1.0),
        (heads.divided_by_d, 1 / d_head),
        (heads.multiplied_by_the_root, math.sqrt(d_head)),
        (heads.scaled_by_the_width_of_the_model, 1 / math.sqrt(d_model)),
        (heads.number_of_heads, 1 / math.sqrt(n_heads)),
    )
    root = math.sqrt(d_head)
    return [(known, louder("q", one * root)) for known, one in scales]


def louder(part: str, times: float) -> Callable[[Maps], bool]:
    """The change by which all that a map makes is multiplied."""

    def change(maps: Maps) -> bool:
        for x in tensors(maps[part]):
            x.mul_(times)
        return True

    return change


def changed(
    thing: nn.Module, facts: Facts, change: Callable[[Maps], bool]
) -> nn.Module | None:
    """A copy of a layer with other weights; None if it has no such."""
    other = copy_of(thing)
    names = dict(facts.get("projections") or {})
    maps = cut(maps_of(other, names, facts.get("n_heads") or 0))
    with torch.no_grad():
        return other if change(maps) else None


def cut(found: Maps) -> Maps:
    """Its maps as views of its weights, those that lie in one cut apart."""
    made = {part: one for part, one in found.items() if is_view(one)}
    for one in ("qkv", "kv"):
        if one in made and not made.keys() & {*one}:
            W, b = made[one].W.chunk(len(one), -1), made[one].b
            shifts = [None] * len(one) if b is None else b.chunk(len(one))
            pairs = zip(W, shifts, strict=False)
            made |= zip(one, (Affine(*pair) for pair in pairs), strict=False)
    return made


def is_view(one: Affine) -> bool:
    """Whether to write into the matrix is to write into a weight."""
    at = one.W.untyped_storage().data_ptr()
    return any(
        x is not None and x.untyped_storage().data_ptr() == at
        for x in one.whole
    )


def tensors(one: Affine) -> list[Tensor]:
    """A map's matrix, and its shift if it has one."""
    return [one.W] if one.b is None else [one.W, one.b]


def exchanged(first: str, second: str) -> Callable[[Maps], bool]:
    """The change by which two maps stand in each other's place."""

    def change(maps: Maps) -> bool:
        pairs = side_by_side(maps, first, second)
        for one, other in pairs:
            kept = one.clone()
            one.copy_(other)
            other.copy_(kept)
        return bool(pairs)

    return change


def instead(of: str, other: str) -> Callable[[Maps], bool]:
    """The change by which one map stands in the place of another, too."""

    def change(maps: Maps) -> bool:
        pairs = side_by_side(maps, of, other)
        for mine, its in pairs:
            mine.copy_(its)
        return bool(pairs)

    return change


def side_by_side(
    maps: Maps, first: str, second: str
) -> list[tuple[Tensor, Tensor]]:
    """The matrices of two maps, and their shifts; nothing if they differ in
    shape, or one is not there.
    """
    if not {first, second} <= maps.keys():
        return []
    one, other = tensors(maps[first]), tensors(maps[second])
    alike = [x.shape for x in one] == [x.shape for x in other]
    return list(zip(one, other, strict=True)) if alike else []


def on_their_side(*parts: str) -> Callable[[Maps], bool]:
    """The change by which square matrices lie on their side."""

    def change(maps: Maps) -> bool:
        if not all(is_square(maps, part) for part in parts):
            return False
        for part in parts:
            maps[part].W.copy_(maps[part].W.mT.clone())
        return True

    return change


def not_mapped(part: str) -> Callable[[Maps], bool]:
    """The change by which what is mapped stays as it is."""

    def change(maps: Maps) -> bool:
        if not is_square(maps, part):
            return False
        maps[part].W.copy_(torch.eye(*maps[part].W.shape))
        unshifted(maps, part)
        return True

    return change


def is_square(maps: Maps, part: str) -> bool:
    """Whether there is such a map, and as much goes in as comes out."""
    return part in maps and maps[part].W.shape[0] == maps[part].W.shape[1]


def unshifted(maps: Maps, *parts: str) -> bool:
    """Take the shifts of maps away; whether there were any."""
    shifts = [maps[p].b for p in parts if p in maps]
    for b in shifts:
        if b is not None:
            b.zero_()
    return any(b is not None for b in shifts)


WEIGHTS = (
    (multihead.queries_and_keys_exchanged, exchanged("q", "k")),
    (deviations.parts_in_another_order, exchanged("k", "v")),
    (deviations.parts_in_another_order, exchanged("q", "v")),
    (heads.keys_are_the_values, instead("v", "k")),
    (deviations.one_projection_for_two, instead("k", "q")),
    (deviations.one_projection_for_two, instead("k", "v")),
    (heads.matrices_of_the_input_transposed, on_their_side("q", "k", "v")),
    (deviations.output_projection_transposed, on_their_side("out")),
    (multihead.values_not_projected, not_mapped("v")),
    (multihead.no_output_projection, not_mapped("out")),
    (deviations.projection_not_used, not_mapped("q")),
    (deviations.projection_not_used, not_mapped("k")),
    (heads.biases_forgotten, lambda maps: unshifted(maps, "q", "k", "v")),
    (heads.biases_forgotten, lambda maps: unshifted(maps, "out")),
)
