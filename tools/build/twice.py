"""Build the site once more in another folder, and compare the bytes.

    python -m tools.build.twice

A difference is something that a build takes from elsewhere than its sources:
the time, a path, the order in which files happen to lie. It takes as long as
a build, so it is asked once a week, not in every `make test`.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.build.website import BUILD, INPUTS, ROOT, SITE


def copy_sources(to: Path, root: Path = ROOT) -> None:
    """What a site is made of, and the tools that make it, in a folder."""
    for name in [*INPUTS, "tools"]:
        source, place = root / name, to / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(
                source,
                place,
                ignore=shutil.ignore_patterns("__pycache__"),
                dirs_exist_ok=True,
            )
        else:
            shutil.copy(source, place)


def differing(one: Path, other: Path) -> list[str]:
    """The files of two folders that only one has, or that differ."""
    names = {
        path.relative_to(folder).as_posix()
        for folder in (one, other)
        for path in folder.rglob("*")
        if path.is_file()
    }
    return sorted(
        name
        for name in names
        if not (one / name).is_file()
        or not (other / name).is_file()
        or (one / name).read_bytes() != (other / name).read_bytes()
    )


def main() -> int:
    """Build here and elsewhere, compare, and say where they differ."""
    build = [sys.executable, "-m", "tools.build.website"]
    subprocess.run(build, cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        copy_sources(Path(folder))
        katex = Path(folder, "_build", "katex")
        shutil.copytree(BUILD / "katex", katex)
        subprocess.run(build, cwd=folder, check=True)
        found = differing(SITE, Path(folder, "_build", "html"))
    print("\n".join(found) if found else "The same bytes.")
    return len(found) and 1


if __name__ == "__main__":
    sys.exit(main())
