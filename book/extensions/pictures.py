"""Tell the browser how large a picture is before it has it.

Without a width and a height the text below a picture jumps down when the
picture arrives. A picture may be denser than the page: it says so itself, in
dots an inch. One that says where its panels part is shown in as many pieces,
side by side where they fit and below each other on a phone. One that is too
wide for a phone carries another, as `selfattn.plots.showing` makes them: that
becomes a file of its own, which a phone asks for instead. One that carries
none is marked, so that custom.css can let it scroll instead of making its
labels too small to read; each says its width, of which it has a part on
paper. A drawing of `selfattn.plots.drawing` becomes part of the page, so that
it has the page's colours, in the light and in the dark.
"""

import re
import struct
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from pathlib import Path

import imagesize
from docutils import nodes

DRAWING = 'class="drawing"'
WIDE = 370  # pixels of the page: more, and a phone makes its labels too small
PHONE = b"phOn"  # what a picture carries for a phone
FOR_PHONE = "-phone.png"  # how its file's name ends
NARROW = "screen and (max-width: 600px)"  # as in custom.css
TALL = 1.2  # times as high as wide: less is square, but for its words
DOTS = 100  # an inch of the page; a picture may have more
METRE = 0.0254  # an inch
HIDDEN = ' aria-hidden="true"'
STILL = re.compile(r'<img [^>]*class="[^"]*lab-still[^>]* src="([^"]*)"')
STEM = re.compile(r' src="([^"]*)\.png"')
SHEET = '<link rel="stylesheet"'


def chunks(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """The pieces of a PNG before its pixels: name and content."""
    content, place = path.read_bytes(), 8
    while (name := content[place + 4 : place + 8]) not in (b"IDAT", b""):
        (length,) = struct.unpack(">I", content[place : place + 4])
        yield name, content[place + 8 : place + 8 + length]
        place += length + 12


def carried(path: Path) -> bytes:
    """The picture that one carries for a phone; nothing, if it has none."""
    for name, content in chunks(path) if path.suffix == ".png" else ():
        if name == PHONE:
            return content
    return b""


def parted(png: bytes) -> tuple[bytes, bytes]:
    """A picture without what it carries, and that."""
    place = 8
    while (name := png[place + 4 : place + 8]) not in (b"IDAT", b""):
        end = place + 12 + int.from_bytes(png[place : place + 4], "big")
        if name == PHONE:
            return png[:place] + png[end:], png[place + 8 : end - 4]
        place = end
    return png, b""


def density(path: Path) -> float:
    """How many of a picture's pixels make one of the page, in a row."""
    for name, content in chunks(path) if path.suffix == ".png" else ():
        if name == b"pHYs":
            return round(struct.unpack(">I", content[:4])[0] * METRE) / DOTS
    return 1


def panels(path: Path, width: int) -> list[tuple[int, int]]:
    """From where to where each panel goes, if the picture says so."""
    for name, content in chunks(path) if path.suffix == ".png" else ():
        key, _, text = content.partition(b"\0")
        if (name, key) == (b"tEXt", b"panels"):
            edges = [0, *map(int, text.split()), width]
            return list(pairwise(edges))
    return []


def size_of(path: Path) -> tuple[int, int] | None:
    """Width and height of a picture in pixels; None if it is none."""
    size = imagesize.get(path) if path.is_file() else (-1, -1)
    return size if min(size) > 0 else None


def drawing(path: Path) -> str:
    """The text of a drawing of ours; nothing of another picture."""
    if path.suffix != ".svg" or not path.is_file():
        return ""
    text = path.read_text("utf-8")
    return text if DRAWING in text else ""


def in_pieces(image: str, pieces: list[tuple[int, int]], dense: float) -> str:
    """One picture as often as it has panels, each time all but one cut off.

    Only the first is there for who cannot see: its words tell of the whole.
    """
    width = pieces[-1][1]
    shown = []
    for left, right in pieces:
        wide = right - left
        shown.append(
            f'<span class="panel"{HIDDEN * bool(left)} style="'
            f"--of:{width / wide:.5g};--from:{left / wide:.5g};"
            f'--wide:{wide / dense:g}">{image}</span>'
        )
    whole = f'<span class="panels" style="--whole:{width / dense:g}px">'
    return f"{whole}{''.join(shown)}</span>"


def with_another(image: str, other: bytes, dense: float) -> str:
    """The same, but a phone asks for another picture, of its own size."""
    sizes = struct.unpack(">II", other[16:24])
    wide, high = (round(pixels / dense) for pixels in sizes)
    source = STEM.search(image)[1] + FOR_PHONE
    return (
        f'<picture><source media="{NARROW}" srcset="{source}" '
        f'width="{wide}" height="{high}">{image}</picture>'
    )


def forget_sizes(app, document, name):
    """What a notebook says of a picture's size is for notebooks."""
    for image in document.findall(nodes.image):
        image.attributes.pop("width", None)
        image.attributes.pop("height", None)


def visit_image(self, node):
    """Add the size to the image that the theme's writer made."""
    path = Path(self.builder.srcdir, node["uri"])
    if svg := drawing(path):
        words = escape(node.get("alt", ""))
        self.body.append(
            f'<div class="drawn" role="img" aria-label="{words}">{svg}</div>'
        )
        raise nodes.SkipNode
    size = size_of(path)
    if not size:
        type(self).visit_image(self, node)
        return
    dense = density(path)
    told = tuple(round(pixels / dense) for pixels in size)
    still = "lab-still" in node["classes"]
    pieces = [] if still else panels(path, size[0])
    other = b"" if still else carried(path)
    is_wide = told[0] > WIDE and not pieces and not other
    if is_wide:
        node["classes"].append("wide")
    if told[1] > TALL * told[0]:
        node["classes"].append("tall")
    type(self).visit_image(self, node)
    tells = '<img width="{}" height="{}" '.format(*told)
    tells += f'style="--natural:{told[0]}" '
    image = self.body[-1].replace("<img ", tells, 1)
    if other:
        image = with_another(image, other, dense)
    self.body[-1] = in_pieces(image, pieces, dense) if pieces else image


def part(app, exception):
    """What pictures carry for a phone lies beside them, and is not in them."""
    if exception or app.builder.format != "html":
        return
    for path in Path(app.outdir, "_images").glob("*.png"):
        whole, other = parted(path.read_bytes())
        if other:
            path.write_bytes(whole)
            path.with_name(path.stem + FOR_PHONE).write_bytes(other)


def ask_early(app, exception):
    """The first page's lab is its largest paint: its picture is asked for.

    The scripts of the head wait for the style sheet, and the browser does not
    look for pictures behind them before it is here.
    """
    if exception or app.builder.format != "html":
        return
    page = Path(app.outdir, app.builder.get_target_uri(app.config.root_doc))
    text = page.read_text("utf-8")
    if still := STILL.search(text):
        link = '<link rel="preload" as="image" fetchpriority="high" '
        link += f'href="{still[1]}" />\n  '
        early = text.replace(SHEET, link + SHEET, 1)
        page.write_text(early, encoding="utf-8")


def depart_image(self, node):
    """As ever."""
    type(self).depart_image(self, node)


def setup(app):
    """Take over how images are written, and register the hook."""
    app.connect("doctree-resolved", forget_sizes)
    app.connect("build-finished", part)
    app.connect("build-finished", ask_early, priority=995)  # one sheet by now
    app.add_node(nodes.image, override=True, html=(visit_image, depart_image))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
