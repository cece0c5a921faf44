"""Whose promise a patient broke: his own, or one that nobody made.

Who tells nothing has promised what can be read off him, and no more: that
the scale is the usual one, say, is assumed. What breaks an assumed promise
alone is different from the usual, which may be meant. Who tells something of
his patient is held to all that is usual and that he did not except; but not
to what nobody could have asked him for, nor to what depends on a fact that
he left open. And a number type is promised by its name alone, whatever else
is told: nearly all code runs in one or two of the four.
"""

from selfattn.doctor.deviations import hiding
from selfattn.doctor.engine.two_at_once import exchanged
from selfattn.doctor.engine.unknown import (
    hardly_called,
    only_assumed,
    unheld,
)
from selfattn.doctor.exercise import Mistake, name_of
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.dot_product import weights
from selfattn.doctor.exercises.multihead import attention as multihead
from selfattn.doctor.kind import TYPES as NAMES
from selfattn.doctor.kind import Kind
from selfattn.doctor.patient import Facts
from selfattn.doctor.report import Finding, Report
from selfattn.doctor.report.record import NUMERIC

TYPES = set(NAMES)
AXES = {"batches", "heads"}  # which one may add by a loop
FINE = {"finite"}  # who hides with -inf need not add before he scales
EDGES = {"odd", "long", "early", "rowless"}  # sizes that few ever ask for
IN_FLOAT32 = name_of(functions.computed_in_float32)
# What is a mistake only if there is a flag, by which one could ask.
BY_FLAG = {name_of(hiding.causal_without_being_asked): "causal"}

# Who has a formula of his own may have this in it.
MAY_BE_ITS_OWN = {
    name_of(weights.sigmoid_instead_of_softmax),
    name_of(weights.divided_by_d),
    name_of(multihead.input_added),
}
OF_A_FORMULA = "what else is its own"


def weighed(report: Report, kind: Kind, said: Facts) -> Report:
    """A report that tells broken promises from what was only assumed."""
    if report.passed:
        return report.with_(untried=untried(report, kind, said))
    if not report.findings:
        return report
    report = without_float64(report)
    report = report.with_(mistake=surest_first(report.mistake, kind))
    if unknown := only_assumed(report, kind, said):
        return report.with_(different=unknown)
    if uncalled := hardly_called(report, said) or unheld(report, kind, said):
        return report.with_(different=uncalled)
    if said:
        return report.with_(different=beyond_what_was_told(report, kind, said))
    return report.with_(different=different(report, kind))


def without_float64(report: Report) -> Report:
    """What else is wrong with who computes in float32, which is no fault.

    Who did not promise float64 may; what remains has no name.
    """
    mistake = report.mistake
    if mistake is None or mistake.name != IN_FLOAT32 or mistake.also:
        return report
    if "float64" in report.promised:
        return report
    rest = [f for f in report.findings if "float64" not in f.probe.needs]
    if not rest:
        return report
    return report.with_(mistake=None, findings=tuple(rest))


def surest_first(mistake: Mistake | None, kind: Kind) -> Mistake | None:
    """Of two mistakes the one first that nobody makes on purpose."""
    if mistake is None or mistake.also is None:
        return mistake
    if mistake.name in kind.meant and mistake.also.name not in kind.meant:
        return exchanged(mistake, mistake.also)
    return mistake


def untried(report: Report, kind: Kind, said: Facts) -> str:
    """What was told, and could not be tried; "" if there is no such thing.

    Who says what his patient takes has not promised what he leaves out, even
    if he says how it would be meant.
    """
    needs = {n: kind.facts[n].need for n in said if n in kind.facts}
    takes = said.get("takes")
    gone = [
        name
        for name, need in needs.items()
        if report.lacking.get(need) and (takes is None or need in takes)
    ]
    if not gone:
        return ""
    return (
        f"You told {' and '.join(gone)}, but I find no way to try it: "
        f"{report.lacking[needs[gone[0]]]}. Say under which name it is to be "
        "handed over, with names=…."
    )


