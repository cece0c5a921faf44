"""What is wrong with a part that a thing is only seen to call.

A block is held to how it joins its parts, whatever these compute, and a model
to what holds of all models. What their attention computes is seen only if it
is asked alone. Of that only what has a name is told: the rest may be its own.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from selfattn.doctor.engine.choice import decide
from selfattn.doctor.engine.diagnosis import Case
from selfattn.doctor.engine.promises import MAY_BE_ITS_OWN
from selfattn.doctor.engine.readings import named_at_last
from selfattn.doctor.engine.visits import NUMBERS, Visit, looked_at, read
from selfattn.doctor.exercise import Mistake, name_of
from selfattn.doctor.exercises.dot_product import weights
from selfattn.doctor.kind import Inner, Kind, Reading
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.patient import Facts, unseen
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Difference, Finding, Report

# In a block of its own formula, the attention may be linear.
MAY_BE_INSIDE = {*MAY_BE_ITS_OWN, name_of(weights.no_softmax)}


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
    looks = [said]
    if exact and "takes" not in said:
        looks.insert(0, {**said, "takes": ()})
    for facts in looks:
        try:
            found = in_one_look(part, find_kind(kind), facts, exact)
        except Exception:
            return None  # it is called otherwise, which is no fault
        if found is not None:
            return found
    return None


def in_one_look(
    part: Any, kind: Kind, said: Facts, exact: bool
) -> Alone | None:
    """The mistake of a part by these facts.

    Who is healthy by a formula of its own is so, whatever else it is like.
    """
    usual = kind.read(part, said)
    less = kind.fallback(part, said, usual)
    own = None if less is None else by_its_numbers(part, kind, said, less)
    case = own
    if case is None or not (case.report.passed or case.report.mistake):
        case = asked(part, kind, said, usual)
    mistake = case.report.mistake
    if mistake is None or (exact and NUMBERS in case.exercise.optional):
        return None
    may_be = MAY_BE_INSIDE if exact or case is own else ()
    return Alone(mistake, mistake.name in {*kind.meant, *may_be})


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

    Who knows that its attention is unlike others says ``inside=False``.
    """
    if kind.within is None or not said.get("inside", True):
        return report
    if not report.passed:
        return known_by_sight(report, thing, kind, said)
    _, found = found_inside(report, thing, kind, said)
    return report_on(report, found) if found else report


def found_inside(
    report: Report, thing: Any, kind: Kind, said: Facts
) -> tuple[Inner, dict[str, Alone]]:
    """The parts of a thing that can be asked alone; and those that are ill."""
    facts = {**report.facts, **report.assumed, **said}
    exact = facts.get("formula") == "own"
    facts = {**kind.read(thing, facts if exact else said).facts, **facts}
    parts = kind.within(thing, facts) if kind.within else {}
    found = {
        name: wrong
        for name, (part, of, told) in parts.items()
        if (wrong := alone(part, of, {**told, "dtypes": ("float32",)}, exact))
    }
    return parts, found


def known_by_sight(
    report: Report, thing: Any, kind: Kind, said: Facts
) -> Report:
    """The report on one that is ill, where no numbers have told of what.

    Of one of its own formula is known who sees whom, and that has many
    causes: a softmax over queries shows the future, too. If a part is ill
    that is asked alone, it is that; and the name is sure if all can be asked
    and are well, so that it is the way in which they are used.
    """
    mistake, own = report.mistake, report.facts.get("formula")
    unnamed = mistake is None and bool(report.findings)
    own = said.get("formula", own) == "own"
    if not own or not (unnamed or (mistake and mistake.name in kind.sights)):
        return report
    try:
        parts, found = found_inside(report, thing, kind, said)
    except Exception:
        return report  # it is too ill for its parts to be found
    ill = {name: one for name, one in found.items() if not one.meant}
    if ill:
        first = next(iter(ill.values())).mistake
        inside = {name: one.words for name, one in ill.items()}
        return report.with_(
            mistake=first, likeness=None, inside=inside, different=""
        )
    if mistake is None or asked_of_masks(parts):
        return report
    return report.with_(mistake=None, likeness=mistake)


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
