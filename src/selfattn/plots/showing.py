"""How a figure becomes a picture: dense, light, and cut between its panels.

Twice as dense as a notebook's own pictures are, so that nothing is blurred;
in few colours, so that it weighs less than they do all the same; and with a
note of where white columns part its panels, so that a page can put them
below each other where it is narrow.
"""

import io
import sys
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, PngImagePlugin

DOTS = 100  # an inch on the page has so many pixels
DENSITY = 2  # and a picture so many times more
MARGIN = 0.1  # inches around what is drawn
STEPS = (17, 34)  # between the shades of an edge: 16 of them a channel, or 8
COMMON = 0.001  # of the pixels: a colour of its own, kept as it is
PALETTE = 256  # colours that a byte can tell apart
GAP = 4 * DENSITY  # pixels of white that part two panels

Pixels = UInt8[np.ndarray, "height width 3"]


def picture(figure: Figure) -> tuple[bytes, dict[str, int]]:
    """A figure as PNG, and how wide and high it is on a page."""
    canvas = figure.canvas
    if not isinstance(canvas, FigureCanvasAgg):
        canvas = FigureCanvasAgg(figure)
    figure.draw_without_rendering()  # so that all is in its place
    box = figure.get_tightbbox(canvas.get_renderer()).padded(MARGIN)
    raw = io.BytesIO()
    figure.savefig(raw, dpi=DOTS * DENSITY, bbox_inches=box, facecolor="white")
    with Image.open(raw) as drawn:
        pixels = np.asarray(drawn.convert("RGB"))
    notes = PngImagePlugin.PngInfo()
    if places := cuts(pixels, panels(figure, box.x0)):
        notes.add_text("panels", " ".join(map(str, places)))
    png = io.BytesIO()
    dense = (DOTS * DENSITY,) * 2
    in_few_colours(pixels).save(
        png, "PNG", optimize=True, dpi=dense, pnginfo=notes
    )
    high, wide = pixels.shape[:2]
    size = {"width": wide // DENSITY, "height": high // DENSITY}
    return png.getvalue(), size


def in_few_colours(pixels: Pixels) -> Image.Image:
    """A picture: its common colours are kept, its edges have few shades.

    Each pixel's colour depends on its own and on how common that is, so that
    a pixel that another processor rounds otherwise changes no other pixel.
    """
    codes = pixels.astype(np.int32) @ np.array([65536, 256, 1])
    found, back, counts = np.unique(
        codes, return_inverse=True, return_counts=True
    )
    split = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=-1)
    common = counts[:, None] > COMMON * codes.size
    for step in STEPS:
        shades = np.minimum((split + step // 2) // step * step, 255)
        kept = np.where(common, split, shades).astype(np.uint8)
        image = Image.fromarray(kept[back.reshape(codes.shape)])
        if colours := image.getcolors(PALETTE):
            return image.quantize(len(colours))
    return image


def panels(figure: Figure, left: float) -> list[tuple[float, float]]:
    """From where to where each column of panels goes, in pixels.

    A figure with a title or a legend for all of them is one.

    Args:
        figure: the figure, laid out.
        left: where the picture's left edge is in it, in inches.
    """
    if figure.legends or figure.texts:
        return []
    wide = figure.get_figwidth()
    spans: list[tuple[float, float]] = []
    for axes in sorted(figure.axes, key=lambda it: it.get_position().x0):
        place = axes.get_position()
        start, end = (
            (edge * wide - left) * DOTS * DENSITY
            for edge in (place.x0, place.x1)
        )
        if spans and (
            start < spans[-1][1] or axes.get_label() == "<colorbar>"
        ):
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def cuts(pixels: Pixels, spans: list[tuple[float, float]]) -> list[int]:
    """Where white columns part neighbours: one cut between each two, or none.

    A figure in which something reaches from one panel to the next is not cut
    at all.
    """
    white: Bool[np.ndarray, " width"] = (pixels == 255).all(axis=(0, 2))
    found = []
    for (_, end), (start, _) in pairwise(spans):
        runs = []
        x = int(end)
        while x < start:
            length = 0
            while x + length < start and white[x + length]:
                length += 1
            runs.append((length, -x))
            x += length + 1
        length, place = max(runs, default=(0, 0))
        if length < GAP:
            return []
        found.append(-place + length // 2)
    return found


def show_densely() -> None:
    """Have a notebook show figures by `picture`; elsewhere, nothing."""
    shells = sys.modules.get("IPython.core.getipython")
    shell = shells.get_ipython() if shells else None
    if shell is None or not hasattr(shell, "kernel"):
        return
    import matplotlib_inline.backend_inline  # noqa: F401  sets its own first

    formatter = shell.display_formatter.formatters["image/png"]
    formatter.for_type(Figure, picture)
