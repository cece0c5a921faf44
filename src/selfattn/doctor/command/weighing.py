"""What the package weighs: size, requirements, and how fast it is there."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import selfattn

FOLDER = Path(selfattn.__file__).parent
TIMED = """
import time
start = time.perf_counter()
import torch
between = time.perf_counter()
import selfattn.doctor
print(between - start, time.perf_counter() - between)
"""


def weight() -> dict[str, str]:
    """Version, size, requirements and seconds to import, in words."""
    files = [path for path in FOLDER.rglob("*") if counts(path)]
    size = sum(path.stat().st_size for path in files) / 1e6
    of_torch, of_ours = seconds()
    return {
        "selfattn": version(),
        "size": f"{size:.1f} MB in {len(files)} files",
        "asks for": f"{', '.join(asked_for())}; rich, if it is there",
        "import": f"{of_ours:.1f} s, after {of_torch:.1f} s for torch",
    }


def counts(path: Path) -> bool:
    """Whether a path is a file of the package, and none that Python made."""
    return path.is_file() and "__pycache__" not in path.parts


def seconds() -> tuple[float, float]:
    """How long the imports of torch and of the doctor take, from nothing."""
    done = subprocess.run(
        [sys.executable, "-c", TIMED],
        check=True,
        capture_output=True,
        text=True,
    )
    of_torch, of_ours = map(float, done.stdout.split())
    return of_torch, of_ours


def version() -> str:
    """The version that is installed, if it was installed."""
    try:
        return distribution("selfattn").version
    except PackageNotFoundError:
        return "not installed"


def asked_for() -> list[str]:
    """What the package asks for, without what is asked for by its extras."""
    try:
        listed = distribution("selfattn").requires or []
    except PackageNotFoundError:
        return ["jaxtyping", "torch"]
    return sorted(line for line in listed if "extra ==" not in line)
