"""What the doctor does not know, so that nobody may be accused by it.

What a mask says may be known to nobody: it was not told, and whoever fails
whatever it says may be called in yet another way. And who raises at nearly
all that he is asked, be it the simplest, may be called otherwise, too.
"""

import re
from collections.abc import Iterable

from selfattn.doctor.kind import Kind
from selfattn.doctor.patient import Facts
from selfattn.doctor.report import Finding, Report

UNCALLED = (
    "However I call it, it raises, so that I know nothing of it. Say how it "
    "is to be called: --list has the facts that tell."
)
OF_OTHER_AXES = (
    "However I call it, what comes out is of another shape or type than I "
    "expect, so that it may take other things than I think. Say how it is to "
    "be called: --list has the facts that tell."
)

UNHELD = (
    "You told {}, and handed what that says, it raises, so that it may take "
    "it under another name or of other axes. Say names=…. {}"
)

OTHER = {"shape", "type"}  # what tells that something else came back
# Who makes masks or tables, or turns features, is asked for shapes above all.
OF_SHAPES = ("causal-mask", "padding-mask", "sinusoidal", "rope")

# What is raised of inputs that are not what was expected, sizes above all.
# An error in a thing's own words says nothing of how it is called.
OF_INPUTS = re.compile(
    "^(?!.*(CUDA|memory)).*(IndexError|AssertionError|EinopsError|"
    "TypeError.*position \\d+|"
    "(RuntimeError|ValueError).*"
    "(shape|size|dimension|multiplied|unpack|divisible|expected))",
    re.DOTALL,
)


def only_assumed(report: Report, kind: Kind, said: Facts) -> str:
    """Which facts are to be told, if all that failed rests on them.

    They were neither told nor seen; "" if something fails without them, or
    if the mistake has a name, which then holds whatever they are. Who told
    what a mask says has told enough, though not which axes it has.
    """
    if report.mistake is not None or not report.findings:
        return ""
    of_outcomes = {f.probe.convention for f in report.findings}
    if of_outcomes <= kind.facts.keys() - said.keys():
        return to_be_told(kind, sorted(of_outcomes))  # nothing else failed
    needs = {
        name: kind.facts[name].need
        for name in report.assumed
        if kind.facts[name].need and kind.facts[name].need not in said
    }
    if not all({*needs.values()} & {*f.probe.needs} for f in report.findings):
        return ""
    return to_be_told(kind, needs)


def to_be_told(kind: Kind, facts: Iterable[str]) -> str:
    """That all depends on these facts."""
    words = "; ".join(
        f"{name}=…, {kind.facts[name].meaning}" for name in facts
    )
    return (
        "All that fails depends on what nobody said, and I could not see it. "
        f"Say {words}."
    )


def hardly_called(report: Report, said: Facts) -> str:
    """That it may be called otherwise, as it raised at nearly all, or "".

    That is so if what it gave was mostly of another shape, as of pictures, or
    another type, or often, of whom nothing was told; and if it always raised,
    or if Python refused what it was handed. Who raises within, of a wrong
    name, say, is at fault; but of what it was handed, it may be the doctor
    who is. Then most will do, if that has nothing in common that it might not
    take.
    """
    found, told = report.findings, bool(said)
    if report.mistake is not None or report.probes < 2:
        return ""
    sorts = [one.difference.sort for one in found]
    always = len(found) == report.probes
    if always and {*sorts} == {"dtype"} and not told:
        return OF_OTHER_AXES
    others = OTHER & {*sorts} and not (said.get("layout") and sized(report))
    if others and report.exercise not in OF_SHAPES:
        other = sum(sort in OTHER or sort == "raises" for sort in sorts)
        enough = (2 if told else 3) * other > report.probes
        return OF_OTHER_AXES if enough else ""
    if {*sorts} != {"raises"}:
        return ""
    if always and (report.uncalled or not told):
        return UNCALLED
    words = [one.difference.sentence for one in found]
    handed = all(map(OF_INPUTS.search, words))
    shared = set.intersection(*({*one.probe.needs} for one in found))
    most = 2 * len(found) > report.probes
    return UNCALLED if handed and most and not shared else ""


def unheld(report: Report, kind: Kind, said: Facts) -> str:
    """That it may take what was told under another name, or of other axes.

    So it may if it raises wherever it is handed that, of its size, and is
    right on all else; unless its axes are among the facts, and were tried.
    """
    found = report.findings
    if report.mistake is not None or "mask_axes" in kind.facts:
        return ""
    told = [n for n in said if n in kind.facts and kind.facts[n].need]
    for name in told:
        need = kind.facts[name].need
        if all(need in f.probe.needs and refuses(f) for f in found):
            return UNHELD.format(name, found[0].difference.sentence)
    return ""


def refuses(found: Finding) -> bool:
    """Whether something raised, of what it was handed."""
    words = found.difference.sentence
    raised = found.difference.sort == "raises"
    return raised and bool(OF_INPUTS.search(words))


def sized(report: Report) -> bool:
    """Whether it gives more numbers than it is asked for, or fewer.

    In whatever order its axes lie, so many it should give. What is seen by
    an experiment is not what it gave.
    """
    return any(
        one.difference.other_size and one.probe.experiment is None
        for one in report.findings
    )
