"""What is wrong with a part that a thing is only seen to call.

A block is held to how it joins its parts, whatever these compute, and a model
to what holds of all models. What their attention computes is seen only if it
is asked alone. Of that only what has a name is told: the rest may be its own.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from selfattn.doctor import sayings
from selfattn.doctor.engine.choice import decide
from selfattn.doctor.engine.diagnosis import Case
from selfattn.doctor.engine.promises import MAY_BE_ITS_OWN
from selfattn.doctor.engine.readings import named_at_last
from selfattn.doctor.engine.visits import NUMBERS, Visit, looked_at, read
from selfattn.doctor.exercise import Mistake, name_of
from selfattn.doctor.exercises.dot_product import weights
from selfattn.doctor.kind import IN_STEPS, UNFOUND, Inner, Kind, Reading
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.kinds.layer.mistakes import masks
from selfattn.doctor.patient import Facts, unseen
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Difference, Finding, Report

# In a block of its own formula, the attention may be linear.
MAY_BE_INSIDE = {*MAY_BE_ITS_OWN, name_of(weights.no_softmax)}


NOT_CAUSAL = name_of(masks.not_causal)
SCALES = {name_of(weights.no_scale), name_of(weights.divided_by_d)}


UNHEARD = (
    "Its attention lies in its forward, and I cannot tell which maps are for "
    "queries, keys and values, so that I do not know what it computes. Put it "
    "into a module of its own; or say inside=False, and I only look at how "
    "its parts are joined."
)


# What is not asked of one of which something was told, and in whose steps
# nothing is wrong. Of one of which nothing was told that is too little.
UNTOLD = {
    "which maps are for queries, keys and values": "its attention lies in its "
    "forward, and their names do not tell"
}


class Alone(NamedTuple):
    """The mistake of a part, and whether it may be meant."""

    mistake: Mistake
    meant: bool

    @property
    def words(self) -> str:
        """What is said of it."""
        usual = "different from the usual" if self.meant else "ill"
        return f"{usual}: {self.mistake.name}"


def alone(
    part: Any, kind: str, said: Facts, exact: bool = False
) -> Alone | None:
    """The mistake of a part that is asked alone; None if it has no name.

    Args:
        part: what is asked.
        kind: of things like it.
        said: what is known of it.
        exact: whether only its numbers are evidence, and no property that it
            lacks: it may have properties of its own. What a mask changes is
            asked last, as nobody told what one means to it.
    """
    return next(filter(None, asked_of(part, kind, said, exact)), None)


def asked_of(
    part: Any, kind: str, said: Facts, exact: bool
) -> Iterator[Alone | None]:
    """The mistake of a part, look by look; None if it is known to be well."""
    looks = [said]
    if exact and "takes" not in said:
        looks.insert(0, {**said, "takes": ()})
    for facts in looks:
        try:
            yield from in_one_look(part, find_kind(kind), facts, exact)
        except Exception:
            return  # it is called otherwise, which is no fault


def in_one_look(
    part: Any, kind: Kind, said: Facts, exact: bool
) -> Iterator[Alone | None]:
    """The mistake of a part by these facts, or None; nothing if unclear."""
    case, is_own = likeliest(part, kind, said)
    mistake = case.report.mistake
    if exact and NUMBERS in case.exercise.optional:
        return
    if mistake is not None:
        may_be = MAY_BE_INSIDE if exact or is_own else ()
        yield Alone(mistake, mistake.name in {*kind.meant, *may_be})
    elif case.report.passed:
        yield None


def likeliest(part: Any, kind: Kind, said: Facts) -> tuple[Case, bool]:
    """A part's case by these facts; and whether by a formula of its own.

    Who is healthy by that is so, whatever else it is like.
    """
    usual = kind.read(part, said)
    less = kind.fallback(part, said, usual)
    own = None if less is None else by_its_numbers(part, kind, said, less)
    case = own
    if case is None or not (case.report.passed or case.report.mistake):
        case = asked(part, kind, said, usual)
    return case, case is own


def asked(part: Any, kind: Kind, said: Facts, seen: Reading) -> Case:
    """A part's case in the likeliest of some ways to read it."""
    prepared = kind.prepare(part, {**seen.facts, **said})
    visit = Visit(part, prepared, kind, said, unseen)
    cases = [*read(visit, looked_at(visit, seen))]
    return decide(named_at_last(cases, lambda: False), kind)


def by_its_numbers(
    part: Any, kind: Kind, said: Facts, less: Reading
) -> Case | None:
    """A part's case by what is found in it; None if its numbers are not."""
    case = asked(part, kind, said, less)
    return None if NUMBERS in case.exercise.optional else case


def looked_into(report: Report, thing: Any, kind: Kind, said: Facts) -> Report:
    """The report on a healthy thing; or, of a part that is not, on that.

    Who knows that its attention is unlike others says ``inside=False``; and
    whose numbers are those of a formula that was told, needs no other look.
    """
    if callable(said.get("formula")):
        if report.passed:
            return report
        said = {**said, "formula": "own"}
    if kind.within is None or not said.get("inside", True):
        return report
    if not report.passed:
        return known_by_sight(report, thing, kind, said)
    _, found = found_inside(report, thing, kind, said)
    if ill := those_wrong(found):
        facts = {**kind.read(thing, said).facts, **report.facts, **said}
        return report_on(report, held_to(ill, kind, said, facts))
    if UNFOUND not in report.lacking:
        seen = kind.read(thing, said).facts
        if any(found.values()) or not lies_in_forward(seen):
            return report
        if seen["in_passing"] != IN_STEPS or not said:
            return report.with_(question=UNHEARD)
        return report.with_(not_asked={**report.not_asked, **UNTOLD})
    known = any(found.values()) and not names_parts(kind, said)
    return report if known else asked_for(report)


