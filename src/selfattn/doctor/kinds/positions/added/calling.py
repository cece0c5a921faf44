"""How modules that add positions are called, and where their table is."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.copying import copy_of
from selfattn.doctor.kind import Fact, Reading, UnclearError
from selfattn.doctor.kinds.positions.added import seen
from selfattn.doctor.kinds.trial_calls import listed, outcome
from selfattn.doctor.patient import Facts, handed

FACTS = {
    "table": Fact("the table that it adds, (rows, d)", saying=sayings.TABLE),
    "layout": Fact(
        "the axes of x",
        {"BND": "batch, tokens, features", "NBD": "tokens first"},
    ),
    "dropout": Fact(
        "the share of what it drops in training", saying=sayings.SHARE
    ),
}


def prepare(thing: Any, facts: Facts) -> Any:
    """A copy that is evaluated, so that nothing is dropped."""
    return seen.at_rest(thing)


def read(thing: Any, told: Facts) -> Reading:
    """Its table: a tensor that it holds, or what it adds to nothing.

    Raises:
        UnclearError: if there is no such table.
    """
    dropped = share_of(thing)
    if told.get("table") is not None:
        return Reading(dropped)
    tables = [x.detach() for x in held_by(thing) if x.squeeze().ndim == 2]
    if len(tables) == 1:
        held = tables[0].squeeze() * weight_of(thing, told)
        return Reading({"table": meant(held, thing, told), **dropped})
    found = added_by(thing, told, [x.shape[-1] for x in tables])
    if found is None:
        raise UnclearError(
            f"I find {len(tables)} tables in it. Say table=…, the one that "
            "it adds, (rows, d)."
        )
    return Reading({"table": found, **dropped})


def meant(held: Tensor, thing: Any, told: Facts) -> Tensor:
    """The one table that it holds; or of it what it adds, if that is meant.

    To add it so many times, or from a later row on, is nobody's slip.
    """
    found = added_by(thing, told, [held.shape[-1]])
    if found is None or not seen.is_of(found, held):
        return held
    return found


def added_by(thing: Any, told: Facts, widths: list[int]) -> Tensor | None:
    """The rows that it adds, as far as it has any."""
    resting = seen.at_rest(thing)
    layouts = [told["layout"]] if told.get("layout") else ["BND", "NBD"]
    return seen.added(
        lambda layout: adapt(resting, {"layout": layout}), layouts, widths
    )


def weight_of(thing: Any, told: Facts) -> Tensor:
    """The number that a module has learnt to weigh its table by; or one.

    Of nothing it makes what it adds. It has learnt a number if what it adds
    is as many times its table as that says.
    """
    one = torch.ones(())
    learnt = [x.detach() for x in held_by(thing) if x.numel() == 1]
    tables = [x.detach() for x in held_by(thing) if x.squeeze().ndim == 2]
    if len(learnt) != 1 or not isinstance(thing, nn.Module):
        return one
    table = tables[0].squeeze()
    call = adapt(copy_of(thing).eval(), {"layout": "BND", **told})
    added = outcome(call, torch.zeros(1, 1, table.shape[-1]).to(table))
    number = learnt[0].squeeze()
    found = isinstance(added, Tensor) and added.numel() == table.shape[-1]
    fits = found and torch.allclose(added.flatten(), number * table[0])
    return number if fits else one


def share_of(thing: Any) -> dict[str, float]:
    """What it drops in training: who holds a dropout promises to use it."""
    parts = thing.modules() if isinstance(thing, nn.Module) else ()
    shares = [part.p for part in parts if isinstance(part, nn.Dropout)]
    return {"dropout": max(shares)} if any(shares) else {}


IDS = {"pos", "position", "positions", "ids"}


def held_by(thing: Any) -> list[Tensor]:
    """The tensors that a thing holds: a module's, or what a function uses."""
    if isinstance(thing, nn.Module):
        return [*thing.buffers(), *thing.parameters()]
    if isinstance(thing, functools.partial):
        return [*within([thing.args, thing.keywords]), *held_by(thing.func)]
    try:
        used = inspect.getclosurevars(thing)
    except TypeError:  # it is no function, or one that is written in C
        return []
    defaults = getattr(thing, "__defaults__", None)
    return within([used.nonlocals, used.globals, defaults])


def within(values: Any) -> list[Tensor]:
    """The tensors among some values, and among what these hold."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, dict):
        values = list(values.values())
    if not isinstance(values, list | tuple):
        return []
    return [held for value in values for held in within(value)]


def places_asked(thing: Any) -> list[str]:
    """The name by which it has to be told where tokens stand, if it has."""
    return [
        p.name
        for p in listed(thing)[1:]
        if p.default is p.empty and {*p.name.lower().split("_")} & IDS
    ]


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it in its own layout."""
    ids = places_asked(thing)

    def add(x: Tensor) -> object:
        where = torch.arange(x.shape[1]).expand(len(x), -1)
        if facts.get("layout") == "NBD":
            turned = dict.fromkeys(ids, where.mT)
            output = handed(thing, x.transpose(0, 1), **turned)
            texts = isinstance(output, Tensor) and output.ndim == 3
            return output.transpose(0, 1) if texts else output
        return handed(thing, x, **dict.fromkeys(ids, where))

    return add
