"""Norms of others: functions, classes and modules, called as functions."""

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Fact, Kind, Reading, UnclearError
from selfattn.doctor.patient import Facts, parameters

EPS = ("eps", "epsilon", "variance_epsilon", "norm_eps", "layer_norm_eps")
SHIFTS = ("bias", "beta", "shift", "b_2", "b", "offset")

FACTS = {
    "eps": Fact(
        "the small number that it adds, if it cannot be told",
        saying=sayings.NUMBER,
    ),
    "precision": Fact(
        "in what it computes when x is float64",
        {"exact": "float64", "float32": "float32"},
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


def read(thing: Any, told: Facts) -> Reading:
    """What it is: a function of all, a class, or a module with a width.

    Raises:
        UnclearError: if it is a function of x alone and of unknown width.
    """
    if isinstance(thing, type):
        return Reading({"form": "class"})
    if not isinstance(thing, nn.Module):
        if len(parameters(thing)) > 2:
            return Reading({"form": "function"})
        raise UnclearError(
            "A norm is examined as a function of x, its parameters and eps, "
            "or as a module that holds them: hand over one of these."
        )
    widths = {p.numel() for p in thing.parameters()}
    if len(widths) != 1:
        raise UnclearError(
            "A norm has a gain, and a shift perhaps, of one number a "
            f"feature each, but it has parameters of sizes {sorted(widths)}."
        )
    facts = {"form": "module", "width": widths.pop()}
    return Reading(facts, lacks={"any width": "its width is fixed"})


def of_its_width(exercise: Exercise, facts: Facts) -> Exercise:
    """The exercise with inputs as wide as a module is."""
    if facts.get("form") != "module":
        return exercise
    probes = [
        probe
        if "any width" in probe.needs
        else dataclasses.replace(
            probe, sizes={**probe.sizes, "d": facts["width"]}, fixed=("d",)
        )
        for probe in exercise.probes
    ]
    return dataclasses.replace(exercise, probes=tuple(probes))


def prepare(thing: Any, facts: Facts) -> Callable[..., object]:
    """A function of x, gain, shift (or none) and eps."""
    if facts["form"] == "function":
        function: Callable[..., object] = thing
        return function

    def norm(x: Tensor, *parameters_and_eps: Any) -> object:
        *wanted, eps = parameters_and_eps
        made = thing(x.shape[-1]) if facts["form"] == "class" else thing
        module: nn.Module = copy.deepcopy(made).to(x.dtype)
        if not set_eps(module, eps, facts):
            raise ValueError("its eps cannot be set")
        fill(module, wanted)
        return module(x)

    kind = thing if isinstance(thing, type) else type(thing)
    norm.__name__ = kind.__name__
    return norm


def set_eps(module: nn.Module, eps: float, facts: Facts) -> bool:
    """Tell a module its eps; whether it has that eps now.

    Whose eps is not what was told of it keeps its own, which shall be seen.
    """
    for name in EPS:
        if hasattr(module, name):
            if not is_another(getattr(module, name), facts.get("eps")):
                setattr(module, name, eps)
            return True
    own: float = facts.get("eps") or 1e-5
    return own == eps


def is_another(own: Any, told: float | None) -> bool:
    """Whether an eps is a number, and not the one that was told."""
    if told is None or not isinstance(own, int | float):
        return False
    return not math.isclose(own, told, rel_tol=1e-3)


def fill(module: nn.Module, wanted: list[Tensor]) -> None:
    """Put gain and shift in the place of a module's parameters.

    Other tensors than its parameters would do, too; so gradients flow.
    """
    named = dict(module.named_parameters())
    shifts = [name for name in named if name.split(".")[-1] in SHIFTS]
    if len(named) == 2 and not shifts:
        shifts = [list(named)[1]]
    gains = [name for name in named if name not in shifts]
    for names, value in zip((gains, shifts), wanted, strict=False):
        for name in names:
            owner, _, last = name.rpartition(".")
            holder = module.get_submodule(owner)
            delattr(holder, last)
            setattr(holder, last, value.reshape(named[name].shape))


def kind_of_norm(
    reference: Exercise, facts: Mapping[str, Fact] = FACTS
) -> Kind:
    """The kind of norms that are held to this exercise, at their width."""
    return Kind(
        reference.name,
        does=reference.asks,
        exercise=lambda thing, facts: of_its_width(reference, facts),
        facts=facts,
        read=read,
        prepare=prepare,
    )
