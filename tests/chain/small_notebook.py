"""A notebook with one of everything, for whoever wants to break it."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.build import notebooks

ALT = "A straight line that climbs from one at the left to two at the right."
FIGURE = {"mystnb": {"image": {"alt": ALT, "classes": "dark-light"}}}
LAB = """\
class Lab(anywidget.AnyWidget):
    _esm = "export default {render() {}}"
    d_k = traitlets.Int(2).tag(sync=True)

    def __repr__(self):
        return "Lab()"


Lab()"""


def small_notebook():
    """One of everything that a chapter has, not executed, without ids."""
    book = new_notebook()
    book.cells = [
        new_markdown_cell("# A page\n\nA third of 1 is about .333."),
        new_code_cell(
            "import anywidget\n"
            "import matplotlib.pyplot as plt\n"
            "import traitlets"
        ),
        new_code_cell('print("a")\nprint("b")\n1 / 3'),
        new_code_cell(
            "_, ax = plt.subplots(figsize=(2, 1))\nax.plot([1, 2])\nNone",
            metadata=FIGURE,
        ),
        new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]}),
        new_code_cell(LAB),
        new_code_cell("2 / 3"),
    ]
    for cell in book.cells:
        del cell["id"]
    book.nbformat_minor = 4
    return book


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The path of a small notebook after `make notebooks`."""
    path = tmp_path_factory.mktemp("written") / "small.ipynb"
    nbformat.write(small_notebook(), path)
    notebooks.write(path)
    return path


@pytest.fixture
def notebook(written):
    """A copy of the written notebook, to be broken."""
    return nbformat.read(written, as_version=4)
