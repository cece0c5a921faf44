"""Compare the pictures of cells that are executed again: a plugin of pytest.

    python -m pytest -p tools.verify.pictures --nbval book/scaling.ipynb

nbval itself passes over pictures. Here a stored one must be the one that comes
out now, pixel by pixel, but for what another processor may round otherwise.
"""

import base64
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from nbval import plugin
from PIL import Image

PNG = "image/png"
# In 256ths of a channel. A curve that another processor computes in another
# order moves by less than a pixel's edge: some edges are a shade paler. Two
# figures of one shape and with the same axes differ in a hundredth and more.
SHADE = 40  # what an edge may differ by, anywhere
SEEN = 4  # what may differ on an edge here and there, and nowhere else
SHARE = 0.002  # of the pixels


def pixels(png: str) -> np.ndarray:
    """Height, width and four channels of a picture in base64."""
    with Image.open(io.BytesIO(base64.b64decode(png))) as image:
        return np.asarray(image.convert("RGBA"), dtype=np.int16)


def carried(png: str) -> list[str]:
    """The pictures that one carries within it, for a phone, in base64."""
    with Image.open(io.BytesIO(base64.b64decode(png))) as image:
        image.load()
        parts = getattr(image, "private_chunks", [])
    return [base64.b64encode(part[1]).decode() for part in parts]


def unlike(stored: str, fresh: str) -> str:
    """In which way two pictures differ by more than rounding; or nothing."""
    if stored.strip() == fresh.strip():
        return ""
    within = carried(stored), carried(fresh)
    if len(within[0]) != len(within[1]):
        return f"carries {len(within[1])} for a phone now"
    for one, other in zip(*within, strict=True):
        if why := unlike(one, other):
            return f"for a phone {why}"
    was, now = pixels(stored), pixels(fresh)
    if was.shape != now.shape:
        return f"is {now.shape} pixels now, not {was.shape}"
    apart = np.abs(was - now).max(axis=-1)
    share = float((apart > SEEN).mean())
    if apart.max() > SHADE or share > SHARE:
        return (
            f"differs by {apart.max()} of 255, and by more than {SEEN} in "
            f"{share:.2%} of its pixels"
        )
    return ""


def pictures(outputs: list[Any]) -> list[tuple[str, str]]:
    """Each picture among some outputs, and how it is described there."""
    found = []
    for output in outputs:
        if PNG in output.get("data", {}):
            told = output.get("metadata", {}).get(PNG, {})
            found.append((output["data"][PNG], told.get("alt", "")))
    return found


def other_pictures(fresh: list[Any], stored: list[Any]) -> list[str]:
    """What is wrong with the stored pictures of a cell."""
    was, now = pictures(stored), pictures(fresh)
    if len(was) != len(now):
        return [f"{len(now)} pictures now, not {len(was)}"]
    found = []
    for (one, told), (two, tells) in zip(was, now, strict=True):
        if why := unlike(one, two):
            found.append(f"a picture {why}")
        if told != tells:
            found.append(f"a picture is described as {tells!r} now")
    return found


def with_pictures(compare: Callable[..., bool]) -> Callable[..., bool]:
    """Nbval's comparison of a cell's outputs, and then of its pictures."""

    def compared(cell: Any, test: Any, ref: Any, skip_compare: Any = None):
        if not compare(cell, test, ref, skip_compare):
            return False
        wrong = other_pictures(test, ref)
        cell.comparison_traceback += wrong
        return not wrong

    return compared


def pytest_configure() -> None:
    """Take the place of nbval's comparison."""
    plugin.IPyNbCell.compare_outputs = with_pictures(
        plugin.IPyNbCell.compare_outputs
    )
