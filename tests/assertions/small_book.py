"""A small book of our extensions, built by Sphinx, to look at its pages."""

import os
import subprocess
import sys
from pathlib import Path

from bs4 import BeautifulSoup

EXTENSIONS = Path(__file__).resolve().parents[2] / "book" / "extensions"


def built(
    folder: Path, files: dict[str, str], look_at: list[str], **settings: list
) -> str | list[BeautifulSoup]:
    """Build it; any warning is an error.

    Args:
        folder: an empty one, to build in.
        files: the text of each, by its path in ``book/``.
        look_at: the names of the pages that are wanted.
        settings: what ``conf.py`` says beyond its parser.

    Returns:
        What was wrong, or those pages.
    """
    if "myst_nb" not in settings["extensions"]:  # which brings the parser
        settings["extensions"] = ["myst_parser", *settings["extensions"]]
    lines = [f"{name} = {value!r}\n" for name, value in settings.items()]
    (folder / "conf.py").write_text("".join(lines))
    contents = "# Book\n\n```{toctree}\n:glob:\n\nbook/*\n```\n"
    (folder / "index.md").write_text(contents)
    for name, text in files.items():
        path = folder / "book" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ran = subprocess.run(
        [sys.executable, "-m", "sphinx", "-nWq", folder, folder / "out"],
        env=os.environ | {"PYTHONPATH": str(EXTENSIONS)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        return ran.stderr
    pages = (folder / "out" / "book" / f"{name}.html" for name in look_at)
    return [BeautifulSoup(page.read_text(), "html.parser") for page in pages]
