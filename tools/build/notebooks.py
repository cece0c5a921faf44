"""Execute the book's notebooks and write them back: the one way to do so.

    python -m tools.build.notebooks [notebook ...]

Without arguments it takes every notebook of the table of contents. Each runs
in a clean kernel, in an empty folder, with one thread, and is written only
when every cell ran; the same notebook gives the same bytes again.
"""

import argparse
import base64
import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
import yaml
from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from nbformat import NotebookNode
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
CELL_TIMEOUT = 60  # seconds
LARGEST_PNG = 60_000  # bytes
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
# What a stored notebook holds in place of a lab's module and style sheet: a
# page brings its own copies, and who opens the notebook reads what to do.
STAND_IN = {
    "_css": "",
    "_esm": (
        "export default { render({ el }) { "
        'el.textContent = "Run the cell above to start this lab."; } };'
    ),
}


class NotebookError(Exception):
    """A notebook did not run, or holds what a reader must not be given."""


def files_in_contents(root: Path = ROOT) -> list[str]:
    """What the table of contents lists, in its order, without suffixes."""

    def files(node: object) -> Iterator[str]:
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("root", "file"):
                    yield value
                else:
                    yield from files(value)
        elif isinstance(node, list):
            for item in node:
                yield from files(item)

    return list(files(yaml.safe_load((root / "_toc.yml").read_text("utf-8"))))


def in_contents(root: Path = ROOT) -> list[Path]:
    """The notebooks of the table of contents, in its order."""
    paths = [root / f"{name}.ipynb" for name in files_in_contents(root)]
    return [path for path in paths if path.exists()]


def read(path: Path) -> NotebookNode:
    """A notebook whose every cell has an id, none of them by chance."""
    content = json.loads(path.read_text("utf-8"))
    content.update(nbformat=4, nbformat_minor=5)
    for place, cell in enumerate(content["cells"]):
        name = f"{path.stem}:{place}".encode()
        cell.setdefault("id", hashlib.sha256(name).hexdigest()[:8])
    return nbformat.reads(json.dumps(content), as_version=4)


def execute(notebook: NotebookNode) -> None:
    """Run every cell in a clean kernel, in an empty folder, on one thread.

    Raises:
        NotebookError: if a cell fails, dies or takes too long; it says which.
    """
    notebook.metadata.pop("widgets", None)  # those of the run before
    running = "no cell"

    def remember(cell: NotebookNode, cell_index: int) -> None:
        nonlocal running
        running = f"cell {cell_index} ({cell.id})"

    with tempfile.TemporaryDirectory() as folder:
        home, empty = Path(folder, "home"), Path(folder, "empty")
        home.mkdir()
        empty.mkdir()
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=CELL_TIMEOUT,
            record_timing=False,
            on_cell_start=remember,
            resources={"metadata": {"path": str(empty)}},
        )
        setting = {
            "IPYTHONDIR": str(home),  # nobody's own start-up files
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
        }
        try:
            client.execute(env=os.environ | setting)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as why:
            raise NotebookError(f"{running} did not finish:\n{why}") from None


def normalise(notebook: NotebookNode) -> None:
    """Take out what differs from one run or machine to the next."""
    widgets = notebook.metadata.get("widgets", {})
    notebook.metadata = NotebookNode(
        kernelspec={
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        language_info={
            "file_extension": ".py",
            "mimetype": "text/x-python",
            "name": "python",
            "pygments_lexer": "ipython3",
        },
    )
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [plain(output) for output in merged(cell.outputs)]
            if tells_the_cure(cell):
                cell.metadata["jupyter"] = {"outputs_hidden": True}
    if widgets:
        notebook.metadata["widgets"] = with_stable_ids(notebook, widgets)


def tells_the_cure(cell: NotebookNode) -> bool:
    """Whether the doctor says of code to be mended what is wrong with it.

    A notebook keeps that folded until its reader runs the cell; the site
    folds it as well.
    """
    said = "".join(output.get("text", "") for output in cell.outputs)
    return "exercise=" in cell.source and "✗ " in said


def merged(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs in which each run of one stream is one piece."""
    together: list[NotebookNode] = []
    for output in outputs:
        last = together[-1] if together else None
        if (
            output.output_type == "stream"
            and last is not None
            and last.get("name") == output.name
        ):
            last.text += output.text
        else:
            together.append(output)
    return together


def plain(output: NotebookNode) -> NotebookNode:
    """An output without paths of this machine in its traceback."""
    if output.output_type == "error":
        output.traceback = [f"{output.ename}: {output.evalue}"]
    return output


def with_stable_ids(
    notebook: NotebookNode, widgets: NotebookNode
) -> NotebookNode:
    """Widget state under counted ids, with a stand-in for each module."""
    state = widgets[WIDGET_STATE]["state"]
    for model in state.values():
        if model["model_module"] == "anywidget":
            model["state"] |= STAND_IN
    names = {model: f"{place:032x}" for place, model in enumerate(state, 1)}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            view = output.get("data", {}).get(WIDGET_VIEW)
            if view:
                view["model_id"] = names[view["model_id"]]
    text = json.dumps(widgets)
    for old, new in names.items():
        text = text.replace(old, new)
    return nbformat.from_dict(json.loads(text))


def heavier(png: bytes) -> int:
    """The bytes of a picture or of what it carries for a phone.

    A page takes them apart: nobody's browser asks for both.
    """
    if not png:
        return 0
    with Image.open(io.BytesIO(png)) as image:
        image.load()
        carried = [len(data) for _, data in image.private_chunks]
    return max(len(png) - sum(carried), *carried, 0)


def check_sizes(notebook: NotebookNode) -> None:
    """Refuse a figure that would make the page heavy."""
    for place, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            png = output.get("data", {}).get("image/png", "")
            size = heavier(base64.b64decode(png))
            if size > LARGEST_PNG:
                raise NotebookError(
                    f"a figure may weigh {LARGEST_PNG:,} bytes, but that of "
                    f"cell {place} ({cell.id}) weighs {size:,}"
                )


def write(path: Path) -> None:
    """Execute one notebook and put it in its old place, whole or not at all.

    Raises:
        NotebookError: if a cell failed or a figure is too heavy. The file is
            then as it was.
    """
    notebook = read(path)
    execute(notebook)
    normalise(notebook)
    check_sizes(notebook)
    nbformat.validate(notebook)
    unfinished = path.with_suffix(".unfinished")
    try:
        unfinished.write_text(nbformat.writes(notebook) + "\n", "utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def main() -> int:
    """Write each notebook; say which could not be, and go on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path)
    paths = parser.parse_args().notebooks or in_contents()
    bad = 0
    for path in paths:
        try:
            write(path)
        except NotebookError as error:
            bad += 1
            print(f"{path}: not written; {error}", file=sys.stderr)
        else:
            print(f"{path}: written")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
