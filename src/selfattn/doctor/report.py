"""The report: what was found, and how it reads."""

import textwrap
from dataclasses import dataclass

import torch
from torch import Tensor

from selfattn.doctor.comparison import Difference
from selfattn.doctor.exercise import Mistake
from selfattn.doctor.probes import Inputs, Probe

WIDTH = 78
MAX_SHOWN = 60  # numbers; a snippet with more is no help
NUMERIC = {"value", "nan", "gradient"}  # of the right form, but wrong


@dataclass(frozen=True)
class Finding:
    """A probe on which the answer is wrong, and how."""

    probe: Probe
    difference: Difference


@dataclass(frozen=True, repr=False)
class Report:
    """What the doctor has to say about one answer."""

    exercise: str
    probes: int  # how many were tried
    findings: tuple[Finding, ...] = ()  # those that failed
    unanswered: str = ""  # why it looks like a stub, if it does
    mistake: Mistake | None = None  # it agrees with this one on all probes
    likeness: Mistake | None = None  # or with this one, on some of them
    agrees: int = 0  # on so many of those that failed
    snippet: str = ""  # the smallest failing input

    @property
    def passed(self) -> bool:
        """Whether the answer equals the solution on every probe."""
        return not self.findings and not self.unanswered

    def __repr__(self) -> str:
        """The report as text: what a cell that ends in it shows."""
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


def indent(text: str) -> str:
    """A paragraph, wrapped and set in by two spaces."""
    return textwrap.fill(
        text, WIDTH, initial_indent="  ", subsequent_indent="  "
    )


def snippet(
    inputs: Inputs, by_name: tuple[str, ...], name: str, found: Difference
) -> str:
    """Code to copy that shows a failure; nothing if it would be too long."""
    tensors = [x for x in inputs.values() if isinstance(x, Tensor)]
    if not inputs or sum(x.numel() for x in tensors) > MAX_SHOWN:
        return ""
    lines = [f"{key} = {as_code(x)}" for key, x in inputs.items()]
    arguments = (f"{n}={n}" if n in by_name else n for n in inputs)
    lines.append(f"{name}({', '.join(arguments)})")
    short = found.expected is not None and found.expected.numel() <= MAX_SHOWN
    if found.yours is not None and found.expected is not None and short:
        what = "gradient" if found.kind == "gradient" else "yours"
        lines.append(f"# {what}: {rounded(found.yours)}")
        lines.append(f"# expected: {rounded(found.expected)}")
    else:
        lines.append(f"# {found.sentence}")
    return "\n".join(
        textwrap.fill(
            line,
            WIDTH,
            initial_indent="    ",
            subsequent_indent="    # " if line[0] == "#" else " " * 8,
        )
        for line in lines
    )


def as_code(x: object) -> str:
    """Code that makes an input.

    >>> as_code(torch.tensor([[1.0, 0.5]]))
    'torch.tensor([[1.0, 0.5]])'
    """
    if not isinstance(x, Tensor):
        return repr(x)
    dtype = f", dtype={x.dtype}" if x.dtype == torch.float64 else ""
    if not x.is_contiguous() and x.mT.is_contiguous():
        return f"torch.tensor({x.mT.tolist()}{dtype}).mT"
    return f"torch.tensor({x.tolist()}{dtype})"


def rounded(x: Tensor) -> str:
    """The numbers of a tensor, to four places.

    >>> rounded(torch.tensor([1 / 3, -1e-9]))
    '[0.3333, 0.0]'
    """
    return str((x.double().round(decimals=4) + 0.0).tolist())
