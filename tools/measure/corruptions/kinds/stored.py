"""What is stored: pictures, labs' states, measurements, marks of cells."""

import copy
import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tools.build.notebooks import WIDGET_STATE
from tools.measure.corruptions import texts
from tools.measure.corruptions.corruption import Corruption, kind

PNG = "image/png"
WIDEST = 40  # characters around a number of a measurement
TAGS = ("hide-cell", "nbval-ignore-output", "raises-exception")


def pictures(notebook: dict) -> list[tuple[int, dict]]:
    """The outputs of a notebook that hold a picture, with their cells."""
    return [
        (place, output)
        for place, cell in enumerate(notebook["cells"])
        for output in cell.get("outputs", [])
        if PNG in output.get("data", {})
    ]


@kind("stored pictures")
def stored(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Two pictures, or two descriptions, of a chapter exchanged."""
    for name, notebook in texts.notebooks(root):
        many = len(pictures(notebook))
        for one in range(many):
            two = rng.choice([n for n in range(many) if n != one] or [one])
            if one != two:
                yield exchanged(name, notebook, one, two)
                yield described(name, notebook, one, two)


def exchanged(name: str, notebook: dict, one: int, two: int) -> Corruption:
    """A notebook in which two pictures stand in each other's place."""

    def edited() -> str:
        other = copy.deepcopy(notebook)
        found = pictures(other)
        a, b = found[one][1]["data"], found[two][1]["data"]
        a[PNG], b[PNG] = b[PNG], a[PNG]
        return texts.notebook_text(other)

    found = pictures(notebook)
    ids = [notebook["cells"][found[n][0]]["id"] for n in (one, two)]
    return Corruption(
        "stored pictures",
        "pictures exchanged",
        f"{name}: {ids[0]}",
        ids[0],
        ids[1],
        {name: edited},
    )


def described(name: str, notebook: dict, one: int, two: int) -> Corruption:
    """A notebook in which two descriptions are exchanged."""

    def edited() -> str:
        other = copy.deepcopy(notebook)
        told = [
            other["cells"][pictures(other)[n][0]]["metadata"]
            for n in (one, two)
        ]
        about = [metadata.get("mystnb", {}) for metadata in told]
        told[0]["mystnb"], told[1]["mystnb"] = about[::-1]
        return texts.notebook_text(other)

    cells = [notebook["cells"][pictures(notebook)[n][0]] for n in (one, two)]
    return Corruption(
        "stored pictures",
        "descriptions exchanged",
        f"{name}: {cells[0]['id']}",
        cells[0]["id"],
        cells[1]["id"],
        {name: edited},
    )


@kind("labs' states")
def states(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A lab's stored setting, or its picture in words."""
    for name, notebook in texts.notebooks(root):
        widgets = notebook["metadata"].get("widgets", {})
        models = widgets.get(WIDGET_STATE, {}).get("state", {})
        for model, stored in models.items():
            for key, value in stored["state"].items():
                if key.startswith("_") or key == "layout" or value is None:
                    continue
                if not isinstance(value, bool | int | float | str):
                    continue
                becomes = another(value)
                edited = partial(with_state, notebook, model, key, becomes)
                yield Corruption(
                    "labs' states",
                    "alt" if key == "alt" else "setting",
                    f"{name}: model {int(model, 16)}: {key}",
                    str(value),
                    str(becomes),
                    {name: edited},
                )


def with_state(notebook: dict, model: str, key: str, value: object) -> str:
    """A notebook in which one stored setting of a lab is another."""
    other = copy.deepcopy(notebook)
    state = other["metadata"]["widgets"][WIDGET_STATE]["state"]
    state[model]["state"][key] = value
    return texts.notebook_text(other)


def another(value: bool | float | str) -> bool | float | str:
    """A value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return re.sub(r"\d|\w(?=\W*$)", "7", value, count=1)


@kind("measurements")
def measurements(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A number of a committed measurement."""
    for piece in texts.files(root, "book/measurements/*.json"):
        found = list(re.finditer(r"-?\d+\.?\d*", piece.text))
        for match in rng.sample(found, min(20, len(found))):
            becomes = texts.digit_up(match.group()) or "0"
            before = piece.text[max(0, match.start() - WIDEST) : match.start()]
            yield Corruption(
                "measurements",
                "digit up",
                f"{piece.path} at {match.start()}",
                f"{before}{match.group()}",
                becomes,
                {piece.path: texts.replaced(piece.text, match, becomes)},
            )


@kind("marks of cells")
def marks(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A tag that hides a cell, or lets its output go uncompared."""
    for name, notebook in texts.notebooks(root):
        for place, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] != "code" or cell["metadata"].get("tags"):
                continue
            tag = rng.choice(TAGS)
            yield Corruption(
                "marks of cells",
                tag,
                f"{name}: {cell['id']}",
                "",
                tag,
                {name: partial(with_tag, notebook, place, tag)},
            )


def with_tag(notebook: dict, place: int, tag: str) -> str:
    """A notebook in which one cell has a tag."""
    other = copy.deepcopy(notebook)
    told = other["cells"][place]["metadata"]
    told["tags"] = [tag]
    if tag == "nbval-ignore-output":
        told["reason"] = "it differs from machine to machine"
    return texts.notebook_text(other)


@kind("cells")
def cells(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """An assert of a cell that is weaker; a comment with another word."""
    rules = {
        "assert gone": (r"^( *)assert .*$", r"\1True"),
        "weaker": (r"^( *assert .*) == ", r"\1 is not "),
        "looser": (r"^( *assert .*) < ", r"\1 < 1000 * "),
    }
    for piece in texts.cells(root, "code"):
        for rule, (pattern, instead) in rules.items():
            for match in re.finditer(pattern, piece.text, re.MULTILINE):
                becomes = match.expand(instead)
                text = texts.replaced(piece.text, match, becomes)
                yield Corruption(
                    "cells",
                    rule,
                    f"{piece.place} at {match.start()}",
                    match.group(),
                    becomes,
                    {piece.path: partial(piece.put, text)},
                )
