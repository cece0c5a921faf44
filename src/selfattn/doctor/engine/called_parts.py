"""What is wrong with a part that a thing is only seen to call.

A block is held to how it joins its parts, whatever these compute, and a model
to what holds of all models. What their attention computes is seen only if it
is asked alone. Of that only what has a name is told: the rest may be its own.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from selfattn.doctor.engine.choice import decide
from selfattn.doctor.engine.readings import named_at_last
from selfattn.doctor.engine.visits import Visit, looked_at, read
from selfattn.doctor.exercise import Mistake
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.patient import Facts, unseen
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Difference, Finding, Report


class Alone(NamedTuple):
    """The mistake of a part, and whether it may be meant."""

    mistake: Mistake
    meant: bool

    @property
    def words(self) -> str:
        """What is said of it."""
        usual = "different from the usual" if self.meant else "ill"
        return f"{usual}: {self.mistake.name}"


def alone(part: Any, kind: str, said: Facts) -> Alone | None:
    """The mistake of a part that is asked alone; None if it has no name."""
    held = find_kind(kind)
    try:
        seen = held.read(part, said)
        prepared = held.prepare(part, {**seen.facts, **said})
        visit = Visit(part, prepared, held, said, unseen)
        cases = [*read(visit, looked_at(visit, seen))]
        cases = named_at_last(cases, lambda: False)
    except Exception:
        return None  # it is called otherwise, which is no fault
    mistake = decide(cases, held).report.mistake
    if mistake is None:
        return None
    return Alone(mistake, mistake.name in held.meant)


def looked_into(report: Report, thing: Any, kind: Kind, said: Facts) -> Report:
    """The report on a healthy thing; or, of a part that is not, on that.

    Who knows that its attention is unlike others says ``inside=False``.
    """
    if (
        not report.passed
        or kind.within is None
        or not said.get("inside", True)
    ):
        return report
    seen = kind.read(thing, said).facts
    facts = {**seen, **report.facts, **report.assumed, **said}
    found = {
        name: wrong
        for name, (part, of, told) in kind.within(thing, facts).items()
        if (wrong := alone(part, of, {**told, "dtypes": ("float32",)}))
    }
    return report_on(report, found) if found else report


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
