"""`python -m selfattn.doctor package.module:Thing --kind self-attention`.

Facts are options: `--causal` for True, `--no-causal` for False, `--n-heads 3`
for all else, in any order. Exits with 0 if the thing is healthy, 1 if it is
ill, 2 if that could not be told, 3 if it is different from the usual in what
nobody promised, and 4 if something that was told could not be tried.
"""

import sys
from collections.abc import Sequence
from functools import partial

from selfattn.doctor.command.arguments import Request, read_arguments
from selfattn.doctor.command.listing import listed
from selfattn.doctor.command.loading import load
from selfattn.doctor.engine.examination import examine_made
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.report import Report
from selfattn.doctor.report.output import any_encoding, print_json
from selfattn.doctor.report.rendering import write


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine what the arguments say, print the report, return the code."""
    code = 2
    with any_encoding():
        code = answered(arguments)
    return code


def answered(arguments: Sequence[str] | None) -> int:
    """The same, on an output that takes every character."""
    try:
        request = read_arguments(arguments)
        if request.options.list:
            print(listed(request.options.kind))
            return 0
        report = examined(request)
    except (ValueError, LookupError) as error:
        print(error.args[0] if error.args else error, file=sys.stderr)
        return 2
    if request.options.json:
        print_json(report.to_json())
    else:
        write(report)
    return report.exit_code


def examined(request: Request) -> Report:
    """The report on what was asked for; it is imported by the child."""
    name, facts, options = request
    return examine_made(
        partial(load, name),
        name.rpartition(":")[2],
        find_kind(options.kind),
        facts,
        options.time_limit,
        options.memory_limit,
    )


if __name__ == "__main__":
    sys.exit(main())
