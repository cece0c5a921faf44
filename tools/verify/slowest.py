"""Which notebooks took longest, from the report that nbval's run has left.

    python -m tools.verify.slowest report.xml

Names the slowest five, and fails if one takes longer than a reader should
wait for a page's results, or all of them longer than the whole suite may.
A reader runs one at a time; the report's shared the cores with others and
with the site's building. So one that was over the limit in company is run
once more alone, and that counts.
"""

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

LONGEST_ONE = 60.0  # seconds, alone
LONGEST_ALL = 480.0


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


def too_slow(
    took: Counter[str], alone: Callable[[str], float] = seconds_alone
) -> list[str]:
    """What is over its limit, one sentence each."""
    in_company = [name for name, time in took.items() if time > LONGEST_ONE]
    over = [
        f"{name} took {time:.0f} s alone; a notebook may take "
        f"{LONGEST_ONE:.0f} s"
        for name in in_company
        if (time := alone(name)) > LONGEST_ONE
    ]
    if took.total() > LONGEST_ALL:
        over.append(
            f"the notebooks took {took.total():.0f} s; together they may take "
            f"{LONGEST_ALL:.0f} s"
        )
    return over


def main() -> int:
    """Print the slowest five and what is too slow."""
    took = seconds(Path(sys.argv[1]))
    for name, time in took.most_common(5):
        print(f"{time:6.1f} s  {name}")
    over = too_slow(took)
    print("\n".join(over))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
