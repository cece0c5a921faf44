"""What a reader takes along: notebooks that install what they import.

The package lies beside the site as a wheel, written when the site is built;
the copies of the notebooks that the site offers begin with a cell that
installs it. Those in the repository stay as they are. Where the site will
stand comes from the environment:

    BOOK_SITE_URL     https://<owner>.github.io/<name>/

Without it the cell takes the wheel from the notebook's own folder, and says
which file that is.
"""

import base64
import hashlib
import json
import os
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

SINCE = (2026, 1, 1, 0, 0, 0)  # of every file, so that bytes stay the same
CACHES = {"__pycache__"}


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
    lines += [f"Requires-Python: {about['requires-python']}"]
    lines += [f"Requires-Dist: {needed}" for needed in about["dependencies"]]
    for extra, needs in about["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {x}; extra == "{extra}"' for x in needs]
    yield f"{folder}/METADATA", ("\n".join(lines) + "\n").encode()
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
            archive.writestr(info, content)
    return path


def install_cell(wheel: str, site: str) -> dict:
    """The cell that installs the package, from the site or from here."""
    place = f"{site.rstrip('/')}/{wheel}" if site else wheel
    if site:
        source = "# Installs the book's package; once is enough.\n"
        source += f'%pip install -q "selfattn[book] @ {place}"'
    else:
        source = f"# Installs the book's package from {wheel}, which lies\n"
        source += "# beside the pages of the book's site; once is enough.\n"
        source += f'%pip install -q "./{place}[book]"'
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
    cell = install_cell(wheel.name, os.environ.get("BOOK_SITE_URL", ""))
    for path in sorted((site / "_sources").rglob("*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        notebook["cells"].insert(1, cell)
        text = json.dumps(notebook, ensure_ascii=False, indent=1)
        path.write_text(text + "\n", "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook."""
    app.connect("build-finished", furnish, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
