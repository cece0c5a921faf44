"""How wide x is, and its context: by the maps, or else by calls."""

from itertools import product

from torch import Tensor, nn

from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.layer import calling
from selfattn.doctor.kinds.layer.facts import FACTS
from selfattn.doctor.kinds.layer.inputs import (
    BATCH,
    N_K,
    N_Q,
    comes_from,
    may_be_wide,
)
from selfattn.doctor.kinds.layer.parts import MODEL, affines, maps_of, number
from selfattn.doctor.kinds.text_layouts import PICTURES, tried
from selfattn.doctor.patient import Facts, handed
from selfattn.doctor.probes import numbers

FEW = 6  # widths that are tried
USUAL = {"mask": "keep", "mask_axes": "NN", "padding": "keep"}


def check_width(facts: Facts, found: int | None) -> None:
    """Raise unless the width that was told, if any, is what was found."""
    if facts.get("d_model") not in (None, found):
        raise UnclearError(
            f"You say d_model={facts['d_model']}, but its queries are made "
            f"of {found} features."
        )


def width_taken(module: nn.Module) -> int | None:
    """The one width of x at which it can be called, of those of its own."""
    sizes = sorted({n for x in module.parameters() for n in x.shape})
    made = {
        d: trial_calls.outcome(handed, module, numbers(2, 5, d)) for d in sizes
    }
    found = [d for d, output in made.items() if output is not None]
    return found[0] if len(found) == 1 else None


def widths(
    thing: nn.Module, facts: Facts, cross: bool = False
) -> tuple[int, int]:
    """The widths of x and of the context.

    Those of its maps, if it can be called so; if not, those at which it can.
    """
    d_model, d_context = of_maps(thing, facts)
    if comes_out(thing, facts, cross, d_model, d_context):
        return d_model or 0, d_context or 0
    pair = those_taken(thing, facts, cross)
    if pair is not None:
        return pair
    d_model = d_model or width_taken(thing)
    if d_model is None:
        raise UnclearError("How wide is x? Say d_model=….")
    return d_model, d_context or d_model


def those_taken(
    thing: nn.Module, facts: Facts, cross: bool
) -> tuple[int, int] | None:
    """The first widths at which it can be called, of those that it has."""
    told = facts.get("d_model")
    sizes = [told] if told else may_be_wide(thing)[:FEW]
    others = may_be_wide(thing)[:FEW] if cross else [0]
    for pair in product(sizes, others):
        if comes_out(thing, facts, cross, *pair):
            return pair if cross else (pair[0], pair[0])
    return None


def is_called(thing: nn.Module, facts: Facts, cross: bool) -> bool:
    """Whether it can be called, with texts of any width of its own.

    Who takes as many tokens as they have features, and nothing else, has
    exchanged two axes; and who makes something else of a picture tells where
    to look in it. Such are none.
    """
    wide: tuple[int | None, int | None] | None = of_maps(thing, facts)
    if wide is None or not comes_out(thing, facts, cross, *wide):
        wide = those_taken(thing, facts, cross)
    if wide is None:
        return False
    if facts.get("layout") not in PICTURES:
        return facts.get("length") != wide[0]
    made = called(thing, facts, wide[0] or 0, wide[1] if cross else None)
    return made is not None and made.shape[-1] == wide[0]


def of_maps(thing: nn.Module, facts: Facts) -> tuple[int | None, int | None]:
    """The widths that its maps and the names of its numbers tell."""
    names = dict(facts.get("projections") or {})
    found = maps_of(thing, names, facts.get("n_heads") or 0)
    d_model = facts.get("d_model") or number(thing, MODEL)
    for part in ("q", "qkv"):
        d_model = found[part].W.shape[0] if part in found else d_model
    check_width(facts, d_model)
    first = next(iter(affines(thing)), None)
    if d_model is None and first is not None:
        d_model = first[1].W.shape[0]
    sizes = {x.shape[-1] for x in thing.parameters() if x.ndim > 1}
    if d_model is None and len(sizes) == 1:
        d_model = sizes.pop()
    context = next((found[p] for p in ("k", "kv") if p in found), None)
    return d_model, d_model if context is None else context.W.shape[0]


def comes_out(
    thing: nn.Module,
    facts: Facts,
    cross: bool,
    d_model: int | None,
    d_context: int | None,
) -> bool:
    """Whether it can be called with inputs of these widths."""
    if d_model is None or d_context is None:
        return False
    made = called(thing, facts, d_model, d_context if cross else None)
    return made is not None


def width_out(
    thing: nn.Module, facts: Facts, d_model: int, d_context: int
) -> int:
    """How wide its output is: as x, or, if it maps no values, as these."""
    made = called(thing, facts, d_model, d_context)
    raw = made is not None and made.shape[-1] == d_context
    return d_context if raw else d_model


def called(
    thing: nn.Module, facts: Facts, d_model: int, d_context: int | None
) -> Tensor | None:
    """The output for inputs of these widths, if it is as long as x."""
    only = facts.get("length")
    texts = [numbers(BATCH, only or N_Q, d_model, seed=1)]
    if d_context is not None:
        texts.append(numbers(BATCH, only or N_K, d_context, seed=2))
    layouts = tried(facts.get("layout"))
    for layout, axes in product(layouts, axes_needed(thing, facts)):
        known = {**USUAL, **facts, "layout": layout, "mask_axes": axes}
        call = calling.adapt(thing, known)
        made = trial_calls.outcome(call, *texts)
        if isinstance(made, Tensor) and comes_from(made, texts[0]):
            return made
    return None


def axes_needed(thing: nn.Module, facts: Facts) -> list[str]:
    """The axes that a mask may have without which it cannot be called."""
    if "mask_axes" in facts or not calling.must_be_told(
        thing, facts["names"]["mask"]
    ):
        return [facts.get("mask_axes", USUAL["mask_axes"])]
    return [*FACTS["mask_axes"].options]
