"""Blocks whose parts are not found, and which are asked all the same.

Nobody said that they have a formula of their own; but of any block it can be
asked what holds of all. What is not asked then is told: how it joins its
parts, and by which facts these could be found.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import (
    IN_STEPS,
    UNFOUND,
    Kind,
    Reading,
    UnclearError,
)
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import (
    beheld,
    cores,
    made_of,
    properties,
)
from selfattn.doctor.kinds.blocks.axes_heard import (
    NBD,
    is_called,
    layouts_of,
    sees_all,
)
from selfattn.doctor.kinds.blocks.flow import followed
from selfattn.doctor.kinds.blocks.masks_heard import with_meanings
from selfattn.doctor.kinds.blocks.named_wrongly import (
    names_wrongly,
    widths_of,
)
from selfattn.doctor.kinds.blocks.recording import parts_called
from selfattn.doctor.kinds.layer.norming import is_norm
from selfattn.doctor.patient import Facts

DO_NOT_FIT = "The parts that I find do not fit together. Say which they are."
UNCALLABLE = (
    "However I call it, with texts as wide as its parts take them, it raises. "
    "Hand over a module whose forward takes x, for a decoder block a context "
    "behind it, and perhaps a mask by its name."
)
IN_NO_WAY = (
    "I find its parts, and they are joined in no way that I know. Say "
    "formula='own', if it joins them in its own way."
)
MORE = (
    "A block of this kind joins no more than its attention, its network and "
    "norms, but I find {}, too. Say which parts it joins, by their names."
)
OF_ITS_OWN = re.compile(r"([;,] or|Say) formula='own'.*")
JOINED = {"order", "formula"}  # told of blocks, and of nothing else
Call = Callable[..., Any]


def read(kind: Kind, thing: Any, told: Facts) -> Reading:
    """What can be read off a block, whether or not its parts can be found.

    Of one of which nothing was told its axes are read off first.

    Args:
        kind: that of the block, and how one is read whose parts can.
        thing: the block.
        told: the facts that were told.
    """
    if told:
        return read_as_told(kind, thing, told)
    known = kind.read(thing, told).facts
    block = kind.prepare(thing, known)
    if layouts_of(kind, block, known) == [NBD]:
        seen = read_as_told(kind, thing, {"layout": NBD}, untold=True)
        return seen.with_facts(layout=NBD)
    return read_as_told(kind, thing, told, untold=True)


def read_as_told(
    kind: Kind, thing: Any, told: Facts, untold: bool = False
) -> Reading:
    """What can be read off a block of which this was told.

    ``untold``: somebody told nothing, and what is known was read off.

    Raises:
        UnclearError: if that depends on what nobody told.
    """
    usual = kind.read(thing, told)
    known = {**usual.facts, **told}
    block = kind.prepare(thing, known)
    if untold and sees_all(kind, block, known):
        raise UnclearError(properties.MAY_IT_SEE)
    words = ""
    if known.get("formula") in (None, "plain"):
        words = why_unfound(kind, block, told, usual)
        if words != DO_NOT_FIT and names_wrongly(kind, block, told):
            return usual  # and is told so
        lying = usual.with_facts(in_passing=True)
        if are_rather(kind, block, told, usual, lying, found=not words):
            shown = shows_its_steps(kind, block, {**usual.facts, **told})
            lying = with_meanings(kind, block, told, lying)
            return lying.with_facts(in_passing=IN_STEPS) if shown else lying
        if untold and not (words or are_joined(kind, block, told, usual)):
            words = IN_NO_WAY
        if words == DO_NOT_FIT and not is_called(kind, block, known):
            raise UnclearError(UNCALLABLE)
        normed = any(map(is_norm, block.modules())) or JOINED & told.keys()
        if not (words and normed):
            return usual  # who norms nothing may be attention alone
    layouts = layouts_of(kind, block, known)
    if words and layouts:
        usual = as_its_own(usual, words, unknown_mask(kind, thing, known))
    return usual if "layout" in known else in_layouts(usual, layouts)


def in_layouts(usual: Reading, layouts: Sequence[str]) -> Reading:
    """The same, to be tried in each layout if tokens may come first."""
    if NBD not in layouts:
        return usual
    return replace(usual, candidates={**usual.candidates, "layout": layouts})


def shows_its_steps(kind: Kind, block: Any, known: Facts) -> bool:
    """Whether it is seen of all attention in it what its softmax is of."""
    call = kind.adapt(block, known)
    flow = trial_calls.outcome(followed, block, call, *widths_of(block, call))
    return flow is not None and cores.are_known(flow.output)


def one_of_each_order(
    kind: Kind, told: Facts, usual: Reading
) -> Iterator[Reading]:
    """Its readings: what its mask means moves none of its parts."""
    orders: set[Any] = set()
    for reading in kind.readings(told, usual):
        if reading.facts.get("order") not in orders:
            orders.add(reading.facts.get("order"))
            yield reading


def why_unfound(kind: Kind, block: Any, told: Facts, usual: Reading) -> str:
    """Why its parts are found in no order of its norms; "" if they are."""
    why: list[str] = []
    for reading in one_of_each_order(kind, told, usual):
        try:
            exercise = kind.exercise(block, reading.facts)
        except UnclearError as unclear:
            why.append(str(unclear))
            continue
        except Exception:
            return ""  # what is wrong there is told when it is asked
        given = [*exercise.probes[0].make().values()]
        if trial_calls.outcome(exercise.solution, *given) is None:
            why.append(DO_NOT_FIT)
            continue
        call = kind.adapt(block, reading.facts)
        more = beyond(block, exercise, call, given)
        if not more:
            return ""
        why.append(MORE.format(more))
    return why[0]


def are_rather(
    kind: Kind,
    block: Any,
    told: Facts,
    usual: Reading,
    lying: Reading,
    found: bool,
) -> bool:
    """Whether its parts are rather those that lie in its forward.

    That is so if its numbers are theirs, and not those of the parts that were
    ``found``; or at least of theirs wrongly joined, if it was told how they
    are joined. Of parts with norms in them no numbers tell anything.
    """
    fit = partial(fits, kind, block, told)
    known = bool({"order", "norms"} & told.keys())
    if found and fit(usual, False):
        return False
    if found and known and not norms_inside(told) and fit(usual, True):
        return False
    return any(fit(lying, wrongly) for wrongly in (False, True)[: 1 + known])


def are_joined(kind: Kind, block: Any, told: Facts, usual: Reading) -> bool:
    """Whether its parts are joined in a way that is known, right or wrong."""
    return any(fits(kind, block, told, usual, way) for way in (False, True))


def norms_inside(told: Facts) -> bool:
    """Whether a norm was named that lies in a part that was named, too."""
    parts = tuple(
        f"{told[name]}."
        for name in (*ATTENTIONS, "feed_forward")
        if isinstance(told.get(name), str)
    )
    return any(norm.startswith(parts) for norm in told.get("norms") or ())


ATTENTIONS = ("attention", "self_attention", "cross_attention")


def fits(
    kind: Kind, block: Any, told: Facts, usual: Reading, wrongly: bool
) -> bool:
    """Whether its numbers are those of its parts, in some reading.

    Or those of the same parts ``wrongly`` joined. Who is right sees what he
    may see, too.
    """
    for reading in one_of_each_order(kind, told, usual):
        exercise = trial_calls.outcome(kind.exercise, block, reading.facts)
        if exercise is None:
            continue
        call = kind.adapt(block, reading.facts)
        if not (wrongly or beheld.sees_right(exercise, call)):
            continue
        if made_of.is_made_of(exercise, call, wrongly):
            return True
    return False


def beyond(
    block: nn.Module, exercise: Exercise, call: Call, given: list[Tensor]
) -> str:
    """A part with maps that a block calls, and that is none of its parts'."""
    of_parts = ran(block, exercise.solution, given)
    others = [one for one in ran(block, call, given) if one not in of_parts]
    named = {part: name for name, part in block.named_modules()}
    return named[others[0]] if others else ""


