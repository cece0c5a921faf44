"""Norms of others: functions, classes and modules, called as functions."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.copying import copy_of
from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Fact, Kind, Reading, UnclearError
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.norms import gains
from selfattn.doctor.kinds.norms.axes import with_its_axes
from selfattn.doctor.kinds.norms.epsilon import (
    EPS,
    eps_by_default,
    eps_in,
    fill,
    own_eps,
    set_eps,
)
from selfattn.doctor.kinds.norms.order import code, in_usual_order
from selfattn.doctor.kinds.norms.pictures import laid_out_for
from selfattn.doctor.kinds.norms.widths import (
    check_made_of_width,
    own_width,
)
from selfattn.doctor.kinds.text_layouts import PICTURES
from selfattn.doctor.kinds.trial_calls import outcome
from selfattn.doctor.patient import Facts, handed, parameters

FACTS = {
    "eps": Fact(
        "the small number that it adds, if it cannot be told",
        saying=sayings.ABOVE_ZERO,
    ),
    "precision": Fact(
        "in what it computes when x is float64",
        {"exact": "float64", "float32": "float32"},
        tried=False,
    ),
    "layout": Fact(
        "the axes of x, if its features do not come last",
        {name: PICTURES[name] for name in ("BDN", "BDHW")},
        tried=False,
    ),
    "gain": Fact(
        "what it multiplies by; Gemma's gains start at 0",
        gains.OPTIONS,
        tried=False,
    ),
}
OPTIONAL = {
    "any width": "other numbers of features than its own",
    "eps": "another eps than its own",
    "float64": "float64",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "single": "one token without a sequence",
}
LEARNT = ("gain", "shift")  # what a norm may have, in the order of its inputs
NEUTRAL = (torch.ones_like, torch.zeros_like)  # what stands for each


def read(thing: Any, told: Facts) -> Reading:
    """What it is: a function of all, a class, or a module with a width.

    One that learns nothing, a function of x alone or of x and eps, or a
    module without parameters, is held to the formula without.

    Raises:
        UnclearError: if it is a function of other things, or of a class that
            is made of more than a width.
    """
    if isinstance(thing, type):
        check_made_of_width(thing)
        made = outcome(thing, 7)
        facts: dict[str, Any] = {"form": "class"}
        if isinstance(made, nn.Module):
            facts |= own_eps(made, 7, told)
            if held := [*made.parameters()]:
                facts["learns"] = len(held)
        return Reading(facts, gains.from_zero(made))
    if not isinstance(thing, nn.Module):
        return with_its_axes(of_function(in_usual_order(thing), told), thing)
    held = [p.numel() for p in thing.parameters()]
    widths = {*held}
    if not held:
        return of_bare(thing, told)
    if len(widths) != 1:
        raise UnclearError(
            "A norm has a gain, and a shift perhaps, of one number a "
            f"feature each, but it has parameters of sizes {sorted(widths)}."
        )
    width = widths.pop()
    facts = {"form": "module", "width": width}
    facts["learns"] = len(held)
    lacks = {"any width": "its width is fixed"}
    made = with_its_axes(Reading(facts, gains.from_zero(thing), lacks), thing)
    layout = {**made.facts, **told}.get("layout")
    return made.with_facts(**own_eps(thing, width, told, layout))


def of_function(function: Any, told: Facts) -> Reading:
    """What is known of a function: of what it is one."""
    listed = parameters(function)
    fixed = eps_in(function, listed)
    if told.get("eps") and len(listed) == 2 and listed[1] not in EPS:
        fixed = told["eps"]  # of one whose eps is not where it should be, too
    if fixed:
        own = told.get("eps") or fixed
        return Reading({"form": "function", "fixed eps": own})
    if told.get("eps") and (by := eps_by_default(function)):
        facts = {"form": "function", "fixed eps": told["eps"], "eps by": by}
        return Reading(facts)
    if len(listed) > 2:
        return Reading({"form": "function"})
    if len(listed) == 1 or {*listed[1:]} & {*EPS}:
        return Reading({"form": "bare", "eps by": listed[1:], "learns": 0})
    raise UnclearError(
        "A norm is examined as a function of x, its parameters and eps, "
        "or as a module that holds them: hand over one of these."
    )


def of_bare(module: nn.Module, told: Facts) -> Reading:
    """What is known of a module without parameters."""
    shape = getattr(module, "normalized_shape", None)
    facts: dict[str, Any] = {"form": "bare module", "learns": 0}
    if isinstance(shape, tuple) and len(shape) == 1:
        facts["width"] = shape[0]
    elif width := own_width(module):
        facts["width"] = width
    facts |= own_eps(module, facts.get("width", 7), told)
    lacks = {"any width": "its width is fixed"} if "width" in facts else {}
    return Reading(facts, lacks=lacks)


@functools.lru_cache(maxsize=16)  # one object, so that its reference is one
def that_learns(exercise: Exercise, many: int) -> Exercise:
    """The exercise of norms that have so many of gain and shift.

    Whoever holds no shift, as of `nn.LayerNorm(d, bias=False)`, adds none.
    """

    def without(answer: Callable[..., object]) -> Callable[..., object]:
        def norm(x: Tensor, *learnt_and_eps: Any) -> object:
            *learnt, eps = learnt_and_eps
            instead = zip(NEUTRAL, learnt, strict=False)
            plain = [neutral(one) for neutral, one in instead]
            return answer(x, *learnt[:many], *plain[many:], eps)

        return norm

    return exercise.adapted(without)


def of_its_width(exercise: Exercise, facts: Facts) -> Exercise:
    """The exercise with inputs as wide as a module is, of what it learns."""
    wanted = sum(name in LEARNT for name in exercise.probes[0].inputs)
    many = facts.get("learns", wanted)
    if many < wanted:
        exercise = that_learns(exercise, many)
    if facts.get("form") == "bare":
        return exercise
    return at_its_size(exercise, facts.get("width"), facts.get("fixed eps"))


@functools.lru_cache(maxsize=64)
def at_its_size(
    exercise: Exercise, width: int | None, eps: float | None
) -> Exercise:
    """The exercise at a width and with an eps, where no others are had."""
    probes = list(exercise.probes)
    for i, probe in enumerate(probes):
        inputs = probe.inputs
        if eps is not None and "eps" not in probe.needs:
            inputs = {**inputs, "eps": lambda sizes: eps}
            probe = dataclasses.replace(probe, inputs=inputs)
        if width is not None and "any width" not in probe.needs:
            sizes = {**probe.sizes, "d": width}
            probe = dataclasses.replace(probe, sizes=sizes, fixed=("d",))
        probes[i] = probe
    return dataclasses.replace(exercise, probes=tuple(probes))


def prepare(thing: Any, facts: Facts) -> Callable[..., object]:
    """A function of x, gain, shift (or none) and eps, of any axes."""
    norm = prepared(thing, facts)
    if facts.get("layout") in PICTURES:
        of_text = laid_out_for(norm, facts["layout"])
        return functools.wraps(norm)(of_text)
    if "axes" not in facts:
        return norm
    lifted = trial_calls.lifted(norm, facts["axes"])
    return functools.wraps(norm)(lifted)


def prepared(thing: Any, facts: Facts) -> Callable[..., object]:
    """A function of x, gain, shift (or none) and eps."""
    if facts["form"] == "function":
        function: Callable[..., object] = in_usual_order(thing)
        fixed = "fixed eps" in facts
        return of_its_eps(function, facts) if fixed else function

    def bare(x: Tensor, *parameters_and_eps: Any) -> object:
        eps = parameters_and_eps[-1]
        if facts["eps by"]:
            return handed(thing, x, **{facts["eps by"][0]: eps})
        if eps != (facts.get("eps") or 1e-5):
            raise ValueError("its eps cannot be set")
        return handed(thing, x)

    if facts["form"] == "bare":
        bare.__name__ = getattr(thing, "__name__", "norm")
        return bare

    def norm(x: Tensor, *parameters_and_eps: Any) -> object:
        *wanted, eps = parameters_and_eps
        made = thing(x.shape[-1]) if facts["form"] == "class" else thing
        module: nn.Module = copy_of(made).to(x.dtype)
        if not set_eps(module, eps, facts):
            raise ValueError("its eps cannot be set")
        fill(module, wanted)
        return handed(module, x)

    kind = thing if isinstance(thing, type) else type(thing)
    norm.__name__ = kind.__name__
    return norm


def of_its_eps(
    function: Callable[..., object], facts: Facts
) -> Callable[..., object]:
    """A function that takes no eps, as one that takes its own alone.

    One that takes it, and need not be told, is not told its own.
    """

    def norm(x: Tensor, *learnt_and_eps: Any) -> object:
        *learnt, eps = learnt_and_eps
        if eps == facts["fixed eps"]:
            return function(x, *learnt)
        if not facts.get("eps by"):
            raise ValueError("its eps cannot be set")
        return function(x, *learnt, **{facts["eps by"]: eps})

    norm.__name__ = getattr(function, "__name__", "norm")
    return norm


def adapt(norm: Any, facts: Facts) -> Callable[..., object]:
    """Hand it the gain that it multiplies by, or that less one."""
    if facts.get("gain") != "one plus":
        called: Callable[..., object] = norm
        return called
    return lambda x, gain, *others: norm(x, gain - 1, *others)


def kind_of_norm(
    reference: Exercise, one_plus: str, facts: Mapping[str, Fact] = FACTS
) -> Kind:
    """The kind of norms that are held to this exercise, at their width.

    Of a function nobody can see what its gain starts at. So ``one_plus``,
    the name of that mistake, may be meant, but of who starts at one.
    """
    return Kind(
        reference.name,
        does=reference.asks,
        exercise=lambda thing, facts: of_its_width(reference, facts),
        facts=facts,
        read=read,
        prepare=prepare,
        adapt=adapt,
        code=code,
        meant={one_plus: "gain='one plus'"},
        promised_by={one_plus: "gain"},
    )
