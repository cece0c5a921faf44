"""What the command lists: the kinds, or the facts and mistakes of one."""

from selfattn.doctor.kind import COMMON, Kind
from selfattn.doctor.kinds import find_kind, kinds
from selfattn.doctor.self_test import bank


def listed(name: str | None) -> str:
    """The kinds there are, or the facts and mistakes of one."""
    if name is None:
        return "\n".join(f"{kind.name}: {kind.does}" for kind in all_kinds())
    kind = find_kind(name)
    lines = [f"{kind.name}: {kind.does}", "", "Facts:"]
    for fact_name, fact in {**kind.facts, **COMMON}.items():
        lines.append(f"  --{fact_name.replace('_', '-')}: {fact.meaning}")
        lines += [f"      {x}: {words}" for x, words in fact.options.items()]
    lines += ["", "Mistakes:"]
    for mistake in bank(kind).mistakes:
        lines.append(f"  {mistake.name}: {mistake.symptom}")
    return "\n".join(lines)


def all_kinds() -> list[Kind]:
    """The kinds in the order of their names."""
    return sorted(kinds().values(), key=lambda kind: kind.name)
