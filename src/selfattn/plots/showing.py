"""How a figure becomes a picture: dense, light, and cut between its panels.

Twice as dense as a notebook's own pictures are, so that nothing is blurred;
in few colours, so that it weighs less than they do all the same; and with a
note of where white columns part its panels, so that a page can put them
below each other where it is narrow. One that is too wide for a phone all the
same carries within it the picture that stands there in its place: see
`selfattn.plots.phone`.
"""

import io
import sys
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, PngImagePlugin

from selfattn.plots.phone import grid, on_a_phone

DOTS = 100  # an inch on the page has so many pixels
DENSITY = 2  # and a picture so many times more
MARGIN = 0.1  # inches around what is drawn
STEPS = (17, 34)  # between the shades of an edge: 16 of them a channel, or 8
COARSE = (51,)  # for a phone, whose own dots are smaller: 6 of them
COMMON = 0.001  # of the pixels: a colour of its own, kept as it is
PALETTE = 256  # colours that a byte can tell apart
GAP = 4 * DENSITY  # pixels of white that part two panels
NARROW = 370  # of the page: more, and a phone makes its letters too small
PHONE = b"phOn"  # the name of what a picture carries for a phone

Pixels = UInt8[np.ndarray, "height width 3"]


def picture(
    figure: Figure, *, phone: bool = True
) -> tuple[bytes, dict[str, int]]:
    """A figure as PNG, and how wide and high it is on a page.

    Args:
        figure: what to show; it stays as it is.
        phone: whether it carries another for a phone, if it is too wide.
    """
    pixels, places = drawn(figure)
    notes = PngImagePlugin.PngInfo()
    if places:
        notes.add_text("panels", " ".join(map(str, places)))
    high, wide = pixels.shape[:2]
    if phone and too_wide(figure, wide, places):
        other, _ = drawn(on_a_phone(figure))
        notes.add(PHONE, as_png(in_few_colours(other, COARSE)))
    size = {"width": wide // DENSITY, "height": high // DENSITY}
    return as_png(in_few_colours(pixels), notes), size


def drawn(figure: Figure) -> tuple[Pixels, list[int]]:
    """The pixels of a figure, and where white columns part its panels."""
    canvas = own = figure.canvas
    if not isinstance(canvas, FigureCanvasAgg):
        canvas = FigureCanvasAgg(figure)  # which takes the place of its own
    dense, raw = DOTS * DENSITY, io.BytesIO()
    try:
        figure.draw_without_rendering()  # so that all is in its place
        box = figure.get_tightbbox(canvas.get_renderer()).padded(MARGIN)
        figure.savefig(raw, dpi=dense, bbox_inches=box, facecolor="white")
    finally:
        figure.set_canvas(own)
    with Image.open(raw) as read:
        pixels = np.asarray(read.convert("RGB"))
    return pixels, cuts(pixels, panels(figure, box.x0))


def as_png(
    image: Image.Image, notes: PngImagePlugin.PngInfo | None = None
) -> bytes:
    """A picture as a file, with what it carries."""
    png = io.BytesIO()
    dense = (DOTS * DENSITY,) * 2
    image.save(png, "PNG", optimize=True, dpi=dense, pnginfo=notes)
    return png.getvalue()


def too_wide(figure: Figure, wide: int, places: list[int]) -> bool:
    """Whether a phone cannot show its panels below each other, in order."""
    widest = max(b - a for a, b in pairwise([0, *places, wide]))
    rows = grid(figure)
    table = len(rows) > 1 and max(map(len, rows)) > 1
    return widest > NARROW * DENSITY or table


def in_few_colours(
    pixels: Pixels, steps: Sequence[int] = STEPS
) -> Image.Image:
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
    for step in steps:
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
