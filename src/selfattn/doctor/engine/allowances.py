"""What a right answer may do otherwise, or not at all.

It may keep a convention that is not the book's, and it may refuse what its
exercise calls optional. Probes that ask about either are set aside.
"""

from collections.abc import Mapping, Sequence

from selfattn.doctor.engine.matching import Seen, agrees_on, wrong_on
from selfattn.doctor.engine.outcome import Outcome
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.probes import Probe


def not_needing(needs: Mapping[str, str], seen: Sequence[Seen]) -> list[Seen]:
    """Those that need none of these."""
    return [one for one in seen if not needs.keys() & one.probe.needs]


def without_conventions(
    exercise: Exercise, seen: Sequence[Seen], said: Mapping[str, str]
) -> tuple[list[Seen], tuple[Mistake, ...]]:
    """Set aside the probes on which a convention is kept, but not ours.

    Returns:
        The probes that are left, and the mistakes that are conventions of
        the answer. Where a convention was said, no other one will do.
    """
    left, kept = list(seen), []
    for fact, outcomes in exercise.conventions.items():
        asked = [one for one in seen if one.probe.convention == fact]
        known = [m for m in exercise.mistakes if m in outcomes.values()]
        if fact in said:
            rule = outcomes[said[fact]]
            held = {one.probe: one._replace(rule=rule) for one in asked}
            left = [held.get(one.probe, one) for one in left]
        elif wrong_on(exercise, asked):
            found = [m for m in known if agrees_on(exercise, m, asked)]
            if found:
                kept.append(found[0])
                left = [one for one in left if one not in asked]
    return left, tuple(kept)


def refusals(
    exercise: Exercise,
    seen: Sequence[Seen],
    required: Sequence[str],
    plainly: bool = False,
) -> dict[str, str]:
    """What an answer refuses: it raises wherever a probe needs it.

    What is ``required`` cannot be refused: to raise there is to be wrong.
    ``plainly``: it cannot even be called that way, as no mistake would say.
    """
    refused: dict[str, str] = {}
    for need in exercise.optional:
        needing = [s.outcome for s in seen if need in s.probe.needs]
        raised = [why_not(outcome) for outcome in needing]
        if plainly and not all(outcome.unusable for outcome in needing):
            continue
        if needing and all(raised) and need not in required:
            refused[need] = raised[0]
    others = [s for s in seen if not refused.keys() & s.probe.needs]
    if all(one.outcome.error for one in others):
        return {}  # it raises whatever it is asked
    return refused


def without_way(
    exercise: Exercise, seen: Sequence[Seen], required: Sequence[str]
) -> set[Probe]:
    """The probes that ask in a way in which an answer cannot be called.

    That is no fault of its own where they need what it may refuse and was
    not ``required``; who can be called in no way at all is asked no less.
    """
    free = {*exercise.optional} - {*required}
    gone = {s.probe for s in seen if s.outcome.unusable}
    gone = {probe for probe in gone if free & {*probe.needs}}
    return gone if len(gone) < len(seen) else set()


def why_not(outcome: Outcome) -> str:
    """Why there is no outcome to speak of, or nothing if there is."""
    error = outcome.error or outcome.gradient_error or ""
    return error if outcome.unusable or not error else f"it raises {error}"