def ran(block: nn.Module, call: Call, given: list[Tensor]) -> list[nn.Module]:
    """The parts with maps of their own that are called as something runs."""
    maps = [
        part
        for part in block.modules()
        if any(x.ndim > 1 for x in part.parameters(recurse=False))
    ]
    return parts_called(maps, call, *given)


def unknown_mask(kind: Kind, thing: Any, known: Facts) -> str:
    """The name of a mask of which nobody said what it means; "" if none."""
    name = kind.read(thing, {**known, "formula": "own"}).facts.get("mask_name")
    return name if name and not known.get("mask_name") else ""


def as_its_own(usual: Reading, words: str, mask: str) -> Reading:
    """A block's reading, as one of a formula of its own.

    Args:
        usual: how it was read.
        words: why its parts are not found, and how one tells which they are.
        mask: the name of what may be one, if nobody said what it means.
    """
    why, _, how = words.partition(". ")
    known = {
        "order": None,
        **usual.facts,
        "formula": "own",
        "how": OF_ITS_OWN.sub("", how).removesuffix("."),
    }
    open_ = {n: x for n, x in usual.candidates.items() if n not in known}
    because = why.removesuffix(".")
    if not because.startswith("I "):
        because = because[:1].lower() + because[1:]
    lacks = {**usual.lacks, UNFOUND: because}
    if mask:
        lacks["mask"] = f"nobody said what its {mask} means"
    return replace(usual, facts=known, candidates=open_, lacks=lacks)
