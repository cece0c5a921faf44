"""The labs that the notebooks store are those that their calls make."""

import nbformat
import pytest
from guards.labs import stored_labs

from tools.build.notebooks import ROOT, WIDGET_STATE, in_contents

PAGES = [p for p in in_contents(ROOT) if WIDGET_STATE in p.read_text("utf-8")]


def read(path):
    return nbformat.read(path, as_version=4)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_stored_lab_is_what_its_call_makes(path):
    assert stored_labs(read(path)) == []


@pytest.mark.parametrize("key", ["d_k", "alt", "rules"])
def test_another_state_is_red(key):
    notebook = read(ROOT / "book/scaling.ipynb")
    labs = notebook.metadata.widgets[WIDGET_STATE]["state"]
    lab = next(m["state"] for m in labs.values() if key in m["state"])
    lab[key] = "another"
    (found,) = stored_labs(notebook)
    assert f"{key} is stored as 'another'" in found


def test_another_description_of_its_picture_is_red():
    notebook = read(ROOT / "book/scaling.ipynb")
    told = [
        output.metadata["image/png"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "alt" in output.get("metadata", {}).get("image/png", {})
    ]
    told[0]["alt"] = "another picture"
    (found,) = stored_labs(notebook)
    assert "its picture is called 'another picture'" in found
