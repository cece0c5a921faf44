"""What can be read off a module that attends, without calling it."""

import inspect
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.kind import Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.layer import calling, lengths
from selfattn.doctor.kinds.layer.affine import Affine, queries_in
from selfattn.doctor.kinds.layer.between import named_numbers
from selfattn.doctor.kinds.layer.constructing import instance
from selfattn.doctor.kinds.layer.facts import FACTS
from selfattn.doctor.kinds.layer.found_masks import x_and_mask
from selfattn.doctor.kinds.layer.inputs import inputs_of
from selfattn.doctor.kinds.layer.longest import longest_taken
from selfattn.doctor.kinds.layer.masks_taken import axes_taken
from selfattn.doctor.kinds.layer.parts import (
    WIDTHS,
    affines,
    bare,
    heads_inside,
    heads_of_out,
    lists,
    maps_of,
    number,
)
from selfattn.doctor.kinds.layer.rotations import says_that_it_turns
from selfattn.doctor.kinds.layer.width import widths
from selfattn.doctor.kinds.mask_meanings import MEANINGS
from selfattn.doctor.kinds.text_layouts import TEXTS
from selfattn.doctor.patient import Facts, parameters


def read(thing: Any, told: Facts, cross: bool = False) -> Reading:
    """Its arguments, its number of heads, and how it holds what it learns."""
    module = instance(thing, told)
    find = inputs_of if cross else x_and_mask
    names = calling.looked_up(module.forward, told, find(module, told))
    lacks = lacking(names)
    seen: dict[str, Any] = {"names": names, **of_masks(names, told, lacks)}
    if "mask" not in lacks:
        lacks.pop("padding", None)
    first = getattr(module, "batch_first", None)
    if isinstance(first, bool):
        seen["layout"] = "BND" if first else "NBD"
    if cross:
        seen["causal"] = False
    if "order" not in told:
        seen["order"] = named_order(module)
    more = inside(module, told, cross)
    if more.facts.get("formula") == "own":
        lacks["numbers"] = "its projections are not recognised"
    has = tuple(n for n in ("mask", "padding") if names[n] is not None)
    open_: dict[str, Any] = {"mask": meanings(names, told)}
    open_ |= {"layout": [*TEXTS]}
    open_ |= more.candidates
    made = replace(more, lacks=lacks, has=has, candidates=open_)
    # Of pictures that are found, too, nobody said how their axes lie.
    seen["any_layout"] = "layout" not in {**seen, **told}
    made = made.with_facts(**seen)
    made = lengths.read(made, module, known_of(made, told), cross)
    made = with_axes(made, module, told, cross)
    return made if cross else with_its_end(made, module, told)


def of_masks(names: Facts, told: Facts, lacks: Facts) -> Facts:
    """What is known of its masks by their names, or as it has none."""
    seen = {"mask": "keep", "mask_axes": "NN"} if "mask" in lacks else {}
    if "len" in str(names["mask"]) or told.get("mask") == "lengths":
        seen |= {"mask": "lengths", "mask_axes": "BN"}
    if names["padding"] is None:
        seen["padding"] = "keep"
    return seen


def meanings(names: Facts, told: Facts) -> list[str]:
    """What its mask may say: what its padding does, if that is no other one.

    Who tells of padding where one argument takes all that hides tells of it.
    """
    said = told.get("padding")
    if said is not None and names["padding"] is None:
        return [said]
    return [*MEANINGS]


def known_of(seen: Reading, told: Facts) -> Facts:
    """What is told, and read off: of names, those of which none was told."""
    return {**seen.facts, **told, "names": seen.facts["names"]}


def with_axes(
    seen: Reading, module: nn.Module, told: Facts, cross: bool
) -> Reading:
    """A reading with those axes alone of a mask that do not make it raise."""
    known = known_of(seen, told)
    wide = trial_calls.outcome(widths, module, known, cross)
    if "mask_axes" in known or wide is None:
        return seen
    d_model, d_context = wide
    axes = axes_taken(module, known, d_model, d_context, cross)
    return replace(seen, candidates={**seen.candidates, "mask_axes": axes})


def with_its_end(seen: Reading, module: nn.Module, told: Facts) -> Reading:
    """A reading with the longest text that it takes, if it has an end."""
    known = known_of(seen, told)
    wide = trial_calls.outcome(widths, module, known)
    if {"longest", "length"} & known.keys() or wide is None:
        return seen
    longest = trial_calls.outcome(longest_taken, module, known, wide[0])
    return seen if longest is None else seen.with_facts(longest=longest)


def lacking(names: Facts) -> dict[str, str]:
    """What it cannot be asked, for it has no argument that takes it."""
    needs = {"mask": "mask", "padding": "padding", "flag": "causal"}
    lacks = {
        need: "it has no argument for it"
        for need, name in needs.items()
        if names[name] is None
    }
    if names["padding"] is None or lacks.keys() >= {"mask", "flag"}:
        lacks["together"] = ""  # which nobody misses
    return lacks


