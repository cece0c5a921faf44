"""`python -m selfattn.doctor package.module:Thing --kind self-attention`.

Facts are options: `--causal` for True, `--no-causal` for False, `--n-heads 3`
for all else, in any order. Exits with 0 if the thing is healthy, 1 if it is
ill, and 2 if that could not be told.
"""

import sys
from collections.abc import Sequence

from selfattn.doctor.command.arguments import read_arguments
from selfattn.doctor.command.listing import listed
from selfattn.doctor.command.loading import load
from selfattn.doctor.engine.examination import examine
from selfattn.doctor.report.rendering import write


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine what the arguments say, print the report, return the code."""
    try:
        name, facts, options = read_arguments(arguments)
        if options.list:
            print(listed(options.kind))
            return 0
        report = examine(
            load(name),
            kind=options.kind,
            time_limit=options.time_limit or None,
            **facts,
        )
    except (ValueError, LookupError, ImportError, OSError) as error:
        print(error.args[0] if error.args else error, file=sys.stderr)
        return 2
    print(report.to_json()) if options.json else write(report)
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
