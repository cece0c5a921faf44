"""Which notebooks took longest, from the report that nbval's run has left.

    python -m tools.verify.slowest report.xml

Names the slowest five, and fails if one takes longer than a reader should
wait for a page's results, or all of them longer than the whole suite may.
A reader runs one at a time; the report's shared the cores with others and
with the site's building. So one that was over the limit in company is run
once more alone, and that counts; if all together are over theirs, the slowest
alone tells how much of it was the company. And that limit is for an ordinary
machine: on one that needs longer for a plain loop it is as much longer.
"""

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

LONGEST_ONE = 60.0  # seconds, alone
LONGEST_ALL = 480.0
LOOP, ORDINARY = 1_000_000, 0.04  # turns of a loop, and seconds they take


def seconds(report: Path) -> Counter[str]:
    """Seconds each notebook took, by its name in pytest's XML report."""
    took: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        took[case.attrib["classname"]] += float(case.attrib["time"])
    return took


def seconds_alone(name: str) -> float:
    """Seconds of one notebook, run again with nothing beside it."""
    path = Path(*name.removesuffix(".ipynb").split(".")).with_suffix(".ipynb")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "alone.xml")
        command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax"]
        command += ["--nbval-current-env", f"--junit-xml={report}", str(path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return seconds(report).total()


def pace() -> float:
    """How many times slower than an ordinary one this machine is; 1 or more.

    The middle one of nine tries: a moment's company is not the machine.
    """
    tries = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(LOOP):
            pass
        tries.append(time.perf_counter() - start)
    return max(1.0, sorted(tries)[4] / ORDINARY)


def too_slow(
    took: Counter[str],
    alone: Callable[[str], float] = seconds_alone,
    slower: float = 1.0,
) -> list[str]:
    """What is over its limit, one sentence each.

    Args:
        took: seconds of each notebook in company, by name.
        alone: seconds of one alone.
        slower: how many times slower than an ordinary machine this one is.
    """
    one, together = LONGEST_ONE, LONGEST_ALL * slower
    again = {name: alone(name) for name, its in took.items() if its > one}
    over = [
        f"{name} took {its:.0f} s alone; a notebook may take {one:.0f} s"
        for name, its in again.items()
        if its > one
    ]
    if took.total() > together:
        ((slowest, its),) = took.most_common(1)
        quiet = min(1.0, (again.get(slowest) or alone(slowest)) / its)
        if (all_quiet := took.total() * quiet) > together:
            over.append(
                f"the notebooks took {all_quiet:.0f} s; together they may "
                f"take {together:.0f} s"
            )
    return over


def main() -> int:
    """Print the slowest five and what is too slow."""
    took = seconds(Path(sys.argv[1]))
    for name, its in took.most_common(5):
        print(f"{its:6.1f} s  {name}")
    slower = pace()
    print(f"{slower:6.1f} times as slow as an ordinary machine")
    over = too_slow(took, slower=slower)
    print("\n".join(over))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
