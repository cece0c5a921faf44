"""`python -m selfattn.doctor path.py`, or `package.module:Thing`.

All that a file makes is examined, or the one thing that is named; what kind
it is of is guessed from how it looks, unless `--kind self-attention` tells.
Facts are options: `--causal` for True, `--no-causal` for False, `--n-heads 3`
for all else, in any order. Exits with 0 if the thing is healthy, 1 if it is
ill, 2 if that could not be told, 3 if it is different from the usual in what
nobody promised, and 4 if something that was told could not be tried; of
several things, with the gravest.
"""

import json
import sys
from collections.abc import Iterable, Sequence

from selfattn.doctor.command.arguments import read_arguments
from selfattn.doctor.command.listing import list_of, listed
from selfattn.doctor.command.visiting import (
    Visit,
    gravest,
    is_whole,
    visits,
)
from selfattn.doctor.command.weighing import weight
from selfattn.doctor.exercise import check_docstrings
from selfattn.doctor.report.output import any_encoding, print_json
from selfattn.doctor.report.rendering import write


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine what the arguments say, print the report, return the code."""
    code = 2
    with any_encoding():
        told = answered(arguments)
        print(end="", flush=True)  # what cannot be written has not been told
        code = told
    return code


def answered(arguments: Sequence[str] | None) -> int:
    """The same, on an output that takes every character."""
    told = sys.argv[1:] if arguments is None else arguments
    try:
        check_docstrings()
        request = read_arguments(told)
        if request.options.list:
            say_list(request.options.kind, request.options.json)
            return 0
        if request.options.weight:
            say_weight(request.options.json)
            return 0
        tell = in_json if request.options.json else in_words
        return gravest(tell(visits(request), is_whole(request.thing)))
    except (ValueError, LookupError) as error:
        words = str(error.args[0] if error.args else error)
    except SystemExit:  # --help, which was said
        return 0
    except KeyboardInterrupt:
        words = "It was stopped before all was said."
    if sys.stderr is not None:  # print would take standard output instead
        print(words, file=sys.stderr)
    if "--json" in told:
        print_json(json.dumps({"refused": words}, indent=2))
    return 2


def say_weight(as_json: bool) -> None:
    """Print what the package weighs, for a reader or a program."""
    told = weight()
    if as_json:
        print_json(json.dumps(told, indent=2))
    else:
        print("\n".join(f"{name:<8}  {x}" for name, x in told.items()))


def say_list(kind: str | None, as_json: bool) -> None:
    """Print the kinds, or what there is of one, for a reader or a program."""
    if as_json:
        print_json(json.dumps(list_of(kind), ensure_ascii=False, indent=2))
    else:
        print(listed(kind))


def in_words(made: Iterable[Visit], several: bool) -> list[int]:
    """Print what is said of each visit as it is made; the reports' codes."""
    codes = []
    for words, report in made:
        if words:
            print(words, flush=True)
        if report is not None:
            write(report)
            codes.append(report.exit_code)
        if several:
            print(flush=True)
    return codes


def in_json(made: Iterable[Visit], several: bool) -> list[int]:
    """Print all reports as JSON, in a list if a file was asked for."""
    done = list(made)
    told = [
        {**json.loads(report.to_json()), "guess": words}
        if report is not None
        else {"guess": words}
        for words, report in done
    ]
    print_json(
        json.dumps(told if several else told[0], ensure_ascii=False, indent=2)
    )
    return [report.exit_code for _, report in done if report is not None]


if __name__ == "__main__":
    sys.exit(main())
