"""A report for people: in a terminal, in a notebook, or as plain text."""

import html
import json
import textwrap
from dataclasses import replace
from typing import Any, NamedTuple

from selfattn.doctor.exercise import Mistake
from selfattn.doctor.report.chapters import in_the_book
from selfattn.doctor.report.record import NUMERIC, Difference, Record
from selfattn.doctor.report.rows import seen_of_weights

WIDTH = 78
COLOURS = {"✓": "green", "✗": "red", "○": "yellow"}
# The book's theme has these variables; elsewhere what follows them is taken.
BORDERS = {
    "✓": "var(--pst-color-success, #2e7d32)",
    "✗": "var(--pst-color-danger, #c62828)",
    "○": "var(--pst-color-warning, #a15c00)",
}


class Block(NamedTuple):
    """A paragraph, and what it is for."""

    role: str  # head, text, code or note
    text: str


def blocks(report: Record) -> list[Block]:
    """A report in paragraphs."""
    who = report.patient and f"{report.patient} ({report.exercise})"
    found = [Block("head", f"{who or report.exercise}: {headline(report)}")]
    if report.different:
        found.append(Block("text", report.different))
    if report.question or report.trouble or report.untried:
        text = report.question or report.trouble or report.untried
        found.append(Block("text", text))
    elif report.mistake is not None:
        found += mistake_in_words(report.mistake, bool(report.patient))
    elif report.findings:
        found += what_fails(report)
    for mistake in report.remarks:
        text = f"A convention that is not the book's: {mistake}"
        found.append(Block("note", text))
    return found + notes(report)


def mark(report: Record) -> str:
    """One sign for a verdict: ✓ if it passed; ○ if somebody is to say more.

    Else ✗, also where there is no diagnosis: what hangs has not passed.

    >>> mark(Record("softmax", 9, patient="mine"))
    '✓'
    """
    if report.unanswered or report.question or report.different:
        return "○"
    if report.untried:
        return "○"
    return "✓" if report.passed else "✗"


def headline(report: Record) -> str:
    """A verdict in a few words."""
    n = report.probes
    if report.unanswered:
        return report.unanswered
    if report.question or report.trouble:
        return "tell me more" if report.question else "no diagnosis"
    if report.untried:
        return "a promise could not be tried"
    if report.passed and report.patient:
        return f"healthy, on {n} probes"
    if report.passed:
        return f"equal to the solution on {n} probes" if n > 1 else "right"
    usual = "different from the usual: " if report.different else ""
    if report.mistake is not None:
        return f"{usual}{names_of(report.mistake)}"
    if usual:
        return f"{usual}on {len(report.findings)} of {n} probes"
    wrong = f"wrong on {len(report.findings)} of {n} probes"
    return wrong if n > 1 else "not right"


def names_of(mistake: Mistake) -> str:
    """The name of a mistake, or of the two that were made at once."""
    if mistake.also is None:
        return mistake.name
    return f"{mistake.name}, and {mistake.also.name}"


def mistake_in_words(mistake: Mistake, at_length: bool) -> list[Block]:
    """What there is to know of a named mistake; of exercises in one go."""
    if not at_length:
        return [Block("text", str(mistake))]
    if mistake.also is not None:
        alone = replace(mistake, also=None)
        return [
            *mistake_in_words(alone, at_length),
            *mistake_in_words(mistake.also, at_length),
        ]
    found = [
        Block("text", f"{head}{text}")
        for head, text in (
            ("", mistake.symptom),
            ("Cause: ", mistake.cause),
            ("Cure: ", mistake.cure),
        )
        if text
    ]
    if mistake.chapter:
        text = f"Explained in {in_the_book(mistake.chapter)}."
        found.append(Block("note", text))
    if mistake.thread:
        found.append(Block("note", f"It was met in {mistake.thread}"))
    return found


def what_fails(report: Record) -> list[Block]:
    """What does not hold, the smallest input, and what else is wrong."""
    (first, *others), n = report.findings, len(report.findings)
    sort, found = first.difference.sort, []
    always = n == report.probes and sort not in NUMERIC
    if report.likeness is not None:
        found.append(Block("text", looks_like(report, report.likeness)))
    if report.probes > 1 and not always:
        text = f"This does not hold: {first.probe.claim}."
        found.append(Block("text", text))
    furthest = furthest_off(first.difference) if report.probes == 1 else ""
    found.append(Block("text", first.difference.sentence + furthest))
    if report.snippet and not (always and sort in ("nothing", "type")):
        code = textwrap.dedent(report.snippet)
        found.append(Block("text", "The smallest input that I found:"))
        found.append(Block("code", code))
    if others and report.patient and not always:
        listed = "; ".join(finding.probe.claim for finding in others[:4])
        more = f"; and {len(others) - 4} more" if len(others) > 4 else ""
        found.append(Block("note", f"Nor does this: {listed}{more}."))
    return found