def named_order(module: nn.Module) -> str:
    """The order of queries, keys and values that a name spells out."""
    names = " ".join(name for name, _ in affines(module)).lower()
    found = [o for o in map("".join, permutations("qkv")) if o in names]
    return found[0] if len(found) == 1 else "qkv"


def inside(module: nn.Module, told: Facts, cross: bool) -> Reading:
    """What its own matrices tell: its formula, and its number of heads."""
    n_heads = told.get("n_heads") or heads_inside(module)
    n_heads = n_heads or heads_of_out(module)
    names = dict(told.get("projections") or {})
    found = maps_of(module, names, n_heads or 0)
    if not are_of_x(found, cross):
        return Reading({"formula": "own", "packed": "by part", "n_heads": 1})
    seen: dict[str, Any] = {}
    either = [*FACTS["matrices"].options]
    open_: dict[str, Any] = {"matrices": either} if bare(module) else {}
    if "q" in found:
        both = "kv" in found and "k" not in found
        ways = ["by part", *(["by head"] if both else [])]
        open_["packed"] = ways
        d = found["q"].W.shape[-1]
    else:
        d = queries_in(found)
        fewer = found["qkv"].W.shape[-1] < 3 * d
        open_["packed"] = ["by part", "by group" if fewer else "by head"]
    n_heads, width = heads_inside(module), number(module, WIDTHS)
    n_heads = n_heads or lists(module) or heads_of_out(module) or None
    if n_heads is None and width is not None and d % width == 0:
        n_heads = d // width
    if n_heads is not None:
        return Reading({**seen, "n_heads": n_heads}, candidates=open_)
    heads = possible_heads(found, d)
    return Reading(seen, candidates={**open_, "n_heads": heads})


def possible_heads(found: dict[str, Affine], d: int) -> list[int]:
    """How many heads there may be that divide queries, and keys as well."""
    divisors = [n for n in (1, 2, 3, 4, 6, 8, 12, 16) if d % n == 0]
    if "qkv" in found and "q" not in found:  # whose keys are whole heads, too
        rest = found["qkv"].W.shape[-1] - d
        divisors = [n for n in divisors if rest % (2 * d // n) == 0]
    if "q" in found and "k" in found:
        keys = found["k"].W.shape[-1]
        divisors = [n for n in divisors if keys % (d // n) == 0]
    return divisors


def are_of_x(found: dict[str, Affine], cross: bool) -> bool:
    """Whether there are maps for q, k and v, and all of them take x.

    Keys and values may be made of what another map has made of x, and then
    they are no projections of it.
    """
    if "q" not in found:
        return "qkv" in found and holds_three(found)
    if not ("kv" in found or {"k", "v"} <= found.keys()):
        return "qkv" in found
    width = found["q"].W.shape[0]
    others = [found[part] for part in ("k", "v", "kv") if part in found]
    return cross or all(one.W.shape[0] == width for one in others)


def holds_three(found: dict[str, Affine]) -> bool:
    """Whether one matrix may be all three: it makes more than it takes.

    If not, the way out tells, which takes as much as there are queries.
    """
    n_in, n_out = found["qkv"].W.shape
    out = found.get("out")
    third = out is not None and out.W.shape[0] == queries_in(found)
    return n_out > n_in or third


def fallback(thing: Any, told: Facts, seen: Reading) -> Reading | None:
    """Ask for properties alone, if there is more to it than projections.

    More is a parameter that is none of theirs, numbers that are no mask, a
    function of its own such as one that rotates, be it outside of the module,
    or an argument of its own.
    """
    known = {**seen.facts, **told}
    if "formula" in known or {"packed", "projections"} & told.keys():
        return None
    module = instance(thing, known)
    names = dict(known.get("projections") or {})
    n_heads = known.get("n_heads") or 0  # 0: it is open still
    found = maps_of(module, names, n_heads)
    own = {id(x) for a in found.values() for x in a.whole}
    more = [x for x in module.parameters() if id(x) not in own]
    if told and not more:
        return None  # who told of it had a word for it
    more += [x for _, x in named_numbers(module) if is_more(x, own)]
    functions = [
        function
        for function in vars(module).values()
        if inspect.isfunction(function) and not attends(function)
    ]
    turns = not told and says_that_it_turns(module)
    if not (more or functions or known.get("call") or turns):
        return None
    why = "its formula seems its own (if it should not be, formula='plain')"
    less = replace(seen, lacks={**seen.lacks, "numbers": why})
    return less.with_facts(formula="own", free=True)


def perhaps(thing: Any, facts: Facts) -> Iterator[Facts]:
    """That its formula is its own: what is found in it may account for it."""
    if facts.get("formula") is None:
        yield {"formula": "own"}


def is_more(x: Tensor, own: set[int]) -> bool:
    """Whether numbers are none of a map's, and no mask of 0, 1 or -inf."""
    mask = (x == 0) | (x == 1) | (x == -math.inf)
    return id(x) not in own and not bool(mask.all())


def attends(function: Any) -> bool:
    """Whether a function is one of queries, keys and values."""
    return "".join(name[:1] for name in parameters(function)[:3]) == "qkv"
