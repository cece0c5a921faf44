"""What a reader takes along: notebooks that install what they import.

The package lies beside the site as a wheel, written when the site is built;
the copies of the notebooks that the site offers begin with a cell that
installs it where it is missing. Those in the repository stay as they are.
Where the site will stand comes from the environment:

    BOOK_SITE_URL     https://<owner>.github.io/<name>/

Without it, as in the archive that is read from a disk, the cell looks for the
wheel in the notebook's folder and in those around it, and says which file
that is.
"""

import base64
import hashlib
import json
import os
import re
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from sphinx.application import Sphinx

SINCE = (2026, 1, 1, 0, 0, 0)  # of every file, so that bytes stay the same
CACHES = {"__pycache__"}
ADDRESS = re.compile(r"https://[^\s\"'{}]+|http://127\.0\.0\.1(:\d+)?/")
# The cell where the address is known, and where it is not.
SERVED = """\
# Installs the book's package where it is missing. In a clone of the book's
# repository, `pip install ".[book]"` does so.
from importlib.util import find_spec

if find_spec("selfattn") is None:
    %pip install -q "{requirement}"
"""
FROM_DISK = """\
# Installs the book's package where it is missing, from {wheel},
# which lies beside the first page of the book's site: keep this notebook below
# it, or put it beside this notebook. In a clone of the book's repository,
# `pip install ".[book]"` does so.
from importlib.util import find_spec
from pathlib import Path

wheel = Path("{wheel}").absolute()
for folder in wheel.parents:
    if not wheel.exists() and (folder / wheel.name).exists():
        wheel = folder / wheel.name
if find_spec("selfattn") is None:
    %pip install -q "{{wheel}}[book]"
"""


def project(root: Path) -> dict:
    """What pyproject.toml says of the package."""
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def wheel_name(root: Path) -> str:
    """The wheel's file name."""
    about = project(root)["project"]
    return f"{about['name']}-{about['version']}-py3-none-any.whl"


def contents(root: Path) -> Iterator[tuple[str, bytes]]:
    """The package's files, by where they lie in the wheel."""
    known = project(root)["tool"]["hatch"]["build"]["targets"]["wheel"]
    places = {source: Path(source).name for source in known["packages"]}
    for source, place in (places | known["force-include"]).items():
        for path in sorted((root / source).rglob("*")):
            if path.is_file() and not CACHES & set(path.parts):
                inner = path.relative_to(root / source).as_posix()
                yield f"{place}/{inner}", path.read_bytes()


def metadata(root: Path) -> Iterator[tuple[str, bytes]]:
    """The wheel's own files, but the record."""
    about = project(root)["project"]
    folder = f"{about['name']}-{about['version']}.dist-info"
    lines = ["Metadata-Version: 2.4", f"Name: {about['name']}"]
    lines += [f"Version: {about['version']}"]
    lines += [f"Summary: {about['description']}"]
    lines += [f"License-Expression: {about['license']}"]
    lines += [f"License-File: {name}" for name in about["license-files"]]
    lines += [f"Requires-Python: {about['requires-python']}"]
    lines += [f"Requires-Dist: {needed}" for needed in about["dependencies"]]
    for extra, needs in about["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {x}; extra == "{extra}"' for x in needs]
    yield f"{folder}/METADATA", ("\n".join(lines) + "\n").encode()
    for name in about["license-files"]:
        yield f"{folder}/licenses/{name}", (root / name).read_bytes()
    yield (
        f"{folder}/WHEEL",
        (
            b"Wheel-Version: 1.0\nGenerator: selfattn\nRoot-Is-Purelib: true\n"
            b"Tag: py3-none-any\n"
        ),
    )


def write_wheel(root: Path, place: Path) -> Path:
    """The package as a wheel in a folder, the same bytes each time."""
    path = place / wheel_name(root)
    files = [*contents(root), *metadata(root)]
    record = files[-1][0].replace("WHEEL", "RECORD")
    rows = []
    for name, content in files:
        raw = hashlib.sha256(content).digest()
        digest = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        rows.append(f"{name},sha256={digest},{len(content)}\n")
    rows.append(f"{record},,\n")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in [*files, (record, "".join(rows).encode())]:
            info = zipfile.ZipInfo(name, SINCE)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content, compresslevel=9)
    return path


def site_address(environ: Mapping[str, str]) -> str:
    """Where the site will stand, with a slash at its end, or nothing.

    Raises:
        ValueError: if the address is none that pip could fetch from safely.
    """
    address = environ.get("BOOK_SITE_URL", "").strip()
    if not address:
        return ""
    address = address.rstrip("/") + "/"
    if not ADDRESS.fullmatch(address):
        raise ValueError(
            f"BOOK_SITE_URL must look like https://<host>/, but is {address!r}"
        )
    return address


def requirement(wheel: str, site: str) -> str:
    """What pip is asked for, in a folder with the wheel if no site has it."""
    return f"selfattn[book] @ {site}{wheel}" if site else f"./{wheel}[book]"


def install_cell(wheel: str, site: str) -> dict:
    """The cell that installs the package, from the site or from a disk."""
    told = SERVED if site else FROM_DISK
    asked = requirement(wheel, site)
    source = told.format(requirement=asked, wheel=wheel).rstrip()
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "install-it",
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def furnish(app: Sphinx, exception: Exception | None) -> None:
    """Write the wheel, and the cell into each copy of a notebook."""
    root, site = Path(app.srcdir), Path(app.outdir)
    if exception or app.builder.format != "html":
        return
    if not (root / "pyproject.toml").exists():
        return  # a book without a package
    wheel = write_wheel(root, site)
    cell = install_cell(wheel.name, site_address(os.environ))
    for path in sorted((site / "_sources").rglob("*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        notebook["cells"].insert(1, cell)
        text = json.dumps(notebook, ensure_ascii=False, indent=1)
        path.write_text(text + "\n", "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook."""
    app.connect("build-finished", furnish, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
