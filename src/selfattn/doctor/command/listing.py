"""What the command lists: the kinds, or the facts and mistakes of one."""

from typing import Any

from selfattn.doctor.exercise import Mistake
from selfattn.doctor.kind import COMMON, Fact, Kind
from selfattn.doctor.kinds import find_kind, kinds, whole_kinds
from selfattn.doctor.self_test import bank
from selfattn.doctor.whole.mistakes import MISTAKES


def listed(name: str | None) -> str:
    """The kinds there are, or the facts and mistakes of one, to be read."""
    table = list_of(name)
    if name is None:
        return "\n".join(f"{kind}: {does}" for kind, does in table.items())
    lines = [f"{table['kind']}: {table['does']}", "", "Facts:"]
    for fact, told in table["facts"].items():
        lines.append(f"  --{fact.replace('_', '-')}: {told['meaning']}")
        lines += [f"      {x}: {words}" for x, words in told["values"].items()]
    lines += ["", "Mistakes:"]
    for mistake, symptom in table["mistakes"].items():
        lines.append(f"  {mistake}: {symptom}")
    return "\n".join(lines)


def list_of(name: str | None) -> dict[str, Any]:
    """The same as a table of names, as `--json` prints it."""
    if name is None:
        return {kind.name: kind.does for kind in all_kinds()}
    kind = find_kind(name)
    return {
        "kind": kind.name,
        "does": kind.does,
        "facts": {
            fact_name: {"meaning": fact.meaning, "values": values(fact)}
            for fact_name, fact in {**kind.facts, **COMMON}.items()
        },
        "mistakes": {
            mistake.name: mistake.symptom for mistake in mistakes_of(kind)
        },
    }


def values(fact: Fact) -> dict[Any, str]:
    """What may be said, each with its meaning; behind it, what else may be."""
    listed = dict(fact.options)
    if listed and fact.saying is not None:
        listed["…"] = f"or {fact.saying.words}"
    return listed


def mistakes_of(kind: Kind) -> tuple[Mistake, ...]:
    """The mistakes that have a name in a kind."""
    return MISTAKES if kind.whole is not None else bank(kind).mistakes


def all_kinds() -> list[Kind]:
    """The kinds in the order of their names."""
    every = [*kinds().values(), *whole_kinds().values()]
    return sorted(every, key=lambda kind: kind.name)