def beyond_what_was_told(report: Report, kind: Kind, said: Facts) -> str:
    """Which usual thing it is not, where what was told leaves that open.

    Without a flag nobody could ask it to be causal, and it is built to be or
    not; of whose axes nothing is said, other axes are not promised; and
    number types, and sizes that hardly anybody asks for, are promised by
    name alone.
    """
    mistake = report.mistake
    edges = set() if said.get("takes") is not None else EDGES
    free = (TYPES | edges) - set(report.promised)
    if unpromised := promised_by_nobody(report, free):
        return unpromised
    if mistake is not None:
        if report.facts.get("formula", said.get("formula")) == "own":
            meant = kind.meant.get(mistake.name, OF_A_FORMULA)
            if mistake.name in {*kind.meant, *MAY_BE_ITS_OWN}:
                return if_meant([meant])
        flag = BY_FLAG.get(mistake.name, "")
        open_ = flag in report.lacking and flag not in said
        open_ |= may_be_meant(mistake.name, kind, report.facts, said)
        return if_meant([kind.meant.get(mistake.name, "")]) if open_ else ""
    if "layout" in kind.facts and "layout" not in said:
        free |= AXES - set(report.promised)
    return promised_by_nobody(report, free)


def may_be_meant(name: str, kind: Kind, seen: Facts, said: Facts) -> bool:
    """Whether a mistake is one only by a fact, neither told nor read off."""
    fact = kind.promised_by.get(name)
    if isinstance(fact, tuple):
        return not {*fact} & said.keys()
    return fact is not None and fact not in {**seen, **said}


def is_promised(name: str, kind: Kind, seen: Facts) -> bool:
    """Whether a mistake breaks a fact that was read off."""
    return kind.promised_by.get(name) in seen


def different(report: Report, kind: Kind) -> str:
    """Which usual thing it is not, if it broke no promise of its own."""
    mistake = report.mistake
    facts = [
        kind.meant.get(one.name, "")
        for one in each(mistake)
        if not is_promised(one.name, kind, report.facts)
    ]
    if facts and all(facts) and len(facts) == len(each(mistake)):
        return if_meant(facts)
    types = TYPES | EDGES | (AXES | FINE if mistake is None else set())
    free = types - set(report.promised)
    said = promised_by_nobody(report, free, shared=True)
    if said or mistake is not None:
        return said
    designs = kind.meant.keys() - kind.promised_by.keys()
    return of_no_formula(report, free) if designs else ""


def if_meant(facts: list[str]) -> str:
    """That something is a fact, if it is meant; "" if there is no such."""
    words = " and ".join(filter(None, facts))
    if not words:
        return ""
    return f"Nobody said that it should be. If it is meant, say {words}."


def promised_by_nobody(
    report: Report, free: set[str], shared: bool = False
) -> str:
    """What failed, if all of it needs what is not promised.

    That is one of ``free`` each, or the same for all if it is ``shared``.
    """
    same = shared and common(report)
    if not all(same or free & needs(found) for found in report.findings):
        return ""
    claims = "; ".join(f.probe.claim for f in report.findings[:3])
    return (
        f"Nobody promised this: {claims}. If it should hold, name it in "
        "takes=[…] or dtypes=[…]; if it need not, tell what holds."
    )


def of_no_formula(report: Report, free: set[str]) -> str:
    """That its numbers are its own, if nothing else is wrong with it.

    What a query gets that may see nothing is a convention, and that it fails
    in a number type that was not promised says nothing of its formula.
    """
    sorts = {
        f.difference.sort
        for f in report.findings
        if not (free & needs(f) or f.probe.convention)
    }
    if misread(report, sorts):
        sorts -= {"raises", "shape", "nan"}
    if not sorts or not sorts <= NUMERIC - {"nan"}:
        return ""
    return (
        "Its numbers are those of no formula that I know, right or wrong. If "
        "it has one of its own, say which facts are its own: --list has them."
    )


def misread(report: Report, sorts: set[str]) -> bool:
    """Whether its axes may have been taken for others than they are.

    Nobody told of them; and who is wrong on most probes in each layout, and
    raises on some, may have been right in one that was not tried.
    """
    assumed = {**report.facts, **report.assumed}
    many = 2 * len(report.findings) > report.probes
    return "layout" in assumed and many and bool(sorts & (NUMERIC - {"nan"}))


def each(mistake: Mistake | None) -> list[Mistake]:
    """A mistake, or the two that it is; nothing, if there is none."""
    if mistake is None:
        return []
    return [mistake] if mistake.also is None else [mistake, mistake.also]


def needs(found: Finding) -> set[str]:
    """What a probe that failed asks for besides."""
    return set(found.probe.needs)


def common(report: Report) -> set[str]:
    """What all that failed ask for, and what is neither told nor seen."""
    shared = set.intersection(*map(needs, report.findings))
    return shared - set(report.promised)