def looks_like(report: Record, known: Mistake) -> str:
    """What a patient looks like, and by what: all that fails, or some of it.

    If it is alike on nothing that fails, who sees whom gave the hint.
    """
    on = report.alike_on
    by = f"On {on} of them it" if on else "By who sees whom it"
    if on == len(report.findings):
        by = "It"
    return f"{by} looks like “{known.name}”. {known}"


def furthest_off(difference: Difference) -> str:
    """Which number of a list is wrong by most; nothing of what is no list."""
    yours, expected = difference.yours, difference.expected
    if yours is None or expected is None or yours.shape[1:] or not yours.dim():
        return ""
    place = int((yours - expected).abs().argmax()) + 1
    seen = seen_of_weights(yours, expected)
    return f"{seen} The furthest off is number {place} of {len(yours)}."


def notes(report: Record) -> list[Block]:
    """What was not asked, and how the patient was read."""
    found = []
    for why in dict.fromkeys(report.not_asked.values()):
        what = [w for w, y in report.not_asked.items() if y == why]
        text = f"Not asked, as {why}: {', '.join(what)}."
        found.append(Block("note", text))
    for verb, facts in (("I found", report.facts), ("I took", report.assumed)):
        if facts:
            listed = ", ".join(f"{n}={x!r}" for n, x in facts.items())
            text = f"{verb} {listed}. If that is wrong, say what is right."
            found.append(Block("note", text))
    for words in dict.fromkeys(report.inside.values()):
        where = [name for name, w in report.inside.items() if w == words]
        text = f"The attention inside, {words}: {', '.join(where)}."
        found.append(Block("note", text))
    return found


def as_text(report: Record) -> str:
    """A report without colours.

    >>> print(as_text(Record("softmax", 9, patient="mine")))
    ✓ mine (softmax): healthy, on 9 probes
    """
    return "\n".join(line for _, line in lines(report))


def lines(report: Record) -> list[tuple[str, str]]:
    """The lines of a report as text, each with the role of its block."""
    found = []
    for role, text in blocks(report):
        if role == "head":
            text = f"{mark(report)} {text}"
        elif role == "code":
            text = textwrap.indent(text, "    ")
        else:
            text = indented(text)
        found += [(role, line) for line in text.split("\n")]
    return found


def indented(text: str) -> str:
    """A paragraph, wrapped and set in by two spaces."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens="://" not in text,  # links stay whole
    )


def write(report: Record, file: Any = None) -> None:
    """Write a report to a file, in colours where that is a terminal.

    Args:
        report: what to write.
        file: an open text file; standard output when None.
    """
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:  # which the package does not ask for
        print(as_text(report), file=file)
        return
    # In a terminal that is said to have no columns, it would print nothing.
    console = Console(file=file, width=WIDTH, highlight=False, soft_wrap=True)
    styles = {"head": f"bold {COLOURS[mark(report)]}", "code": "cyan"}
    try:
        for role, line in lines(report):
            console.print(Text(line, style=styles.get(role, "")))
    except SystemExit:  # with 1, which means that the patient is ill
        raise BrokenPipeError("nobody reads the report") from None


def as_html(report: Record) -> str:
    """A report for a notebook; its colours are those of the page."""
    head, *rest = blocks(report)
    sign = mark(report)
    inside = [f"<p><strong>{sign} {html.escape(head.text)}</strong></p>"]
    for role, text in rest:
        words = html.escape(text)
        if role == "code":
            inside.append(f"<pre><code>{words}</code></pre>")
        elif role == "note":
            inside.append(f"<p><small>{words}</small></p>")
        else:
            inside.append(f"<p>{words}</p>")
    style = (
        f"border-left: 0.25em solid {BORDERS[sign]}; padding-left: 1em; "
        "color: currentColor; background: transparent"
    )
    return f'<div style="{style}">{"".join(inside)}</div>'


def as_words(mistake: Mistake | None) -> Any:
    """What there is to know of a mistake, and of the second, if it is two."""
    if mistake is None:
        return None
    words = ("name", "symptom", "cause", "cure", "chapter", "thread")
    found: dict[str, Any] = {word: getattr(mistake, word) for word in words}
    return found | {"also": as_words(mistake.also)} if mistake.also else found


def as_json(report: Record) -> str:
    """A report as JSON, for programs."""
    told = {
        "patient": report.patient,
        "kind": report.exercise,
        "healthy": report.passed,
        "headline": headline(report),
        "probes": report.probes,
        "mistake": as_words(report.mistake),
        "looks_like": report.likeness and report.likeness.name,
        "fails": [
            {"asks": f.probe.claim, "how": f.difference.sentence}
            for f in report.findings
        ],
        "snippet": textwrap.dedent(report.snippet),
        "conventions": [mistake.name for mistake in report.remarks],
        "not_asked": dict(report.not_asked),
        "found": dict(report.facts),
        "assumed": dict(report.assumed),
        "different": report.different,
        "inside": dict(report.inside),
        "untried": report.untried,
        "question": report.question,
        "trouble": report.trouble,
    }
    return json.dumps(told, ensure_ascii=False, indent=2, default=str)