def lies_in_forward(facts: Facts) -> bool:
    """Whether a block's parts lie in its forward, where nobody calls them."""
    return bool(facts.get("in_passing"))


def names_parts(kind: Kind, said: Facts) -> bool:
    """Whether somebody named parts: he wants to know how they are joined."""
    told = [kind.facts[n] for n, x in said.items() if n in kind.facts and x]
    return any(fact.saying in sayings.OF_PARTS for fact in told)


def asked_for(report: Report) -> Report:
    """The report on one of whose parts some are not found, and are needed.

    So they are if they were named, and if nothing is found that attends: then
    too little was asked to call it healthy.
    """
    why = report.lacking[UNFOUND]
    (how,) = (w for w, y in report.not_asked.items() if y is why)
    rest = "What else holds of all blocks holds of it, too."
    said = f"{why[:1].upper()}{why[1:]}", how.partition(". ")[2], rest
    words = ". ".join(one.removesuffix(".") for one in said if one)
    return report.with_(question=f"{words}.")


def found_inside(
    report: Report, thing: Any, kind: Kind, said: Facts
) -> tuple[Inner, dict[str, list[Alone | None]]]:
    """The parts of a thing that can be asked alone; and what they answer."""
    facts = {**report.facts, **report.assumed, **said}
    own = facts.get("formula") == "own"
    facts = {**kind.read(thing, facts if own else said).facts, **facts}
    exact = own or lies_in_forward(facts)
    parts = kind.within(thing, facts) if kind.within else {}
    more: dict[str, Any] = {"dtypes": ("float32",)}
    if UNFOUND in report.lacking:
        more["takes"] = ()  # nobody told what a mask means in it
    found = {
        name: up_to_a_mistake(asked_of(part, of, {**told, **more}, exact))
        for name, (part, of, told) in parts.items()
    }
    return parts, found


def up_to_a_mistake(
    answers: Iterator[Alone | None],
) -> list[Alone | None]:
    """What a part answers until it is wrong, after which it is not asked."""
    heard = []
    for one in answers:
        heard.append(one)
        if one is not None:
            break
    return heard


def those_wrong(
    found: Mapping[str, list[Alone | None]],
) -> dict[str, Alone]:
    """The parts that are wrong, and how."""
    return {
        name: wrong
        for name, heard in found.items()
        for wrong in heard
        if wrong is not None
    }


def held_to(
    wrong: Mapping[str, Alone], kind: Kind, said: Facts, facts: Facts
) -> Mapping[str, Alone]:
    """The parts that are wrong; of a scale, too, if it could have been told.

    Who told of a block how it joins what lies in its forward had a word for
    it. A part that lies elsewhere may be another's, and is asked after.
    """
    told = said.keys() - {"inside"} and "scale" in kind.facts
    own = facts.get("formula") == "own"
    if own or not (told and lies_in_forward(facts)):
        return wrong
    usual = SCALES | MAY_BE_INSIDE
    return {
        name: one._replace(meant=one.meant and one.mistake.name not in usual)
        for name, one in wrong.items()
    }


def known_by_sight(
    report: Report, thing: Any, kind: Kind, said: Facts
) -> Report:
    """The report on one that is ill, where no numbers have told of what.

    What is known of one by who sees whom has many causes: a softmax over
    queries shows the future, too. If a part is ill that is asked alone, it is
    that; and the name is sure if all can be asked and are well, so that it is
    the way in which they are used.
    """
    mistake = report.mistake
    unnamed = mistake is None and bool(report.findings)
    if not (unnamed or (mistake and mistake.name in kind.sights)):
        return report
    if mistake and any(f.probe.experiment is None for f in report.findings):
        return report  # numbers have told it
    try:
        parts, found = found_inside(report, thing, kind, said)
    except Exception:
        return report  # it is too ill for its parts to be found
    wrong = those_wrong(found)
    ill = {name: one for name, one in wrong.items() if not one.meant}
    if mistake and {one.mistake.name for one in ill.values()} == {NOT_CAUSAL}:
        return report  # it is the same, in other words
    if ill:
        first = next(iter(ill.values())).mistake
        inside = {name: one.words for name, one in ill.items()}
        return report.with_(
            mistake=first, likeness=None, inside=inside, different=""
        )
    if mistake is None or (asked_of_masks(parts) and are_well(found)):
        return report
    return report.with_(mistake=None, likeness=mistake)


def are_well(found: Mapping[str, list[Alone | None]]) -> bool:
    """Whether all parts that were asked are known to be well."""
    return all(heard and heard[-1] is None for heard in found.values())


def asked_of_masks(parts: Inner) -> bool:
    """Whether there are parts, and all can be asked what they hide."""
    known = [told for _, _, told in parts.values()]
    asked = ("takes" not in told or "causal" in told for told in known)
    return bool(known) and all(asked)


def report_on(report: Report, found: Mapping[str, Alone]) -> Report:
    """The report on a thing of which these parts are wrong."""
    ill = [one.mistake for one in found.values() if not one.meant]
    meant = [one.mistake for one in found.values() if one.meant]
    asks = (
        "Nobody said that the attention in it should be so. If it is meant, "
        "say scale=… if it is that, or inside=False, and I only look at how "
        "its parts are joined."
    )
    return report.with_(
        findings=tuple(
            Finding(
                Probe(f"{name}, asked alone, is well", {}),
                Difference("value", f"{name} is {one.words}."),
            )
            for name, one in found.items()
        ),
        mistake=[*ill, *meant][0],
        inside={name: one.words for name, one in found.items()},
        different="" if ill else asks,
    )
