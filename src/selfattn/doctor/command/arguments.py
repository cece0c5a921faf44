"""What the command is told, in any order: options, facts and one thing."""

import argparse
import ast
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

# A module or a file, a colon, and a name inside; no value is written so.
THING = re.compile(r"(.+\.py|\w+(\.\w+)*):[^\W\d]\w*(\.\w+)*|.+\.py")

UNITS = {"time": "seconds", "memory": "bytes"}


class Request(NamedTuple):
    """What is to be examined, as what, and how."""

    thing: str  # "package.module:Thing" or "path.py", say; "" if none is
    facts: dict[str, Any]
    options: argparse.Namespace


def read_arguments(words: Sequence[str] | None = None) -> Request:
    """The words of a command line, those of this process when None.

    Raises:
        ValueError: if a word is neither an option nor a fact nor the thing.
    """
    parser = options()
    chosen, rest = parser.parse_known_args(words)
    if chosen.list or chosen.weight:
        if rest:
            raise ValueError(
                "--list and --weight are of no thing and take no facts, but "
                f"here is {' '.join(rest)!r}"
            )
        return Request("", {}, chosen)
    things, rest = the_thing(rest)
    facts = read_facts(rest)
    if not things:
        parser.error("say a file or a thing in one, or --list")
    return Request(things, facts, chosen)


class Options(argparse.ArgumentParser):
    """What raises, where argparse would print and end the process."""

    def error(self, message: str) -> NoReturn:
        """Refuse what was said, as all else is refused."""
        raise ValueError(f"{message}; --help tells what there is")


class Once(argparse.Action):
    """What is said of one thing, and refused if it is said again."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Keep it, and that it was said."""
        said = namespace.__dict__.setdefault("said", {})
        if self.dest in said:
            parser.error(
                f"an option is said once, but {option_string} is said to be "
                f"{said[self.dest]} and {values}"
            )
        said[self.dest] = values
        setattr(namespace, self.dest, values)


def options() -> argparse.ArgumentParser:
    """What reads the arguments, besides the thing and its facts."""
    parser = Options(
        "python -m selfattn.doctor",
        usage="%(prog)s THING [--kind KIND] [--FACT VALUE …] [options]",
        description="What is wrong with this attention, and how to mend it. "
        "THING is package.module:Thing or path.py:Thing, or path.py for all "
        "that is in it.",
        epilog="Everything else is a fact: --causal, --no-causal, "
        "--n-heads 3. See --list --kind KIND for those of a kind.",
        allow_abbrev=False,  # --k may be a fact
    )
    parser.add_argument(
        "--kind", action=Once, help="what it should be; see --list"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--list", action="store_true", help="list the kinds, or one kind"
    )
    parser.add_argument(
        "--weight",
        action="store_true",
        help="print size, requirements and time to import of the package",
    )
    add_limits(parser)
    return parser


def add_limits(parser: argparse.ArgumentParser) -> None:
    """What is given up when."""
    for what, default in (("time", 20.0), ("memory", 4e9)):
        parser.add_argument(
            f"--{what}-limit",
            action=Once,
            type=limit,
            default=default,
            help=f"{UNITS[what]}; 0 for as many as it takes",
        )


def limit(word: str) -> float:
    """A limit; 0 means that there is none."""
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not number >= 0:
        raise argparse.ArgumentTypeError(
            f"a limit must be a number above 0, or 0 for none, not {word}"
        )
    return number or math.inf


def the_thing(words: Sequence[str]) -> tuple[str, list[str]]:
    """The one word that names a thing, wherever it stands, and the others.

    A lone ``--``, behind which a shell's commands take no options, says
    nothing here: a thing is told by its form.

    >>> the_thing(["--n-heads", "3", "my.layers:Attention", "--causal"])
    ('my.layers:Attention', ['--n-heads', '3', '--causal'])
    """
    things = [w for w in words if THING.fullmatch(w) and w[:2] != "--"]
    if len(things) > 1:
        raise ValueError(
            "one thing is examined at a time, but here are "
            f"{' and '.join(map(repr, things))}"
        )
    if not things and words and words[0][:2] != "--":
        raise ValueError(
            "a thing is named package.module:Thing or path.py:Thing, a file "
            f"by its path, but this is {words[0]!r}"
        )
    rest = [word for word in words if word not in (*things, "--")]
    return "".join(things), rest


def read_facts(words: Sequence[str]) -> dict[str, Any]:
    """Options as facts.

    >>> read_facts(["--causal", "--no-flag", "--n-heads=3", "--mask", "keep"])
    {'causal': True, 'flag': False, 'n_heads': 3, 'mask': 'keep'}
    """
    facts: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, value = option(word)
            if name in facts:
                raise ValueError(
                    f"a fact is said once, but {name} is said to be "
                    f"{facts[name]!r} and {value!r}"
                )
            facts[name] = value
        elif name and facts.get(name) is True:
            facts[name] = literal(word)
        else:
            raise ValueError(
                f"a fact begins with two dashes, but this is {word!r}"
            )
    return facts


def option(word: str) -> tuple[str, Any]:
    """The fact that one word with two dashes says by itself, and its value."""
    name, given, value = word[2:].partition("=")
    name = name.replace("-", "_")
    if given:
        return name, literal(value)
    if name.startswith("no_"):
        return name[3:], False
    return name, True


def literal(word: str) -> Any:
    """A number, list or dict if it is written like one, else the word."""
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return word  # a list for a key, or too many brackets
