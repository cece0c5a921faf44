"""Take notebooks along: a stage of its own, weekly.

    python -m tools.verify.taken

The site is served on this machine, and its wheel installed by the cell with
which its notebooks begin, from that address and from the folder around them,
into an environment that has all but the package. Then all of a notebook runs.
"""

import functools
import http.server
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
import venv
from collections.abc import Iterator
from pathlib import Path

from tools.build.website import ROOT, SITE

sys.path.append(str(ROOT / "book" / "extensions"))
from take_along import install_cell, site_address, wheel_name

TAKEN = "book/dot_product.ipynb"
# Told on the standard input: the cells. Answered: which did not run.
RUN = """
import json, sys
from importlib.util import find_spec
from IPython.core.interactiveshell import InteractiveShell

assert find_spec("selfattn") is None
shell = InteractiveShell.instance()
for cell in json.load(sys.stdin):
    if not shell.run_cell(cell).success:
        sys.exit(cell)
import selfattn
print(selfattn.__file__)
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and does not say so."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


def bare_environment(folder: Path) -> Path:
    """An environment with all that is installed here but the package."""
    venv.create(folder, with_pip=False)
    names = {"base": str(folder), "platbase": str(folder)}
    theirs = Path(sysconfig.get_path("purelib", "venv", names))
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "selfattn" not in path.name:
            (theirs / path.name).symlink_to(path)
    return Path(sysconfig.get_path("scripts", "venv", names), "python")


def cells(notebook: Path, site: str) -> list[str]:
    """The code of the site's copy, its first cell for this address."""
    read = json.loads(notebook.read_text("utf-8"))["cells"]
    code = [cell["source"] for cell in read if cell["cell_type"] == "code"]
    wheel = wheel_name(ROOT)
    offered = install_cell(wheel, site_address(os.environ))["source"]
    if code[0] != offered:
        raise SystemExit(f"{notebook} does not begin as the site's copies do")
    first = install_cell(wheel, site)["source"]
    return [first, *("".join(lines) for lines in code[1:])]


def run(python: Path, code: list[str], folder: Path) -> Iterator[str]:
    """What goes wrong when an environment runs these cells in a folder."""
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", RUN],
        input=json.dumps(code),
        cwd=folder,
        env=environ | {"IPYTHONDIR": str(folder), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        yield f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    elif str(python.parents[1]) not in done.stdout.splitlines()[-1]:
        yield f"another package was imported: {done.stdout[-200:]}"


def taken(site: Path, address: str) -> Iterator[str]:
    """What is wrong with a notebook, with or without an address."""
    with tempfile.TemporaryDirectory() as scratch:
        python = bare_environment(Path(scratch, "environment"))
        folder = site / "_sources" / "book" if not address else Path(scratch)
        code = cells(site / "_sources" / TAKEN, address)
        yield from run(python, code, folder)


def main() -> int:
    """Say what is wrong; the exit status."""
    handler = functools.partial(Quiet, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    found = [*taken(SITE, address), *taken(SITE, "")]
    server.shutdown()
    for line in found:
        print(line, file=sys.stderr)
    print("It does not run elsewhere." if found else "It runs elsewhere.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
