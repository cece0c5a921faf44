"""`python -m selfattn.doctor package.module:Thing --kind self-attention`.

Facts are options: `--causal` for True, `--no-causal` for False, `--n-heads 3`
for all else. Exits with 0 if the thing is healthy, 1 if it is ill, and 2 if
that could not be told.
"""

import argparse
import ast
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from selfattn.doctor.engine.examination import examine
from selfattn.doctor.kinds import find_kind, kinds
from selfattn.doctor.report.rendering import write
from selfattn.doctor.self_test import bank


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine what the arguments say, print the report, return the code."""
    parser = reader()
    said, rest = parser.parse_known_args(arguments)
    try:
        if said.list:
            print(listed(said.kind))
            return 0
        if said.thing is None or said.kind is None:
            parser.error("say a thing and its --kind, or --list")
        thing, facts = load(said.thing), read_facts(rest)
        limit = said.time_limit or None
        report = examine(thing, kind=said.kind, time_limit=limit, **facts)
    except (ValueError, LookupError, ImportError, OSError) as error:
        print(error.args[0] if error.args else error, file=sys.stderr)
        return 2
    print(report.to_json()) if said.json else write(report)
    return report.exit_code


def reader() -> argparse.ArgumentParser:
    """What reads the arguments, besides the facts."""
    parser = argparse.ArgumentParser(
        "python -m selfattn.doctor",
        description="What is wrong with this attention, and how to mend it.",
        epilog="Everything else is a fact: --causal, --no-causal, "
        "--n-heads 3. See --list --kind KIND for those of a kind.",
    )
    parser.add_argument(
        "thing", nargs="?", help="package.module:Thing, or path.py:Thing"
    )
    parser.add_argument("--kind", help="what it should be; see --list")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--list", action="store_true", help="list the kinds, or one kind"
    )
    parser.add_argument("--time-limit", type=float, default=20.0)
    return parser


def load(name: str) -> Any:
    """What "package.module:Thing" or "path.py:Thing" stands for."""
    where, colon, inside = name.partition(":")
    if not colon:
        raise ValueError(
            "a thing is named package.module:Thing or path.py:Thing, but "
            f"this is {name!r}"
        )
    if where.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(where).stem, where)
        if spec is None or spec.loader is None:
            raise ImportError(f"no module can be read from {where}")
        found: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    else:
        sys.path.insert(0, "")  # as Python itself does for -c
        found = importlib.import_module(where)
    for part in inside.split("."):
        if not hasattr(found, part):
            raise LookupError(f"There is no {part!r} in {where}")
        found = getattr(found, part)
    return found


def read_facts(rest: Sequence[str]) -> dict[str, Any]:
    """Options as facts.

    >>> read_facts(["--causal", "--no-flag", "--n-heads=3", "--mask", "keep"])
    {'causal': True, 'flag': False, 'n_heads': 3, 'mask': 'keep'}
    """
    facts: dict[str, Any] = {}
    name = ""
    for word in rest:
        if word.startswith("--"):
            name, given, value = word[2:].partition("=")
            name = name.replace("-", "_")
            if given:
                facts[name] = literal(value)
            elif name.startswith("no_"):
                facts[name[3:]] = False
            else:
                facts[name] = True
        elif name and facts.get(name) is True:
            facts[name] = literal(word)
        else:
            raise ValueError(
                f"a fact begins with two dashes, but this is {word!r}"
            )
    return facts


def literal(word: str) -> Any:
    """A number, list or dict if it is written like one, else the word."""
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word


def listed(name: str | None) -> str:
    """The kinds there are, or the facts and mistakes of one."""
    if name is None:
        return "\n".join(f"{kind.name}: {kind.asks}" for kind in all_kinds())
    kind = find_kind(name)
    lines = [f"{kind.name}: {kind.asks}", "", "Facts:"]
    for fact_name, fact in kind.facts.items():
        lines.append(f"  --{fact_name.replace('_', '-')}: {fact.says}")
        lines += [f"      {x}: {words}" for x, words in fact.options.items()]
    lines += ["", "Mistakes:"]
    for mistake in bank(kind).mistakes:
        lines.append(f"  {mistake.name}: {mistake.symptom}")
    return "\n".join(lines)


def all_kinds() -> list[Any]:
    """The kinds in the order of their names."""
    return sorted(kinds().values(), key=lambda kind: kind.name)


if __name__ == "__main__":
    sys.exit(main())
