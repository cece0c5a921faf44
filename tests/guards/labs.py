"""A guard on stored labs: each is what its own words make anew."""

import ast
import importlib
from typing import Any

from nbformat import NotebookNode

from guards.cells import codes
from tools.build.notebooks import WIDGET_STATE, WIDGET_VIEW


def made(call: str, module: str) -> Any:
    """The lab that a stored ``repr`` says how to make."""
    node = ast.parse(call, mode="eval").body
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError(f"a lab is shown as the call that makes it: {call}")
    start = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
    return getattr(importlib.import_module(module), ast.unparse(node.func))(
        **start
    )


def stored_labs(notebook: NotebookNode) -> list[str]:
    """Settings, rules and words of each stored lab are those of its call."""
    widgets = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {})
    labs = {
        name: model["state"]
        for name, model in widgets.get("state", {}).items()
        if model["model_module"] == "anywidget"
    }
    found = []
    for cell in codes(notebook):
        for output in cell.outputs:
            data = output.get("data", {})
            if WIDGET_VIEW in data:
                stored = labs.pop(data[WIDGET_VIEW]["model_id"])
                lab = made(data["text/plain"], module_of(stored))
                found += unlike(stored, lab, cell.id)
                told = output.metadata.get("image/png", {}).get("alt")
                if told != lab.describe():
                    found.append(f"{cell.id}: its picture is called {told!r}")
    for name, stored in labs.items():  # those that only cells compute with
        found += of_no_cell(stored, f"model {int(name, 16)}")
    return found


def module_of(stored: dict[str, Any]) -> str:
    """The module of a stored lab."""
    return stored["_anywidget_id"].rpartition(".")[0]


def unlike(stored: dict[str, Any], lab: Any, where: str) -> list[str]:
    """What is stored otherwise than the lab has it."""
    return [
        f"{where}: {key} is stored as {stored.get(key)!r}, not {value!r}"
        for key, value in lab.get_state().items()
        if not key.startswith("_") and key != "layout"
        if as_stored(value) != as_stored(stored.get(key))
    ]


def of_no_cell(stored: dict[str, Any], where: str) -> list[str]:
    """What is wrong with a lab that no cell shows: made of its settings."""
    name = stored["_anywidget_id"].rpartition(".")[2]
    kind = getattr(importlib.import_module(module_of(stored)), name)
    start = {setting: stored[setting] for setting in kind.settings()}
    try:
        return unlike(stored, kind(**start), where)
    except ValueError as why:
        return [f"{where}: {why}"]


def as_stored(value: Any) -> Any:
    """A value as JSON keeps it."""
    if isinstance(value, dict):
        return {str(key): as_stored(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_stored(item) for item in value]
    return value
