"""The report: what was found, and how it reads."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from selfattn.doctor.comparison import Difference
from selfattn.doctor.exercise import Mistake
from selfattn.doctor.probes import Probe

WIDTH = 78
NUMERIC = {"value", "nan", "gradient"}  # of the right form, but wrong


class Finding(NamedTuple):
    """A probe on which the answer is wrong, and how."""

    probe: Probe
    difference: Difference
    rule: Mistake | None = None  # the convention it is held to, if not ours


@dataclass(frozen=True, repr=False)
class Report:
    """What the doctor has to say about one answer."""

    exercise: str  # or kind
    probes: int  # how many were tried
    findings: tuple[Finding, ...] = ()  # those that failed
    unanswered: str = ""  # why it looks like a stub, if it does
    mistake: Mistake | None = None  # it agrees with this one on all probes
    likeness: Mistake | None = None  # or with this one, on some of them
    agrees: int = 0  # on so many of those that failed
    snippet: str = ""  # the smallest failing input
    patient: str = ""  # what was examined, if it is no answer to an exercise
    facts: Mapping[str, Any] = field(default_factory=dict)  # found out
    assumed: Mapping[str, Any] = field(default_factory=dict)  # for want of it
    remarks: tuple[Mistake, ...] = ()  # where its conventions are not ours
    not_asked: Mapping[str, str] = field(default_factory=dict)  # and why
    refused: tuple[str, ...] = ()  # those of them at which it raises
    question: str = ""  # which fact is needed, if one is
    trouble: str = ""  # why nothing could be found out

    @property
    def passed(self) -> bool:
        """Whether the answer equals the solution on every probe."""
        return not (
            self.findings or self.unanswered or self.question or self.trouble
        )

    @property
    def likely(self) -> bool:
        """Whether this is a diagnosis, and not just a list of failures."""
        return self.passed or bool(self.mistake or self.likeness)

    def with_(self, **changes: Any) -> "Report":
        """The same report, with something changed."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        """The report as text: what a cell that ends in it shows."""
        if self.patient:
            return "\n".join(about_patient(self))
        if self.unanswered:
            return f"○ {self.exercise}: {self.unanswered}"
        if self.passed:
            on = f"equal to the solution on {self.probes} probes"
            return f"✓ {self.exercise}: {on if self.probes > 1 else 'right'}"
        if self.mistake is not None:
            return "\n".join(
                (
                    f"✗ {self.exercise}: {self.mistake.name}",
                    indent(str(self.mistake)),
                )
            )
        return "\n".join(self._unnamed())

    def _unnamed(self) -> list[str]:
        """The lines of a report on a mistake that has no name here."""
        worst, n = self.findings[0], len(self.findings)
        always = n == self.probes and worst.difference.kind not in NUMERIC
        head = f"wrong on {n} of {self.probes} probes"
        lines = [
            f"✗ {self.exercise}: {head if self.probes > 1 else 'not right'}"
        ]
        if self.likeness is not None:
            of = "It" if self.agrees == n else f"On {self.agrees} of them it"
            name = self.likeness.name
            lines.append(indent(f"{of} looks like “{name}”. {self.likeness}"))
        if self.probes > 1 and not always:
            lines.append(indent(f"This does not hold: {worst.probe.asks}."))
        lines.append(indent(worst.difference.sentence))
        if self.snippet and not (always and worst.difference.kind == "type"):
            lines += ["  The smallest input that I found:", self.snippet]
        return lines


def about_patient(report: Report) -> list[str]:
    """The lines of a report on what is no answer to an exercise."""
    who = f"{report.patient} ({report.exercise})"
    said = [f"{mark(report)} {who}: {headline(report)}"]
    if report.question or report.trouble:
        said.append(indent(report.question or report.trouble))
    elif report.mistake is not None:
        said.append(indent(str(report.mistake)))
        said += sources(report.mistake)
    elif report.findings:
        said += report._unnamed()[1:]
    for mistake in report.remarks:
        said.append(indent(f"A convention, not ours: {mistake}"))
    for why in dict.fromkeys(report.not_asked.values()):
        what = [w for w, y in report.not_asked.items() if y == why]
        said.append(indent(f"Not asked, as {why}: {', '.join(what)}."))
    for verb, facts in (("Found", report.facts), ("Took", report.assumed)):
        if facts:
            listed = ", ".join(f"{n}={x!r}" for n, x in facts.items())
            said.append(
                indent(f"{verb}: {listed}. Say otherwise to override.")
            )
    return said


def mark(report: Report) -> str:
    """One sign for a verdict."""
    if report.unanswered or report.question:
        return "○"
    return "✓" if report.passed else "✗"


def headline(report: Report) -> str:
    """A verdict in a few words."""
    if report.unanswered:
        return report.unanswered
    if report.question:
        return "tell me more"
    if report.trouble:
        return "it could not be examined"
    if report.passed:
        return f"healthy, on {report.probes} probes"
    if report.mistake is not None:
        return report.mistake.name
    return f"wrong on {len(report.findings)} of {report.probes} probes"


def sources(mistake: Mistake) -> list[str]:
    """Where a mistake is explained, and where it was met."""
    said = []
    if mistake.chapter:
        said.append(indent(f"Explained in the chapter “{mistake.chapter}”."))
    if mistake.thread:
        said.append(indent(f"Seen in {mistake.thread}"))
    return said


def indent(text: str) -> str:
    """A paragraph, wrapped and set in by two spaces."""
    return textwrap.fill(
        text, WIDTH, initial_indent="  ", subsequent_indent="  "
    )
