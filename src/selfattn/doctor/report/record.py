"""What was found of one answer: the facts of a report, without words."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from torch import Tensor

from selfattn.doctor.exercise import Mistake
from selfattn.doctor.probes import Probe

NUMERIC = {"value", "nan", "gradient"}  # of the right form, but wrong


class Difference(NamedTuple):
    """One way in which an answer is not the solution."""

    # nothing, type, raises, modifies, shape, dtype, nan, value, or gradient
    sort: str
    sentence: str
    yours: Tensor | None = None
    expected: Tensor | None = None
    other_size: bool = False  # of a shape: it holds more numbers, or fewer


class Finding(NamedTuple):
    """A probe on which the answer is wrong, and how."""

    probe: Probe
    difference: Difference
    rule: Mistake | None = None  # the convention it is held to, if not ours


@dataclass(frozen=True, repr=False)
class Record:
    """What was found of one answer; a `Report` is one that can be read."""

    exercise: str  # or kind
    probes: int  # how many were tried
    findings: tuple[Finding, ...] = ()  # those that failed
    unanswered: str = ""  # why it looks like a stub, if it does
    mistake: Mistake | None = None  # it agrees with this one on all probes
    likeness: Mistake | None = None  # or with this one, on some of them
    alike_on: int = 0  # of the probes that failed, on so many
    snippet: str = ""  # the smallest failing input
    patient: str = ""  # what was examined, if it is no answer to an exercise
    facts: Mapping[str, Any] = field(default_factory=dict)  # found out
    assumed: Mapping[str, Any] = field(default_factory=dict)  # for want of it
    remarks: tuple[Mistake, ...] = ()  # where its conventions are not ours
    not_asked: Mapping[str, str] = field(default_factory=dict)  # and why
    refused: tuple[str, ...] = ()  # those of them at which it raises
    lacking: Mapping[str, str] = field(default_factory=dict)  # by their needs
    uncalled: bool = False  # Python always refused what it was handed
    promised: tuple[str, ...] = ()  # what of the optional was told or seen
    different: str = ""  # which usual thing it is not, that nobody promised
    untried: str = ""  # what was promised and could not be tried
    inside: Mapping[str, str] = field(default_factory=dict)  # layer by layer
    question: str = ""  # which fact is needed, if one is
    trouble: str = ""  # why nothing could be found out

    @property
    def passed(self) -> bool:
        """Whether the answer equals the solution on every probe."""
        return not (
            self.findings
            or self.unanswered
            or self.question
            or self.trouble
            or self.untried
        )

    @property
    def likely(self) -> bool:
        """Whether this is a diagnosis, and not just a list of failures."""
        return self.passed or bool(self.mistake or self.likeness)

    def with_(self, **changes: Any) -> Self:
        """The same, with something changed."""
        return replace(self, **changes)

    @property
    def exit_code(self) -> int:
        """0 for healthy, 1 for ill, 2 if that could not be told.

        It is 2 after a crash, say, whose `mark` is that of an illness: it has
        not passed, but a script may want to try it again. It is 3 for what is
        different from the usual, and 4 if something that was promised could
        not be tried.
        """
        if self.question or self.unanswered or self.trouble:
            return 2
        if self.different:
            return 3
        if self.untried:
            return 4
        return 0 if self.passed else 1

    def portable(self) -> Self:
        """The same in words and numbers, without functions: it can be sent."""
        return self.with_(
            mistake=bare(self.mistake),
            likeness=bare(self.likeness),
            remarks=tuple(bare(mistake) for mistake in self.remarks),
            findings=tuple(
                Finding(
                    replace(
                        found.probe, inputs={}, change=None, experiment=None
                    ),
                    found.difference._replace(yours=None, expected=None),
                    bare(found.rule),
                )
                for found in self.findings
            ),
        )


def bare(mistake: Any) -> Any:
    """A mistake's words alone; None, if there is no mistake."""
    return mistake and replace(mistake, answer=None, also=bare(mistake.also))
